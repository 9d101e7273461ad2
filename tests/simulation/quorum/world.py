"""The world of brokers in a KRaft cluster: three to five machines with a broker, and one, three or five with a controller.

The world knows what is committed from the controllers: each state that one of them has applied, in the order of the metadata log.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import trio

from ottla.base.partitions import NO_LEADER
from ottla.broker.directories.format_directories import Formatting, format_folders
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.features import GROUP_VERSION
from ottla.controller.quorum.metadata_version import ELR
from ottla.controller.raft.events import ResignRequested
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.controller.zookeeper.store.cluster_home import ClusterHome
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LeaderState, ReplicaAssignment
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest

from ...controller.quorum.active.helpers.controller_server import LEVELS, LISTENER, ControllerQuorum, ControllerServer
from ..cluster.machines import PORT, RESTART_SECONDS, SimulatedCluster
from ..cluster.network import Host
from ..faults import Crashed
from ..history import TopicPartition
from ..machine import DATA, Machine
from ..run import Mode
from .controller_machine import CONTROLLER_PORT, ControllerMachine
from .inspector import MetadataInspector

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
FIRST_CONTROLLER = 3001
CONSUMER_GROUP_CONFIG = {
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
_LONG_AGO_MS = -1_000_000


class WatchedController(ActiveController):
    """A controller whose every committed state the world sees, those that do not last as well."""

    def __init__(self, world: QuorumClusterWorld, *args: Any) -> None:
        super().__init__(*args)
        self._world = world

    def apply_committed(self, records: Any, position: Any) -> None:
        super().apply_committed(records, position)
        self._world.take(self.committed_state)

    def committed(self, offset: int) -> None:
        assert self._claim is not None
        states = [state for end, state in self._claim.uncommitted if end <= offset]
        for state in states:
            self._world.take(state)
        super().committed(offset)

    def claim(self, epoch: int, now_ms: int) -> None:
        self._world.metadata.claimed(self, now_ms)
        super().claim(epoch, now_ms)

    def heartbeat(self, request: BrokerHeartbeatRequest, now_ms: int, respond: Any) -> bool:
        if self.is_active:
            self._world.heard[request.broker_id] = now_ms
        metadata = self._world.metadata
        metadata.heard(self, request, now_ms)
        return super().heartbeat(
            request, now_ms, _watched(respond, lambda response: metadata.answered(self, request, response))
        )

    def register(self, request: BrokerRegistrationRequest, version: int, *others: Any) -> None:
        *times, respond = others
        told = _watched(respond, lambda response: self._world.metadata.registered(request, response))
        super().register(request, version, *times, told)

    def run(self, operation: Any, respond: Any) -> None:
        super().run(operation, _watched(respond, self._world.metadata.responded))

    def has_unfenced(self, broker_id: int) -> bool:
        broker = self.state.image.quorum_brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def end_session(self, broker_id: int) -> None:
        """Fence a broker, as if it had not been heard of for longer than a session lasts."""
        self.tick(self._be_stale(broker_id))

    def drop_session(self, broker_id: int) -> None:
        """Have a broker's session over while nobody has fenced it: who registers next in its place may."""
        assert self._claim is not None
        session = self._claim.heartbeats.remove_expired(self._be_stale(broker_id))
        assert session is not None and session.broker_id == broker_id, f"{session} was over before"

    def _be_stale(self, broker_id: int) -> int:
        assert self._claim is not None
        epoch = self.state.image.quorum_brokers[broker_id].epoch
        self._claim.heartbeats.track(broker_id, epoch, _LONG_AGO_MS)
        return int(trio.current_time() * 1000)


def _watched(respond: Callable[[Any], None], told: Callable[[Any], None]) -> Callable[[Any], None]:
    """``respond``, of which the world is told before."""

    def tell(response: Any) -> None:
        told(response)
        respond(response)

    return tell


