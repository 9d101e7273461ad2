"""Row types of transactions, ACLs, users, quotas and brokers.

Requests to any Kafka can answer all of them.

As in ``rows``: never changed, times in milliseconds since the epoch, None for what is not known.
"""

from __future__ import annotations

import dataclasses

MOST_MOVES = 500
"""A page shows at most so many moves of replicas."""


@dataclasses.dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id as its coordinator knows it."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    """Kafka's word for it."""
    timeout_ms: int
    started_ms: int | None
    """When the present transaction began, or the last one; None if there was none."""
    age_ms: int | None
    """How long the present transaction is open; None if there is none."""
    partition_count: int
    partitions: tuple[tuple[str, int], ...]
    """Topic and number of each, where one transaction is asked for."""
    coordinator: int
    """A broker id."""

    @property
    def is_open(self) -> bool:
        """Whether its records are not decided, or its markers are not all written."""
        return self.state in ("Ongoing", "PrepareCommit", "PrepareAbort")


@dataclasses.dataclass(frozen=True, slots=True)
class HolderRow:
    """A producer whose open transaction in a partition holds back the read_committed consumers of the partition."""

    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    transactional_id: str | None
    """None if its coordinator is another broker."""
    start: int
    """The first offset of the transaction."""
    last_stable: int
    high_watermark: int
    last_ms: int
    age_ms: int
    is_first: bool
    """Whether the last stable offset is where this transaction begins, so that consumers wait for it."""

    @property
    def held(self) -> int:
        return max(self.high_watermark - self.last_stable, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class AclRow:
    """One access rule, in the words that Kafka's tools print."""

    resource_type: str
    name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclasses.dataclass(frozen=True, slots=True)
class UserRow:
    """A user with SCRAM credentials."""

    name: str
    credentials: tuple[tuple[str, int], ...]
    """The mechanisms, each with its number of iterations."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuotaRow:
    """The quotas of one entity."""

    entity: tuple[tuple[str, str | None], ...]
    """Pairs of type and name; the name is None for the default of the type."""
    values: tuple[tuple[str, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRow:
    """A live broker of the cluster."""

    broker_id: int
    rack: str | None
    listeners: tuple[tuple[str, str, int], ...]
    """Name, host and port of each."""
    is_controller: bool
    replicas: int
    led: int
    """The number of partitions that it leads."""
    out_of_sync: int


@dataclasses.dataclass(frozen=True, slots=True)
class TroubleRow:
    """A partition without a leader, or with fewer replicas in sync than it should have."""

    topic: str
    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_offline(self) -> bool:
        return self.leader is None


@dataclasses.dataclass(frozen=True, slots=True)
class MoveRow:
    """A partition whose replicas are being moved."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterDetail:
    """The brokers of the cluster, and the partitions that need attention."""

    cluster_id: str
    controller: int | None
    asked: int | None
    """The broker whose own knowledge this is; None for the cluster's metadata as any broker returns it."""
    nodes: tuple[NodeRow, ...]
    missing: tuple[int, ...]
    """Ids of brokers that have replicas and are not alive."""
    partitions: int
    """The number of partitions that were looked at for troubles."""
    troubles: tuple[TroubleRow, ...]
    """The first of them; ``trouble_count`` counts them all."""
    trouble_count: int
    moves: tuple[MoveRow, ...] | None
    """None if the controller, which knows them, cannot be asked."""
