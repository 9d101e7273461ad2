"""Row types of details known only to the broker itself: producers and consumers, group events, logs, applications.

As in ``rows``: never changed, times in milliseconds since the epoch, None for what is not known.
"""

from __future__ import annotations

import dataclasses

from .rows import RequestRow


@dataclasses.dataclass(frozen=True, slots=True)
class ClientRow:
    """Who is at the other end of a connection, and what its client says of itself."""

    peer: str
    host: str
    client_id: str
    software: str
    software_version: str
    principal: str


@dataclasses.dataclass(frozen=True, slots=True)
class WriterRow:
    """A producer in one partition, seen by one of the connections that it wrote by."""

    partition: int
    producer_id: int | None
    """None if it is not idempotent."""
    epoch: int | None
    transactional_id: str | None
    last_sequence: int | None
    last_ms: int
    """When its last batch came by this connection; without a connection, the timestamp of its last record."""
    last_offset: int | None
    """The first offset of that batch."""
    transaction_start: int | None
    """The first offset of its open transaction."""
    client: ClientRow | None
    """None if that connection is closed, or goes to another broker."""
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class SharePartitionRow:
    """A partition as a share group reads it, at its leader."""

    topic: str
    number: int
    start_offset: int
    """The first record that is not done with."""
    next_offset: int
    """The first one that was never delivered."""
    acquired: int
    """How many records members have, and have not acknowledged."""
    available: int
    """How many were delivered, and are to be delivered again."""
    redelivered: int
    """How many deliveries were not the first ones, since the broker has had the share partition."""
    archived: int
    """How many records were rejected, or delivered as often as they may be, in the same time."""
    lock_timeouts: int
    """How many were not acknowledged in time."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A connection that fetches a partition."""

    partition: int
    client: ClientRow
    waits: bool
    """Whether a request of the connection is under way, usually the next Fetch."""
    position: int
    """The offset that its last Fetch asked for."""
    end: int | None
    lag: int | None
    """The number of offsets from ``position`` to ``end``."""
    group_id: str | None
    """None if no group that is known has it as a member for the partition: it reads without one, or assigns by itself."""
    committed: int | None
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class AssignedRow:
    """A partition that a group's coordinator has given to a member."""

    partition: int
    client_id: str
    host: str
    group_id: str
    committed: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class EventRow:
    """An event of a group, or of one of its members."""

    at_ms: int
    kind: str
    is_trouble: bool
    epoch: int
    """The generation of a classic group, the epoch of a consumer group."""
    member_id: str
    client_id: str
    host: str
    detail: str
    duration_ms: int | None
    """How long the rebalance had taken by then."""
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class WholeRequest:
    """A request in full, with its answer, each as JSON for people; None for what is not kept."""

    row: RequestRow
    asked: str | None
    answered: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class RetentionRow:
    """Next deletion by retention."""

    retention_ms: int
    retention_bytes: int
    interval_ms: int
    first: int | None
    """The first offset of the oldest segment."""
    next: int | None
    """The first offset of the segment behind it."""
    at_ms: int | None
    """When the oldest segment may go: with the first look from then on. None if no time is known."""
    why: str
    """Sentences."""


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningRow:
    """A compacted log as the cleaner sees it."""

    cleaned_offset: int | None
    dirty_ratio: float
    """From 0 to 1, as ``min_dirty_ratio``."""
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int
    state: str
    """A sentence."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogRow:
    """The log of a partition on this broker."""

    topic: str
    number: int
    directory: str
    size: int
    segments: int
    start: int
    high_watermark: int
    end: int
    recovery_point: int
    """The offset up to which the log was flushed."""
    retention: RetentionRow
    cleaning: CleaningRow | None
    """None if the log is not compacted."""


@dataclasses.dataclass(frozen=True, slots=True)
class BatchRow:
    """A record batch."""

    base_offset: int
    last_offset: int
    records: int
    size: int
    codec: str
    plain_size: int | None
    """Its size without compression; None if that was not found out."""
    newest_ms: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    is_control: bool

    @property
    def ratio(self) -> float | None:
        """How many times smaller it is than without compression."""
        return None if self.plain_size is None else self.plain_size / self.size


@dataclasses.dataclass(frozen=True, slots=True)
class ApplicationRow:
    """The connections of one client id at one host."""

    client_id: str
    host: str
    software: str
    software_version: str
    principal: str
    connections: int
    waiting: int
    """How many of the connections have a request under way."""
    age_ms: int
    idle_ms: int
    why_old: str
    """A sentence; empty if the client is not old."""
    broker: int | None = None
    """The broker that it is of; None where that is not said."""