class QuorumPlace:
    """The surroundings of a broker's machine: its host in the network, and its paths to the controllers."""

    def __init__(self, world: QuorumClusterWorld, broker_id: int) -> None:
        self.host = f"broker-{broker_id}"
        self.network = Host(world.network, self.host)
        self.is_cut = False
        """Whether ``cut_from_store`` holds."""
        self._world = world

    def home(self) -> ClusterHome | None:
        self._world.network.wake_up(self.host)
        return None

    def gone(self, *, power_lost: bool) -> None:
        self._world.network.kill(self.host, silently=power_lost)

    def cut_from_store(self) -> None:
        """Cut the broker from all controllers, also after its next starts, until ``heal``."""
        self.is_cut = True
        self._world.network.part(self._ways())

    def heal(self) -> None:
        self.is_cut = False
        self._world.network.join(self._ways())

    def _ways(self) -> list[tuple[str, str]]:
        hosts = [machine.name for machine in self._world.controllers.values()]
        return [*((self.host, host) for host in hosts), *((host, self.host) for host in hosts)]


class QuorumClusterWorld(SimulatedCluster):
    """See the module.

    ``has_elr``: whether eligible leader replicas (KIP-966) are on. ``controllers`` are voters at first, and ``spare_controllers``
    are not. ``snapshot_bytes`` is how much of the metadata log comes between two snapshots, of controllers and brokers.
    """

    forwards_again = True
    places: dict[int, QuorumPlace]

    def __init__(
        self,
        seed: int,
        mode: Mode,
        *,
        brokers: int = 3,
        controllers: int = 3,
        spare_controllers: int = 0,
        snapshot_bytes: int | None = None,
        has_elr: bool = False,
        replication_factor: int = 3,
        session_timeout_ms: int = 3000,
        imbalance_check_interval_ms: int | None = None,
        restart_seconds: tuple[float, ...] = RESTART_SECONDS,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(seed, mode, replication_factor=replication_factor, session_timeout_ms=session_timeout_ms)
        self.heard: dict[int, int] = {}
        """When the active controller has last heard of each broker, in ms of the loop's time."""
        self.image = ClusterImage()
        """The newest that is committed."""
        self._states: dict[TopicPartition, LeaderState] | None = None
        self.metadata = MetadataInspector(self)
        self.quorum = ControllerQuorum(
            CLUSTER_ID,
            seed=seed,
            levels={**LEVELS, GROUP_VERSION: 1, **({ELR: 1} if has_elr else {})},
            settings={
                "session_timeout_ms": session_timeout_ms,
                "default_replication_factor": replication_factor,
                "min_insync_replicas": int(self._min_isr),
                "imbalance_check_interval_ms": imbalance_check_interval_ms,
            },
            new_controller=functools.partial(WatchedController, self),
            log_settings=_log_settings(snapshot_bytes),
        )
        self.quorum.on_response = self.metadata.carried_out
        first = range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)
        self.controllers = {
            node_id: ControllerMachine(self, self.network, self.quorum, node_id)
            for node_id in range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers + spare_controllers)
        }
        self.quorum.format(*first)
        self.has_spares = spare_controllers > 0
        self._restart_seconds = restart_seconds
        self.places = {broker_id: QuorumPlace(self, broker_id) for broker_id in range(1, brokers + 1)}
        if snapshot_bytes is not None:
            properties = {**properties, "metadata.log.max.record.bytes.between.snapshots": str(snapshot_bytes)}
        self.machines = {
            broker_id: self._machine(broker_id, place, self.properties({**CONSUMER_GROUP_CONFIG, **properties}))
            for broker_id, place in self.places.items()
        }

    def _machine(self, broker_id: int, place: QuorumPlace, properties: Mapping[str, str]) -> Machine:
        bootstrap = ",".join(f"{machine.name}:{CONTROLLER_PORT}" for machine in self.controllers.values())
        config = {
            **properties,
            "process.roles": "broker",
            "node.id": str(broker_id),
            "listeners": f"PLAINTEXT://{place.host}:{PORT}",
            "controller.listener.names": LISTENER,
            "controller.quorum.bootstrap.servers": bootstrap,
            "broker.heartbeat.interval.ms": str(self.session_timeout_ms // 5),
        }
        del config["broker.id"]
        machine = Machine(self, place.host, config, place, self.random_for(f"life {broker_id}"), self._restart_seconds)
        machine.may_lose_power = lambda: self._may_lose_power(broker_id)
        wanted = Formatting(broker_id, CLUSTER_ID, [DATA], DATA, LISTENER, is_dynamic=False)
        format_folders(machine.disk, wanted, random.Random(f"{self.seed} {broker_id}"), 1, lambda line: None)
        return machine

    async def open(self, nursery: trio.Nursery) -> None:
        for machine in self.controllers.values():
            nursery.start_soon(machine.keep_running)
        for machine in self.controllers.values():
            await machine.wait_ready()

    # --- what is committed --------------------------------------------------------------------------------------------

    def take(self, state: ControllerState) -> None:
        """A controller has this state, which is committed."""
        self.metadata.committed(state)
        new, known = state.image.position, self.image.position
        if new is not None and (known is None or new.offset > known.offset):
            self.image = state.image
            self._states = None
            self.damage.look()

    def is_member(self, broker_id: int) -> bool:
        broker = self.image.quorum_brokers.get(broker_id)
        if broker is None or broker.is_fenced or broker.is_shutting_down or not self.is_well(broker_id):
            return False
        hosts = [self.places[broker_id].host, *(machine.name for machine in self.controllers.values())]
        if any(self.network.is_troubled(host) for host in hosts):
            return False
        silent_ms = trio.current_time() * 1000 - self.heard.get(broker_id, _LONG_AGO_MS)
        return silent_ms < self.session_timeout_ms / 3

    def registration(self, broker_id: int) -> int | None:
        broker = self.image.quorum_brokers.get(broker_id)
        return None if broker is None else broker.epoch

    async def expire(self, broker_id: int) -> None:
        active = self.controller()
        if active is not None and (controller := self.watched(active)).has_unfenced(broker_id):
            self.log("quorum", f"the session of broker {broker_id} is over")
            with suppress(Crashed):  # at the record that fences it
                controller.end_session(broker_id)

    def host(self, node_id: int) -> str:
        return self.places[node_id].host if node_id in self.places else self.controllers[node_id].name

    def states(self) -> Mapping[TopicPartition, LeaderState]:
        if self._states is None:
            self._states = {
                (name, number): LeaderState(each.leader, each.leader_epoch, each.isr, 0, each.is_recovering)
                for name, topic in sorted(self.image.topics.items())
                for number, each in topic.partitions.items()
            }
        return self._states

    def eligible(self, partition: TopicPartition) -> tuple[int, ...]:
        topic = self.image.topics.get(partition[0])
        return topic.partitions[partition[1]].elr if topic is not None and partition[1] in topic.partitions else ()

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        partitions = self.image.topics[topic].partitions
        return {number: partition.replicas for number, partition in partitions.items()}

    def moving(self) -> dict[TopicPartition, ReplicaAssignment]:
        return {
            (name, number): ReplicaAssignment(each.replicas, each.adding, each.removing)
            for name, topic in sorted(self.image.topics.items())
            for number, each in topic.partitions.items()
            if each.adding or each.removing
        }

    @property
    def active(self) -> ControllerServer | None:
        """The active controller of the highest epoch."""
        active = [machine.controller for machine in self.controllers.values() if machine.controller.is_active]
        return max(active, key=lambda each: each.node.driver.node.epoch) if active else None

    def controller(self) -> int | None:
        return None if (active := self.active) is None else active.node_id

    def watched(self, node_id: int) -> WatchedController:
        """What a running controller decides with."""
        controller = self.controllers[node_id].controller.node.controller
        assert isinstance(controller, WatchedController)
        return controller

    async def remove_controller(self) -> None:
        """Have the active controller resign."""
        if (active := self.active) is not None:
            driver = active.node.driver
            with suppress(Crashed):
                driver.step(ResignRequested(driver.node.epoch))

    def check_writes(self) -> None:
        self.metadata.look()

    def unfinished(self) -> str | None:
        for broker_id, broker in self.image.quorum_brokers.items():
            if broker.is_fenced or broker.is_shutting_down:
                return f"broker {broker_id} is fenced"
        leaderless = [key for key, state in self.states().items() if state.leader == NO_LEADER]
        return f"without a leader: {leaderless}" if leaderless else None


def _log_settings(snapshot_bytes: int | None) -> MetadataLogSettings:
    if snapshot_bytes is None:
        return MetadataLogSettings()
    return MetadataLogSettings({"record_bytes_between_snapshots": snapshot_bytes, "segment_bytes": 4 * snapshot_bytes})


__all__ = ["QuorumClusterWorld"]
