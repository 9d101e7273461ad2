"""Row types of the view: topics, groups, connections, requests, the broker and its cluster.

Rows are never changed, so that a worker thread may make pages of them.

The kinds of which there may be ten thousand are not ``frozen``: making one would take four times as long.

Times are milliseconds since the epoch, durations in milliseconds where the name ends with ``_ms``, rates are per second. None
is for what this broker does not know.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MOST_PRODUCERS = 100
"""A page of a topic shows at most so many idempotent producers."""


@dataclasses.dataclass(frozen=True, slots=True)
class TrafficRates:
    """Of records in and out, averaged over a few seconds; bytes are None where only the brokers know them."""

    messages_in: float = 0.0
    bytes_in: float | None = 0.0
    bytes_out: float | None = 0.0


NO_RATES = TrafficRates()


@dataclasses.dataclass(slots=True)
class TopicRow:
    """One topic of the cluster.

    ``here`` is how many of its partitions have a replica on this broker, ``led`` how many of them it leads; ``size``, in bytes,
    is that of the replicas here, ``records`` counts the offsets of those led here. ``newest_ms`` is the largest timestamp of
    the records, as far as no file has to be read for it. ``max_lag`` is the largest of a group in one partition.

    Of a cluster that is asked by requests all partitions are known, and ``size`` is that of the leaders' replicas.
    """

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    offline: int
    here: int
    led: int
    size: int | None
    records: int | None
    rates: TrafficRates
    newest_ms: int | None
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    max_lag: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a topic. ``leader`` is None while there is none.

    From ``start`` on it is about the replica on this broker: log start, high watermark, last stable offset, end. Of a cluster
    that is asked by requests it is about the leader's, of which ``end`` and ``segments`` are not told.
    """

    topic: str
    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    high_watermark: int | None = None
    last_stable: int | None = None
    end: int | None = None
    size: int | None = None
    segments: int | None = None
    newest_ms: int | None = None
    open_transactions: int = 0

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentRow:
    """One file of records; ``newest_ms`` as in ``TopicRow``."""

    base_offset: int
    next_offset: int
    size: int
    created_ms: int
    newest_ms: int | None
    is_active: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerRow:
    """An idempotent or transactional producer as a partition remembers it; others leave nothing behind.

    ``transaction_start`` is the first offset of its open transaction.
    """

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_ms: int
    transaction_start: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigRow:
    """A setting of a topic; ``source`` is where its value comes from, in Kafka's words."""

    name: str
    value: str
    source: str
    doc: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReaderRow:
    """A group that has committed offsets of a topic. ``lag`` is in records, of the partitions whose end is known here."""

    group_id: str
    state: str
    members: int | None
    partitions: int
    lag: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class TopicDetail:
    """A topic with what is in it. ``producers`` are the newest ones, of ``producer_count``."""

    row: TopicRow
    topic_id: str
    partitions: Sequence[PartitionRow]
    configs: Sequence[ConfigRow]
    producers: Sequence[ProducerRow]
    producer_count: int
    readers: Sequence[ReaderRow]


@dataclasses.dataclass(slots=True)
class GroupRow:
    """A group.

    ``lag`` is in records and ``max_lag`` that of one partition, of the partitions whose end is known; None where none is.
    ``unknown`` counts the others, ``lost`` those whose next record has been deleted already. By itself a broker knows the groups
    that it coordinates, and the ends of the partitions that it leads.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: int | None
    topics: int
    partitions: int
    lag: int | None
    max_lag: int | None
    unknown: int
    lost: int


class GroupRows(NamedTuple):
    """All groups, and the largest lag in one partition of each topic."""

    rows: list[GroupRow]
    max_lags: Mapping[str, int]


@dataclasses.dataclass(slots=True)
class GroupPartitionRow:
    """What a group has committed of one partition, or a member was given of it.

    ``lag_ms`` is how long the next record to be read has been there. ``is_lost``: that record has been deleted already.
    ``owner`` is a member id.
    """

    topic: str
    number: int
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    lag_ms: int | None
    is_lost: bool
    committed_ms: int | None
    metadata: str
    owner: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class MemberRow:
    """A member of a group; ``assigned`` are the numbers of partitions by topic, None where its assignment cannot be read."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_timeout_ms: int | None
    assigned: tuple[tuple[str, tuple[int, ...]], ...] | None


@dataclasses.dataclass(frozen=True, slots=True)
class GroupDetail:
    """A group with its members and partitions."""

    row: GroupRow
    generation: int | None
    members: Sequence[MemberRow]
    partitions: Sequence[GroupPartitionRow]


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionRow:
    """An open connection, and what its client says of itself (ApiVersions 3)."""

    peer: str
    listener: str
    security_protocol: str
    principal: str
    client_id: str
    software: str
    software_version: str
    age_ms: int
    idle_ms: int
    is_busy: bool


@dataclasses.dataclass(frozen=True, slots=True)
class RequestRow:
    """A request that failed, waited, or is none of Produce and Fetch; the others are only counted.

    ``steps`` are codes in the answer that are no errors, but what the protocol does next; ``number`` tells the request from
    others of this broker's life.
    """

    at_ms: int
    api: str
    version: int
    client_id: str
    peer: str
    local_ms: float
    total_ms: float
    nbytes: int
    answer_nbytes: int
    errors: tuple[str, ...]
    steps: tuple[str, ...]
    reason: str
    number: int


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorRow:
    """An error that a client was answered with, how often, and when last; ``reason`` is the last one's, in words."""

    api: str
    error: str
    client_id: str
    count: int
    last_ms: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Outage:
    """Since when nothing answers, and why; ``seen_ms`` is when what is shown was seen, None where nothing was."""

    since_ms: int
    why: str
    seen_ms: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRow:
    """The cluster as a whole, as far as it is known.

    ``warnings`` are sentences, ``looked_at`` in words all that they could be about; empty where nothing was looked at yet.
    """

    cluster_id: str
    controller_id: int
    brokers: tuple[int, ...]
    bootstrap_servers: str
    topics: int
    partitions: int
    under_replicated: int
    offline: int
    groups: int
    rates: TrafficRates
    warnings: tuple[str, ...]
    looked_at: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class BrokerRow(ClusterRow):
    """The same, and what a broker is like itself."""

    broker_id: int
    up_ms: int
    led: int
    connections: int
    requests: float
    errors: float
    loop_lag_ms: float


def id_text(topic_id: bytes) -> str:
    """As Kafka's own tools show it: base64 for URLs, without padding; empty where there is none."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=") if any(topic_id) else ""
