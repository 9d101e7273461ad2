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
    """A transactional id, as its coordinator knows it; ``state`` in Kafka's words.

    ``started_ms`` is that of the present transaction, or of the last one; ``age_ms`` how long the present one is open, None where
    there is none. ``partitions`` are named where one is asked for. ``coordinator`` is a broker's id.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    age_ms: int | None
    partition_count: int
    partitions: tuple[tuple[str, int], ...]
    coordinator: int

    @property
    def is_open(self) -> bool:
        """Whether its records are not decided, or its markers are not all written."""
        return self.state in ("Ongoing", "PrepareCommit", "PrepareAbort")


@dataclasses.dataclass(frozen=True, slots=True)
class HolderRow:
    """A producer whose open transaction in a partition keeps consumers that read what is committed from what comes after.

    ``held`` counts the offsets they wait for, ``is_first`` says that it is this one that they wait for. ``transactional_id`` is
    None where its coordinator is elsewhere.
    """

    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    transactional_id: str | None
    start: int
    last_stable: int
    high_watermark: int
    last_ms: int
    age_ms: int
    is_first: bool

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
    """A user with SCRAM credentials; ``credentials`` are the mechanisms, each with its number of iterations."""

    name: str
    credentials: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class QuotaRow:
    """A quota. ``entity`` are type and name, None for the default of the type."""

    entity: tuple[tuple[str, str | None], ...]
    values: tuple[tuple[str, float], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeRow:
    """A live broker of the cluster; ``listeners`` are name, host and port."""

    broker_id: int
    rack: str | None
    listeners: tuple[tuple[str, str, int], ...]
    is_controller: bool
    replicas: int
    led: int
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
    """``moves`` is None where the controller, who knows them, cannot be asked. ``missing`` are brokers that are not alive.
    ``partitions`` is how many were looked at for troubles.

    ``asked`` is the broker that knows it so, None where it is the cluster's metadata as any of them tells it.
    """

    cluster_id: str
    controller: int | None
    asked: int | None
    nodes: tuple[NodeRow, ...]
    missing: tuple[int, ...]
    partitions: int
    troubles: tuple[TroubleRow, ...]
    trouble_count: int
    moves: tuple[MoveRow, ...] | None
