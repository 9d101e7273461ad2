"""Controllers of a quorum that listen on a network, in the loop of a test: their making, their lives, and a listener for each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import trio

from ottla.base.config import Config
from ottla.base.network import Network
from ottla.base.seams import Clock, InlineWorkers, Workers
from ottla.broker.auth.peer_security import peer_security
from ottla.broker.config_file import load_config
from ottla.broker.controller_services import controller_services
from ottla.broker.listener_config import ListenerConfig
from ottla.broker.listeners.acceptor import Acceptor
from ottla.broker.listeners.addresses import ListenerAddress
from ottla.broker.listeners.connection_limits import ConnectionLimits
from ottla.broker.listeners.listener_security import ServedListener, listener_security
from ottla.broker.listeners.monitor import Monitor
from ottla.controller.configs.broker_configs import declared_settings
from ottla.controller.configs.unused_configs import UNUSED
from ottla.controller.quorum.active.configs import ConfigRules
from ottla.controller.quorum.active.context import ActiveSettings
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.node import ControllerNode, RaftWriter, raise_kraft_version, token_expiry
from ottla.controller.quorum.active.request_source import RequestSource
from ottla.controller.quorum.active.requests import ControllerRequests, ControllerRules
from ottla.controller.quorum.active.tokens import TokenRules
from ottla.controller.quorum.bootstrap import bootstrap_records
from ottla.controller.quorum.supported_features import SUPPORTED
from ottla.controller.raft.driver import RaftDriver
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import RaftIdentity
from ottla.controller.raft.settings import MetadataLogSettings, RaftTimes
from ottla.controller.raft.storage import RaftStorage
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.group_coordinator.group_configs import check_group_configs
from ottla.handlers.controller.call import ControllerCall
from ottla.handlers.controller.services import ControllerServices
from ottla.log.disk import Disk
from ottla.log.log_directory import LogDirectory
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotFile, SnapshotHead, encode_snapshot
from ottla.log.settings import LogSettings
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from ottla.wire.schema import Message

LISTENER = "CONTROLLER"
LEVELS = {"metadata.version": 30, "transaction.version": 2}
_LEAVE_MS = 5000


class _ToldNode(ControllerNode):
    """Tells ``on_response`` of every request that is not refused as a whole."""

    on_response: Callable[[Message, Message], None]

    async def ask(self, request: Message, source: RequestSource, listener: str) -> Any:
        response = await super().ask(request, source, listener)
        self.on_response(request, response)
        return response


class ControllerServer:
    """One controller: ``live`` is one life of it, on its disk and at its address."""

    node: ControllerNode
    services: ControllerServices

    def __init__(
        self,
        quorum: ControllerQuorum,
        node_id: int,
        endpoint: ListenerEndpoint,
        network: Network,
        disk: Disk,
        folder: str,
        clock: Clock,
    ) -> None:
        self.node_id = node_id
        self.endpoint = endpoint
        self.key = ReplicaKey(node_id, b"directory" + node_id.to_bytes(7, "big"))
        self.disk = disk
        self._disks = 1
        self.is_down = True
        self.lives = 0
        self._quorum = quorum
        self._network = network
        self._folder = folder
        self._clock = clock
        self._config = load_config(quorum.properties)
        self._listener = ListenerConfig(self._config, LISTENER, quorum.security_protocol)
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self.workers: Workers = InlineWorkers()
        """What the node's disk is waited for by."""

    # --- life ---------------------------------------------------------------------------------------------------------

    def format(self, voters: VoterSet) -> None:
        """Have the node begin with these voters."""
        file = SnapshotFile(self.disk, f"{self._folder}/__cluster_metadata-0", BOOTSTRAP_ID)
        for batch in encode_snapshot(SnapshotHead(0, 1, voters.to_record()), [], epoch=0, now_ms=0):
            file.append(batch)
        file.freeze()

    def take_disk(self, disk: Disk) -> None:
        """An empty disk in place of the one that there was: another directory id, so another voter (KIP-853)."""
        self.disk = disk
        self._disks += 1
        self.key = ReplicaKey(
            self.node_id, b"directory" + self._disks.to_bytes(3, "big") + self.node_id.to_bytes(4, "big")
        )

    async def live(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until ``kill``. Raises what ends the node by itself."""
        self.lives += 1
        self._ended = trio.Event()
        log = MetadataLog(LogDirectory(self.disk, self._folder, self._clock, self.workers), self._quorum.log_settings)
        await log.open()
        self.node = self._made(log)
        acceptor, served = await self._listen()
        self.is_down = False
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.node.run)
                    acceptor.start([served], nursery)
                    task_status.started()
        finally:
            self.is_down = True
            served.listener.close()
            self._ended.set()

    async def _listen(self) -> tuple[Acceptor, ServedListener]:
        config, clock = self._config, self._clock
        self.services = controller_services(config, clock, self.workers, self._quorum.cluster_id, self.node)
        acceptor = Acceptor(
            self.services,
            partial(ControllerCall, self.services),
            Monitor(elapsed=clock.elapsed),
            ConnectionLimits(config, "", {LISTENER}),
        )
        security = listener_security(self._listener, self.workers, is_inter_broker=False)
        listener = await self._network.listen(self.endpoint.host, self.endpoint.port, 10)
        at = ListenerAddress(LISTENER, self.endpoint.host, listener.port, self._listener.security_protocol)
        return acceptor, ServedListener(at, listener, security, is_inter_broker=False)

    def _made(self, log: MetadataLog) -> ControllerNode:
        quorum = self._quorum
        randomness = random.Random(f"{quorum.seed} controller {self.node_id} {self.lives}")
        identity = RaftIdentity(quorum.cluster_id, self.key, (self.endpoint,), LISTENER)
        raft = RaftNode(identity, quorum.times, log.outline(), quorum.bootstrap, VoterSet(), randomness)
        driver = RaftDriver(raft, RaftStorage(log), self._connect, self._clock, self.workers)
        writer = RaftWriter(driver, self._clock)
        settings = ActiveSettings(self.node_id, quorum.cluster_id, **quorum.settings)
        tasks = [token_expiry(self._clock)]
        records = list(bootstrap_records(quorum.levels, []))
        controller = quorum.new_controller(settings, writer, records, randomness, tasks)
        requests = ControllerRequests(
            self.node_id,
            _rules(self.node_id, quorum, self._config),
            randomness,
            lambda: raft.quorum.voters.ids,
            lambda: raft.quorum.kraft_version,
            lambda level, only_checks: raise_kraft_version(driver, level, only_checks),
        )
        registration = ControllerRegistrationRequest(
            controller_id=self.node_id,
            incarnation_id=randomness.randbytes(16),
            zk_migration_ready=False,
            listeners=[Listener(name=LISTENER, host=self.endpoint.host, port=self.endpoint.port)],
            features=[
                Feature(name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest)
                for name, levels in SUPPORTED.items()
            ],
        )
        node = _ToldNode(
            self.node_id,
            driver,
            writer,
            controller,
            lambda: requests,
            registration,
            self._connect,
            quorum.log_settings,
            self._clock,
            self.workers,
        )
        node.on_response = quorum.on_response
        return node

    def _connect(self, address: ControllerAddress) -> BrokerClient:
        name, timeout = f"raft-client-{self.node_id}", self._quorum.times.request_timeout_ms / 1000
        secure = peer_security(self._listener, self.workers, "sasl.mechanism.controller.protocol")
        return BrokerClient(self._network, *address, name, timeout=timeout, secure=secure)

    async def kill(self) -> None:
        """End the present life at once."""
        self._scope.cancel()
        await self._ended.wait()

    async def stop(self) -> None:
        """End the present life as a clean stop does: a leader has another one elected first."""
        await self.node.driver.leave(_LEAVE_MS)
        await self.kill()

    @property
    def is_active(self) -> bool:
        return not self.is_down and self.node.controller.is_active


class ControllerQuorum:
    """Controllers that know each other, and are voters if they are formatted as such.

    ``settings`` are those of ``ActiveSettings``; ``properties`` are in the file of each, which may ask for another
    ``security_protocol`` of its listener.
    """

    def __init__(
        self,
        cluster_id: str,
        *,
        seed: int = 1,
        levels: Mapping[str, int] = LEVELS,
        times: RaftTimes | None = None,
        log_settings: MetadataLogSettings | None = None,
        settings: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
        security_protocol: str = "PLAINTEXT",
        new_controller: Callable[..., ActiveController] = ActiveController,
    ) -> None:
        self.new_controller = new_controller
        self.cluster_id = cluster_id
        self.seed = seed
        self.levels = levels
        self.times = times or RaftTimes()
        self.log_settings = log_settings or MetadataLogSettings()
        self.settings = dict(settings or {})
        self.properties = dict(properties or {})
        self.security_protocol = security_protocol
        self.servers: dict[int, ControllerServer] = {}
        self.on_response: Callable[[Message, Message], None] = lambda request, response: None
        """Told of every request that is not refused as a whole."""

    def add(
        self, node_id: int, host: str, port: int, network: Network, disk: Disk, folder: str, clock: Clock
    ) -> ControllerServer:
        """A controller that is not formatted yet."""
        endpoint = ListenerEndpoint(LISTENER, host, port)
        server = self.servers[node_id] = ControllerServer(self, node_id, endpoint, network, disk, folder, clock)
        return server

    @property
    def voters(self) -> VoterSet:
        """All that were added."""
        return _voters(self.servers.values())

    def format(self, *node_ids: int) -> None:
        """These are the first voters, by default all that were added; the others begin with an empty folder."""
        first = [self.servers[node_id] for node_id in node_ids or self.servers]
        for server in first:
            server.format(_voters(first))

    @property
    def bootstrap(self) -> list[ControllerAddress]:
        return [ControllerAddress(each.endpoint.host, each.endpoint.port) for each in self.servers.values()]

    async def active(self) -> ControllerServer:
        """The active controller, once there is one."""
        await until(lambda: any(server.is_active for server in self.servers.values()))
        return next(server for server in self.servers.values() if server.is_active)


def _voters(servers: Iterable[ControllerServer]) -> VoterSet:
    return VoterSet(QuorumVoter(each.key, (each.endpoint,), 0, 1) for each in servers)


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Return once it holds."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.01)


def _rules(node_id: int, quorum: ControllerQuorum, config: Config) -> ControllerRules:
    log_settings, tokens = config.settings(LogSettings), config.settings(DelegationTokenSettings)
    check_group = partial(check_group_configs, config)
    known = {**UNUSED, **declared_settings(config)}
    return ControllerRules(
        configs=ConfigRules(node_id, [*quorum.servers], log_settings, known, check_group),
        tokens=TokenRules(tokens.secret, tokens.lifetimes),
        supported=SUPPORTED,
        describe_configs=lambda overrides: [],
    )
