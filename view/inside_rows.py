"""Row types of details known only to the broker itself: producers and consumers, group events, logs, applications.

As in ``rows``: never changed, times in milliseconds since the epoch, None for what is not known.
"""

from __future__ import annotations

import dataclasses


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
    """A producer in one partition, by one of the connections that it wrote by.

    ``client`` is None where that connection is closed, or to another broker. ``producer_id`` is None where it is not idempotent.
    ``last_ms`` is when the last batch came by this connection, else the last record's timestamp; ``last_offset`` is that batch's
    first offset. ``transaction_start`` is the first offset of its open transaction.
    """

    partition: int
    producer_id: int | None
    epoch: int | None
    transactional_id: str | None
    last_sequence: int | None
    last_ms: int
    last_offset: int | None
    transaction_start: int | None
    client: ClientRow | None


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerRow:
    """A connection that fetches a partition.

    ``position`` is the offset that its last Fetch asked for, and ``lag`` how many are before it. ``group_id`` is None where no
    group here has it as a member for the partition: it reads without a group, or assigns partitions by itself.
    """

    partition: int
    client: ClientRow
    waits: bool
    position: int
    end: int | None
    lag: int | None
    group_id: str | None
    committed: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class EventRow:
    """What happened to a group, or to one of its members; ``duration_ms`` is how long the rebalance took so far."""

    at_ms: int
    kind: str
    is_trouble: bool
    generation: int
    member_id: str
    client_id: str
    host: str
    detail: str
    duration_ms: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class RetentionRow:
    """What retention deletes next. ``first`` and ``next`` are the offsets of the oldest segment and of the one behind it.

    ``at_ms`` is when it may go: with the first look from then on; None where no time is known. ``why`` is in sentences.
    """

    retention_ms: int
    retention_bytes: int
    interval_ms: int
    first: int | None
    next: int | None
    at_ms: int | None
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class CleaningRow:
    """A compacted log as the cleaner sees it; ``state`` is a sentence. The ratios are from 0 to 1."""

    cleaned_offset: int | None
    dirty_ratio: float
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int
    state: str


@dataclasses.dataclass(frozen=True, slots=True)
class LogRow:
    """The log of a partition on this broker; ``recovery_point`` is up to where it was flushed."""

    topic: str
    number: int
    directory: str
    size: int
    segments: int
    start: int
    high_watermark: int
    end: int
    recovery_point: int
    retention: RetentionRow
    cleaning: CleaningRow | None


@dataclasses.dataclass(frozen=True, slots=True)
class BatchRow:
    """A record batch; ``plain_size`` is what it would have without compression, None where that was not found out."""

    base_offset: int
    last_offset: int
    records: int
    size: int
    codec: str
    plain_size: int | None
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
    """The connections of one client id at one host. ``why_old`` is a sentence, empty where the client is not old."""

    client_id: str
    host: str
    software: str
    software_version: str
    principal: str
    connections: int
    waiting: int
    age_ms: int
    idle_ms: int
    why_old: str
