"""What the worlds of several machines share, whoever keeps the metadata: network, machines, and what power loss has damaged.

In ``Mode.POWER_OF_ONE`` a machine may lose power, and what it has not flushed, only while each partition has another
replica in sync that is *intact*: it has lost nothing since it joined the ISR, and has been in the cluster since then. And until
the controller has removed the machine's replicas from the ISR the others stay there: they neither leave the cluster nor are
removed from a partition by a move that is cancelled or replaced. Under these conditions Kafka loses nothing; otherwise a replica
that has lost records, and comes back when no other one is in sync, becomes the leader (KIP-966 will change that).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import trio

from ottla.base.errors import ErrorCode
from ottla.metadata.types import LeaderState, ReplicaAssignment

from ..faults import JumpingClock
from ..history import TopicPartition
from ..machine import Machine, Place
from ..run import Mode, Run
from ..world import CONFIG
from .client import ClusterClient
from .network import ClusterNetwork

PORT = 9092
RESTART_SECONDS = (0.05, 0.5, 3.0, 8.0)

CLUSTER_CONFIG = {
    **CONFIG,
    "replica.fetch.backoff.ms": "200",
    "log.cleaner.backoff.ms": "1500",
    "replica.fetch.wait.max.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "900",
    "replica.lag.time.max.ms": "2000",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "300",
    "request.timeout.ms": "3000",
}


class BrokerPlace(Place, Protocol):
    """The surroundings of a broker's machine."""

    host: str

    def cut_from_store(self) -> None:
        """Cut the broker from what keeps the metadata, until ``heal``."""
        ...

    def heal(self) -> None: ...


class SimulatedCluster(Run):
    """A run with several machines; for its clients it is like ``World``."""

    replication_factor = 3
    topic_configs: Mapping[str, str] = {"min.insync.replicas": "2"}
    acks: tuple[int, ...] = (-1,)
    retriable = frozenset(
        {
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        }
    )

    forwards_again = False
    """Whether a request may be carried out twice: a broker that forwards one repeats it where it gets no response."""
    places: Mapping[int, BrokerPlace]
    machines: dict[int, Machine]

    def __init__(self, seed: int, mode: Mode, *, replication_factor: int, session_timeout_ms: int) -> None:
        super().__init__(seed, mode)
        self._min_isr = str(min(2, replication_factor))
        self.replication_factor = replication_factor
        self.topic_configs: Mapping[str, str] = {"min.insync.replicas": self._min_isr}
        self.clock = JumpingClock()
        self.network = ClusterNetwork(self.random_for("network"))
        self.session_timeout_ms = session_timeout_ms
        self.trusts_time = True
        self.damage = Damage(self)

    def properties(self, given: Mapping[str, str]) -> dict[str, str]:
        """Of every broker."""
        factor = str(self.replication_factor)
        return {
            **CLUSTER_CONFIG,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": self._min_isr,
            "default.replication.factor": factor,
            "min.insync.replicas": self._min_isr,
            **given,
        }

    @property
    def addresses(self) -> dict[str, int]:
        return {place.host: PORT for place in self.places.values()}

    def client(self, name: str) -> ClusterClient:
        return ClusterClient(self.network, name, self.addresses, self.random_for(f"network {name}"))

    def _may_lose_power(self, broker_id: int) -> bool:
        if self.mode is not Mode.POWER_OF_ONE:
            return True
        may = self.damage.spares(broker_id)
        if may:
            self.damage.lost_power(broker_id)
            for other, machine in self.machines.items():
                if other != broker_id:
                    machine.spare()
        return may

    @property
    def must_spare(self) -> bool:
        """Whether a machine has lost power, so that all others must stay as they are (see the module)."""
        return self.mode is Mode.POWER_OF_ONE and self.damage.is_there

    def is_well(self, broker_id: int) -> bool:
        """Whether a broker serves, and its machine has no fault."""
        machine = self.machines[broker_id]
        is_serving = machine.ready.is_set() and not machine.disk.is_dead  # who has just died has yet to leave ``ready``
        return is_serving and not machine.is_stopping and not machine.is_faulty

    # --- what the keeper of the metadata has --------------------------------------------------------------------------

    @abstractmethod
    async def open(self, nursery: trio.Nursery) -> None:
        """Start the keeper."""

    @abstractmethod
    def is_member(self, broker_id: int) -> bool:
        """Whether a broker is in the cluster, the controller has handled that, and nothing is about to change it."""

    @abstractmethod
    def registration(self, broker_id: int) -> int | None:
        """The epoch under which a broker is registered; None if it is not."""

    @abstractmethod
    async def expire(self, broker_id: int) -> None:
        """End the session of a broker, if it has one."""

    @abstractmethod
    def host(self, node_id: int) -> str:
        """Where a broker or a controller is in the network."""

    @abstractmethod
    def states(self) -> Mapping[TopicPartition, LeaderState]:
        """Leader and ISR of every partition that has had a leader. The same object until something is written."""

    @abstractmethod
    def assignment(self, topic: str) -> Mapping[int, Sequence[int]]:
        """The replicas of each partition of a topic, the preferred leader first."""

    @abstractmethod
    def moving(self) -> Mapping[TopicPartition, ReplicaAssignment]:
        """The partitions whose replicas are being moved."""

    @abstractmethod
    async def remove_controller(self) -> None:
        """Have another controller elected."""

    @abstractmethod
    def controller(self) -> int | None:
        """The controller; None if there is none."""

    def eligible(self, partition: TopicPartition) -> Sequence[int]:
        """The eligible leader replicas (KIP-966), where there are any."""
        return ()

    def unfinished(self) -> str | None:
        """What the controller has begun and not ended; None if there is nothing."""
        return None

    def check_writes(self) -> None:
        """Note a violation if a controller has written that was none any more."""


class Damage:
    """Which replicas in sync may have lost records: those whose machine has lost power since they joined the ISR."""

    def __init__(self, world: SimulatedCluster) -> None:
        self._world = world
        self._damaged: set[tuple[int, TopicPartition]] = set()

    @property
    def is_there(self) -> bool:
        """Whether a replica in sync is damaged."""
        return bool(self._damaged)

    def lost_power(self, broker_id: int) -> None:
        self._damaged.update((broker_id, partition) for partition in self._world.states())

    def look(self) -> None:
        """Look at the ISRs: a replica that left one gets everything before it joins again."""
        if self._damaged:
            states = self._world.states()
            self._damaged = {(i, key) for i, key in self._damaged if key in states and i in states[key].isr}

    def spares(self, broker_id: int) -> bool:
        """Whether every partition has an intact replica in sync elsewhere."""
        members = {other for other in self._world.machines if other != broker_id and self._world.is_member(other)}
        return all(
            any(other in members and not self.has(other, partition) for other in state.isr)
            for partition, state in self._world.states().items()
        )

    def has(self, broker_id: int, partition: TopicPartition) -> bool:
        return (broker_id, partition) in self._damaged


__all__ = ["PORT", "RESTART_SECONDS", "BrokerPlace", "Damage", "SimulatedCluster"]
