"""The world of several machines: one network, one store that all brokers share, and what their clients need to know."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import trio

from ottla.base.network import Network
from ottla.base.seams import Clock
from ottla.broker.server import StartError
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_home import ClusterHome
from ottla.controller.zookeeper.store.cluster_store import (
    Delete,
    NoNodeError,
    Operation,
    Result,
    StoreError,
)
from ottla.metadata.types import LeaderState, ReplicaAssignment
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome
from ottla.tests.zookeeper_double.store_link import StoreLink

from ..history import TopicPartition
from ..machine import Machine
from ..run import Mode
from .machines import PORT, RESTART_SECONDS, SimulatedCluster
from .network import Host

_decode_state = functools.lru_cache(1024)(znodes.decode_state)
_decode_known_brokers = functools.lru_cache(64)(znodes.decode_known_brokers)
_decode_topic = functools.lru_cache(64)(znodes.decode_topic)
_STORE_LATENCY_SECONDS = 0.003


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


class ClusterWorld(SimulatedCluster):
    """A world whose brokers share one store."""

    places: dict[int, ClusterPlace]

    def __init__(
        self,
        seed: int,
        mode: Mode,
        *,
        brokers: int = 3,
        replication_factor: int = 3,
        session_timeout_ms: int = 3000,
        restart_seconds: tuple[float, ...] = RESTART_SECONDS,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(seed, mode, replication_factor=replication_factor, session_timeout_ms=session_timeout_ms)
        self.store = WatchedStore(self.clock, self.damage.look)
        self._restart_seconds = restart_seconds
        self.places = {broker_id: ClusterPlace(self, broker_id) for broker_id in range(1, brokers + 1)}
        self.machines = {
            broker_id: self._machine(broker_id, place, self.properties(properties))
            for broker_id, place in self.places.items()
        }
        self._states: dict[TopicPartition, LeaderState] = {}
        self._states_at = -1
        self._fenced_up_to = -1
        """The last transaction of the store that was checked."""

    def _machine(self, broker_id: int, place: ClusterPlace, properties: Mapping[str, str]) -> Machine:
        config = {
            **properties,
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{place.host}:{PORT}",
        }
        machine = Machine(self, place.host, config, place, self.random_for(f"life {broker_id}"), self._restart_seconds)
        machine.may_refuse_to_start = _lost_the_store
        machine.may_lose_power = lambda: self._may_lose_power(broker_id)
        return machine

    async def open(self, nursery: trio.Nursery) -> None:
        await self.store.open()
        nursery.start_soon(self.store.run)

    def is_member(self, broker_id: int) -> bool:
        """Whether a broker is in the cluster, the controller has handled that, and nothing is about to change it."""
        nodes = self.store.tree.nodes
        own, known = nodes.get(znodes.broker_path(broker_id)), nodes.get(znodes.KNOWN_BROKERS)
        epochs = {} if known is None else _decode_known_brokers(known.data).epochs
        is_registered = own is not None and epochs.get(broker_id) == own.czxid
        silent_since = self.places[broker_id].link.silent_since
        return is_registered and silent_since is None and self.is_well(broker_id)

    def registration(self, broker_id: int) -> int | None:
        node = self.store.tree.nodes.get(znodes.broker_path(broker_id))
        return None if node is None else node.czxid

    async def expire(self, broker_id: int) -> None:
        node = self.store.tree.nodes.get(znodes.broker_path(broker_id))
        for session in self.store.sessions:
            if node is not None and session.session_id == node.ephemeral_owner:
                self.log("store", f"the session of broker {broker_id} expires")
                await session.expire()

    def host(self, node_id: int) -> str:
        return self.places[node_id].host

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

    def unfinished(self) -> str | None:
        nodes = self.store.tree.nodes
        if znodes.DELETE_TOPICS in nodes and nodes[znodes.DELETE_TOPICS].children:
            return f"topics are not deleted yet: {sorted(nodes[znodes.DELETE_TOPICS].children)}"
        return None

    def check_writes(self) -> None:
        """Transactions of the store are in order, so those after an election must have its epoch."""
        tree = self.store.tree
        nodes, elected = tree.nodes, tree.nodes.get(znodes.CONTROLLER_EPOCH)
        if elected is None or tree.zxid == self._fenced_up_to:
            return
        self._fenced_up_to = tree.zxid
        for (topic, number), state in self.states().items():
            written = nodes[znodes.state_path(topic, number)].mzxid
            if written > elected.mzxid and state.controller_epoch < int(elected.data):
                self.violate(
                    f"{topic}-{number} was written by controller {state.controller_epoch} after {int(elected.data)} was elected"
                )

    def controller(self) -> int | None:
        """The controller according to the store."""
        node = self.store.tree.nodes.get(znodes.CONTROLLER)
        return None if node is None else znodes.decode_controller(node.data)


def _lost_the_store(error: StartError) -> bool:
    """Whether a broker could not start because it lost the store meanwhile."""
    return error.__cause__ is not None and isinstance(error.__cause__.__cause__, StoreError)


__all__ = ["PORT", "ClusterWorld"]
