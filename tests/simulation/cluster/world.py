"""The world of several machines: one network, one store that all brokers share, and what their clients need to know.

In ``Mode.POWER_OF_ONE`` a machine may lose power, and what it has not flushed, only while each partition has another
replica in sync that is *intact*: it has lost nothing since it joined the ISR, and has been in the cluster since then. And until
the controller has removed the machine's replicas from the ISR the others stay there: they neither leave the cluster nor are
removed from a partition by a move that is cancelled or replaced. Under these conditions Kafka loses nothing; otherwise a replica
that has lost records, and comes back when no other one is in sync, becomes the leader (KIP-966 will change that).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ottla.base.errors import ErrorCode
from ottla.base.network import Network
from ottla.base.seams import Clock
from ottla.broker.server import StartError
from ottla.controller.zookeeper import znodes
from ottla.controller.zookeeper.store.cluster_home import ClusterHome, SharedHome
from ottla.controller.zookeeper.store.cluster_store import (
    Delete,
    NoNodeError,
    Operation,
    Result,
    StoreError,
)
from ottla.controller.zookeeper.store.embedded_store import EmbeddedStore
from ottla.controller.zookeeper.store.store_link import StoreLink
from ottla.metadata.types import LeaderState, ReplicaAssignment

from ..faults import JumpingClock
from ..history import TopicPartition
from ..machine import Machine
from ..run import Mode, Run
from ..world import CONFIG
from .client import ClusterClient
from .network import ClusterNetwork, Host

PORT = 9092
_decode_state = functools.lru_cache(1024)(znodes.decode_state)
_decode_known_brokers = functools.lru_cache(64)(znodes.decode_known_brokers)
_decode_topic = functools.lru_cache(64)(znodes.decode_topic)
_RESTART_SECONDS = (0.05, 0.5, 3.0, 8.0)
_STORE_LATENCY_SECONDS = 0.003

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


class ClusterPlace:
    """The surroundings of one machine: its host in the network, and its link to the store."""

    def __init__(self, world: ClusterWorld, broker_id: int) -> None:
        self.host = f"broker-{broker_id}"
        self.network: Network = Host(world.network, self.host)
        self.link = StoreLink()
        self._world = world
        self._rng = world.random_for(f"store {broker_id}")
        self._is_cut = False

    def home(self) -> ClusterHome | None:
        self._world.network.wake_up(self.host)
        self.link = StoreLink(latency=lambda: self._rng.uniform(0, _STORE_LATENCY_SECONDS))
        if self._is_cut:
            self.link.cut()
        return SharedHome(self._world.store, self.link, self._world.session_timeout_ms)

    def gone(self, *, power_lost: bool) -> None:
        self.link.leave()
        self._world.network.kill(self.host, silently=power_lost)

    def cut_from_store(self) -> None:
        """Cut the broker from the store, also after its next starts, until ``heal``."""
        self._is_cut = True
        self.link.cut()

    def heal(self) -> None:
        self._is_cut = False
        self.link.heal()


class WatchedStore(EmbeddedStore):
    """A store that is inspected after each write, to see states that do not last."""

    def __init__(self, clock: Clock, look: Callable[[], None]) -> None:
        super().__init__(clock)
        self._look = look

    async def write(self, session_id: int, operations: Sequence[Operation]) -> list[Result]:
        results = await super().write(session_id, operations)
        self._look()
        return results


class ClusterWorld(Run):
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

    def __init__(
        self,
        seed: int,
        mode: Mode,
        *,
        brokers: int = 3,
        replication_factor: int = 3,
        session_timeout_ms: int = 3000,
        restart_seconds: tuple[float, ...] = _RESTART_SECONDS,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(seed, mode)
        min_isr = str(min(2, replication_factor))
        self.replication_factor = replication_factor
        self.topic_configs: Mapping[str, str] = {"min.insync.replicas": min_isr}
        factor = str(replication_factor)
        properties = {
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": min_isr,
            "default.replication.factor": factor,
            "min.insync.replicas": min_isr,
            **properties,
        }
        self.clock = JumpingClock()
        self.store = WatchedStore(self.clock, self._look)
        self.network = ClusterNetwork(self.random_for("network"))
        self.session_timeout_ms = session_timeout_ms
        self._restart_seconds = restart_seconds
        self.trusts_time = True
        self.places = {broker_id: ClusterPlace(self, broker_id) for broker_id in range(1, brokers + 1)}
        self.machines = {
            broker_id: self._machine(broker_id, place, properties) for broker_id, place in self.places.items()
        }
        self.damage = Damage(self)
        self._states: dict[TopicPartition, LeaderState] = {}
        self._states_at = -1

    def _machine(self, broker_id: int, place: ClusterPlace, properties: Mapping[str, str]) -> Machine:
        config = {
            **CLUSTER_CONFIG,
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{place.host}:{PORT}",
            **properties,
        }
        machine = Machine(self, place.host, config, place, self.random_for(f"life {broker_id}"), self._restart_seconds)
        machine.may_refuse_to_start = _lost_the_store
        machine.may_lose_power = lambda: self._may_lose_power(broker_id)
        return machine

    @property
    def addresses(self) -> dict[str, int]:
        return {place.host: PORT for place in self.places.values()}

    def client(self, name: str) -> ClusterClient:
        return ClusterClient(self.network, name, self.addresses, self.random_for(f"network {name}"))

    def _look(self) -> None:
        self.damage.look()

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

    def is_member(self, broker_id: int) -> bool:
        """Whether a broker is in the cluster, the controller has handled that, and nothing is about to change it."""
        nodes = self.store.tree.nodes
        own, known = nodes.get(znodes.broker_path(broker_id)), nodes.get(znodes.KNOWN_BROKERS)
        epochs = {} if known is None else _decode_known_brokers(known.data).epochs
        is_registered = own is not None and epochs.get(broker_id) == own.czxid
        silent_since = self.places[broker_id].link.silent_since
        machine = self.machines[broker_id]
        is_well = machine.ready.is_set() and not machine.is_stopping and not machine.is_faulty
        return is_registered and silent_since is None and is_well

    # --- what the store has -------------------------------------------------------------------------------------------

    def states(self) -> Mapping[TopicPartition, LeaderState]:
        """Leader and ISR of every partition that has had a leader. The same object until something is written."""
        zxid = self.store.tree.zxid
        if self._states_at != zxid:
            self._states, self._states_at = self._read_states(), zxid
        return self._states

    def _read_states(self) -> dict[TopicPartition, LeaderState]:
        nodes = self.store.tree.nodes
        found = {}
        if znodes.TOPICS in nodes:
            for topic in sorted(nodes[znodes.TOPICS].children):
                partitions = nodes.get(znodes.partitions_path(topic))
                for name in sorted(partitions.children, key=int) if partitions is not None else ():
                    state = nodes.get(znodes.state_path(topic, int(name)))
                    if state is not None:
                        found[topic, int(name)] = _decode_state(state.data)
        return found

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        """The replicas of each partition of a topic, the preferred leader first."""
        node = self.store.tree.nodes[znodes.topic_path(topic)]
        return {number: tuple(one.replicas) for number, one in _decode_topic(node.data).partitions.items()}

    def moving(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions whose replicas are being moved."""
        nodes = self.store.tree.nodes
        topics = [topic for topic in sorted(nodes[znodes.TOPICS].children) if znodes.topic_path(topic) in nodes]
        return {
            (topic, number): assignment
            for topic in topics
            for number, assignment in _decode_topic(nodes[znodes.topic_path(topic)].data).partitions.items()
            if assignment.is_moving
        }

    async def remove_controller(self) -> None:
        """Remove the controller's node, as administrators do to get another controller."""
        session = self.store.session()
        try:
            await session.multi([Delete(znodes.CONTROLLER)])
        except NoNodeError:
            pass
        await session.close()

    def controller(self) -> int | None:
        """The controller according to the store."""
        node = self.store.tree.nodes.get(znodes.CONTROLLER)
        return None if node is None else znodes.decode_controller(node.data)


class Damage:
    """Which replicas in sync may have lost records: those whose machine has lost power since they joined the ISR."""

    def __init__(self, world: ClusterWorld) -> None:
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


def _lost_the_store(error: StartError) -> bool:
    """Whether a broker could not start because it lost the store meanwhile."""
    return isinstance(error.__cause__, StoreError)


__all__ = ["ClusterWorld"]
