"""The input of a plan: brokers with their log directories, partitions with their replicas, sizes and rates.

Of every ``ClusterModel`` is true: a partition's replicas are on different brokers, each of which is in ``brokers``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Key = tuple[str, int]
"""A topic's name and a partition's number."""

Replicas = tuple[int, ...]
"""Ids of brokers; the first is preferred to lead."""

DISK_LIMIT = 0.8
"""How full a volume may get, as Cruise Control's disk.capacity.threshold."""


@dataclasses.dataclass(frozen=True)
class LogDirectoryModel:
    """A log directory."""

    path: str
    total: int | None = None
    """Bytes of its volume; None where brokers don't tell (before Kafka 3.3)."""
    usable: int | None = None
    """Bytes that are free there; None as for ``total``."""


@dataclasses.dataclass(frozen=True)
class BrokerModel:
    """One broker."""

    broker_id: int
    rack: str | None = None
    folders: tuple[LogDirectoryModel, ...] = ()
    is_alive: bool = True
    """A broker that is not alive gets nothing, and keeps what it has."""
    is_leaving: bool = False
    """Every replica is to go elsewhere."""
    out_of_sync: bool = False
    """It shares partitions with other brokers, and is in sync in none of them: it gets nothing, and keeps what it has.

    It was drained and is about to stop, or it has just started.
    """

    @property
    def receives(self) -> bool:
        """Whether replicas may go there."""
        return self.is_alive and not self.is_leaving and not self.out_of_sync


@dataclasses.dataclass(frozen=True)
class PartitionModel:
    """One partition."""

    key: Key
    replicas: Replicas
    leader: int | None
    isr: frozenset[int]
    min_isr: int = 1
    """Its ``min.insync.replicas``."""
    size: int = 0
    """Bytes of each replica."""
    written: int = 0
    """Bytes per second from producers."""
    read: int = 0
    """Bytes per second to consumers."""
    folders: Mapping[int, str] = dataclasses.field(default_factory=dict)
    """The log directory of a replica by broker, where that is known."""

    @property
    def name(self) -> str:
        """As brokers name it in their logs."""
        return f"{self.key[0]}-{self.key[1]}"


@dataclasses.dataclass(frozen=True)
class ClusterModel:
    """A whole cluster."""

    brokers: tuple[BrokerModel, ...]
    partitions: tuple[PartitionModel, ...]
    disk_limit: float = DISK_LIMIT
    """How full a volume may get, as a share of it."""

    def __post_init__(self) -> None:
        known = {broker.broker_id for broker in self.brokers}
        assert len(known) == len(self.brokers)
        for partition in self.partitions:
            assert len(set(partition.replicas)) == len(partition.replicas) > 0
            assert known.issuperset(partition.replicas)

    @property
    def by_id(self) -> dict[int, BrokerModel]:
        return {broker.broker_id: broker for broker in self.brokers}


def why_fixed(partition: PartitionModel, brokers: Mapping[int, BrokerModel]) -> str | None:
    """Why a partition is left as it is; None if it may move.

    A move needs a leader to copy from. Where fewer replicas are in sync than ``acks=all`` asks for, the disks have enough to do,
    unless what is missing is on a broker that leaves. A broker that is down may come back, and be in sync with little copied.
    """
    if partition.leader is None:
        return "it has no leader"
    for replica in partition.replicas:
        broker = brokers[replica]
        if not broker.is_alive and not broker.is_leaving:
            return f"broker {replica} is down"
        if broker.out_of_sync and not broker.is_leaving:
            return f"broker {replica} is in sync nowhere: it was drained, or has just started"
    staying = [replica for replica in partition.replicas if not brokers[replica].is_leaving]
    needed = min(partition.min_isr, len(partition.replicas))
    if len(partition.isr) < needed and not partition.isr.issuperset(staying):
        return f"{len(partition.isr)} replicas are in sync, fewer than min.insync.replicas"
    return None
