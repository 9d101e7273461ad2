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
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .findings import CheckRow, FindingRow

AssignedTopics = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics with numbers of partitions, both in order."""
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

    A source made of requests knows all partitions, not only those of one broker.
    """

    name: str
    is_internal: bool
    partitions: int
    replicas: int
    under_replicated: int
    offline: int
    here: int
    """The number of partitions that have a replica on this broker."""
    led: int
    """The number of partitions that this broker leads."""
    size: int | None
    """In bytes, of the replicas on this broker; with a source made of requests, of the leaders' replicas."""
    records: int | None
    """The number of offsets in the partitions led here."""
    rates: TrafficRates
    newest_ms: int | None
    """The largest timestamp of the records, as far as it is known without reading a file."""
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    max_lag: int | None
    """The largest lag of a group in one partition."""


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a topic.

    From ``start`` on, the fields describe the replica on this broker. A source made of requests describes the leader's replica;
    it does not know ``end`` and ``segments``.
    """

    topic: str
    number: int
    leader: int | None
    """None while there is none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    """The log start offset."""
    high_watermark: int | None = None
    last_stable: int | None = None
    """The last stable offset."""
    end: int | None = None
    """The log end offset."""
    size: int | None = None
    segments: int | None = None
    newest_ms: int | None = None
    open_transactions: int = 0

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentRow:
    """One file of records."""

    base_offset: int
    next_offset: int
    size: int
    created_ms: int
    newest_ms: int | None
    """As in ``TopicRow``."""
    is_active: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerRow:
    """An idempotent or transactional producer as a partition remembers it; others leave no trace."""

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_ms: int
    transaction_start: int | None
    """The first offset of its open transaction."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigRow:
    """A setting of a topic."""

    name: str
    value: str
    source: str
    """Where its value comes from, in Kafka's words."""
    doc: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReaderRow:
    """A group that has committed offsets of a topic."""

    group_id: str
    state: str
    members: int | None
    partitions: int
    lag: int | None
    """In records, over the partitions whose end is known here."""


@dataclasses.dataclass(frozen=True, slots=True)
class TopicDetail:
    """A topic with its partitions, settings, producers and groups."""

    row: TopicRow
    topic_id: str
    partitions: Sequence[PartitionRow]
    configs: Sequence[ConfigRow]
    producers: Sequence[ProducerRow]
    """The newest ones; ``producer_count`` counts them all."""
    producer_count: int
    readers: Sequence[ReaderRow]


@dataclasses.dataclass(slots=True)
class GroupRow:
    """A group.

    A broker by itself knows the groups that it coordinates, and the ends of the partitions that it leads.
    """

    group_id: str
    group_type: str
    """classic, consumer (KIP-848), share or streams; "" where a broker is older than types."""
    state: str
    protocol_type: str
    protocol: str
    """The assignor."""
    epoch: int | None
    """The epoch of a consumer group, the generation of a classic one, which only its coordinator knows."""
    assignment_epoch: int | None
    """The epoch of a consumer group's target assignment."""
    members: int | None
    topics: int
    partitions: int
    lag: int | None
    """In records, over the partitions whose end is known; None if there is none of these."""
    max_lag: int | None
    """The largest lag in one partition, as ``lag``."""
    unknown: int
    """The number of partitions whose end is not known."""
    lost: int
    """The number of partitions whose next record has been deleted already."""
    committed: int | None
    """The sum of the committed offsets of the partitions whose end is known; None if there is none of these."""


class GroupRows(NamedTuple):
    """All groups, and the largest lag in one partition of each topic."""

    rows: list[GroupRow]
    max_lags: Mapping[str, int]


@dataclasses.dataclass(slots=True)
class GroupPartitionRow:
    """A partition that a group has committed an offset of, or that a member was assigned."""

    topic: str
    number: int
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    lag_ms: int | None
    """How long the next record to be read has been there."""
    is_lost: bool
    """Whether that record has been deleted already."""
    committed_ms: int | None
    metadata: str
    owner: str | None
    """A member id."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """How far a member of a consumer group has come to the target assignment, and what it reads."""

    epoch: int
    state: str
    """For people."""
    to_give_up: AssignedTopics
    """Partitions that it has and that the target does not give it."""
    awaited: AssignedTopics
    """Partitions that the target gives it and that it does not have yet."""
    target: AssignedTopics
    topics: tuple[str, ...]
    """The names of topics that it reads."""
    expression: str
    """The regular expression of topics that it reads besides, or ""."""
    is_classic: bool
    """Whether its client has the classic protocol."""

    def of_topics(self, names: AbstractSet[str]) -> ConsumerProgress:
        """Without whatever is of other topics."""
        return dataclasses.replace(
            self,
            to_give_up=_of_topics(self.to_give_up, names),
            awaited=_of_topics(self.awaited, names),
            target=_of_topics(self.target, names),
            topics=tuple(name for name in self.topics if name in names),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class MemberRow:
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_timeout_ms: int | None
    assigned: AssignedTopics | None
    """The numbers of its partitions by topic; None if its assignment cannot be read."""
    consumer: ConsumerProgress | None = None
    """Of a member of a consumer group."""

    def of_topics(self, names: AbstractSet[str]) -> MemberRow:
        """Without whatever is of other topics."""
        given, progress = self.assigned, self.consumer
        return dataclasses.replace(
            self,
            assigned=None if given is None else _of_topics(given, names),
            consumer=None if progress is None else progress.of_topics(names),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ExpressionRow:
    """A regular expression by which members of a consumer group read topics."""

    expression: str
    members: int
    topics: tuple[str, ...] | None
    """Those that it stands for; None where they are not looked up yet, and where only the coordinator knows them."""
    resolved_ms: int | None
    """When they were looked up."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupDetail:
    """A group with its members and partitions."""

    row: GroupRow
    members: Sequence[MemberRow]
    partitions: Sequence[GroupPartitionRow]
    expressions: Sequence[ExpressionRow] = ()

    def topics(self) -> set[str]:
        """The names of all topics in it."""
        names = {row.topic for row in self.partitions}
        for member in self.members:
            names.update(name for name, _ in member.assigned or ())
            if member.consumer is not None:
                names.update(name for name, _ in member.consumer.target)
                names.update(member.consumer.topics)
        names.update(name for row in self.expressions for name in row.topics or ())
        return names

    def of_topics(self, names: AbstractSet[str]) -> GroupDetail:
        """Without whatever is of other topics."""
        expressions = [
            row
            if row.topics is None
            else dataclasses.replace(row, topics=tuple(name for name in row.topics if name in names))
            for row in self.expressions
        ]
        return dataclasses.replace(
            self,
            members=[member.of_topics(names) for member in self.members],
            partitions=[row for row in self.partitions if row.topic in names],
            expressions=expressions,
        )


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
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class RequestRow:
    """A request that failed, waited, or is neither Produce nor Fetch; the others are only counted."""

    at_ms: int
    api: str
    version: int
    client_id: str
    peer: str
    local_ms: float
    """The time until its handler first had to wait."""
    total_ms: float
    nbytes: int
    answer_nbytes: int
    errors: tuple[str, ...]
    steps: tuple[str, ...]
    """Codes in the response that are no errors, but what the protocol does next."""
    reason: str
    number: int
    """Unique among the requests of this run of the broker."""
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorRow:
    """An error sent to a client: how often, and when last."""

    api: str
    error: str
    client_id: str
    count: int
    last_ms: int
    reason: str
    """Of the last one, in words."""
    broker: int | None = None
    """The broker that it is of; None where that is not said."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outage:
    """A time in which nothing responds."""

    since_ms: int
    why: str
    seen_ms: int | None
    """When the data on display was read; None if there is none."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRow:
    """The cluster as a whole, as far as it is known."""

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
    findings: tuple[FindingRow, ...]
    """What is wrong, problems first."""
    checks: tuple[CheckRow, ...]
    """Everything that the findings could be about."""


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


def _of_topics(partitions: AssignedTopics, names: AbstractSet[str]) -> AssignedTopics:
    return tuple(each for each in partitions if each[0] in names)


def id_text(topic_id: bytes) -> str:
    """As Kafka's own tools show it: base64 for URLs, without padding; empty where there is none."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=") if any(topic_id) else ""
