"""Controllers of a quorum that listen on a network, in the loop of a test: the real ones, with a plain listener each."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import trio

from ottla.base.config import Config
from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.network import WOULD_BLOCK, Connection, Network
from ottla.base.seams import Clock, InlineWorkers, Workers
from ottla.controller.broker_configs import declared_settings
from ottla.controller.quorum.active.configs import ConfigRules
from ottla.controller.quorum.active.context import ActiveSettings
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.node import OF_RAFT, ControllerNode, RaftWriter, raise_kraft_version, token_expiry
from ottla.controller.quorum.active.requests import ControllerRequests, ControllerRules, RequestSource
from ottla.controller.quorum.active.tokens import TokenRules
from ottla.controller.quorum.bootstrap import bootstrap_records
from ottla.controller.quorum.supported_features import SUPPORTED
from ottla.controller.raft.driver import RaftDriver
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.node import RaftIdentity, RaftNode
from ottla.controller.raft.settings import MetadataLogSettings, RaftTimes
from ottla.controller.raft.storage import RaftStorage
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.controller.unused_configs import UNUSED
from ottla.handlers.table import HANDLERS
from ottla.log.disk import Disk
from ottla.log.log_folder import LogFolder
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotFile, SnapshotHead, encode_snapshot
from ottla.log.settings import LogSettings
from ottla.replication.broker_client import BrokerClient
from ottla.security.principal import Principal
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_request_header, response_header_encoder
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.messages.principal_data import DefaultPrincipalData
from ottla.wire.registry import request_class, response_class
from ottla.wire.schema import Message

LISTENER = "CONTROLLER"
LEVELS = {"metadata.version": 30, "transaction.version": 2}
_SIZE = struct.Struct(">i")
_LEAVE_MS = 5000
SERVED = (
    *(each.api_key for each in OF_RAFT),
    ApiKey.API_VERSIONS,
    ApiKey.ENVELOPE,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.UPDATE_FEATURES,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
)


class ControllerServer:
    """One controller: ``live`` is one life of it, on its disk and at its address."""

    node: ControllerNode

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
        log = MetadataLog(LogFolder(self.disk, self._folder, self._clock, self.workers), self._quorum.log_settings)
        await log.open()
        self.node = self._made(log)
        connections: set[Connection] = set()
        listener = await self._network.listen(self.endpoint.host, self.endpoint.port, 10)
        self.is_down = False
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.node.run)

                    async def accept() -> None:
                        while True:
                            connection = await listener.accept()
                            connections.add(connection)
                            nursery.start_soon(self._serve, connection)

                    nursery.start_soon(accept)
                    task_status.started()
        finally:
            self.is_down = True
            listener.close()
            for connection in connections:
                connection.close()
            self._ended.set()

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
            _rules(self.node_id, quorum),
            randomness,
            lambda: raft.voters.ids,
            lambda: raft.log.quorum.kraft_version,
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
        return ControllerNode(
            self.node_id,
            driver,
            writer,
            controller,
            requests,
            registration,
            self._connect,
            quorum.log_settings,
            self._clock,
            self.workers,
        )

    def _connect(self, address: ControllerAddress) -> BrokerClient:
        return BrokerClient(self._network, address.host, address.port, f"raft-client-{self.node_id}")

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

    # --- requests -----------------------------------------------------------------------------------------------------

    async def _serve(self, connection: Connection) -> None:
        received = bytearray()
        with contextlib.suppress(OSError):
            while True:
                frame = await _next_frame(connection, received)
                header, start = decode_request_header(frame)
                key, version = ApiKey(header.api_key), header.api_version
                response = await self._answer(key, version, frame[start:])
                encode_header = response_header_encoder(key, version)
                body = encode_header(header.correlation_id) + encode_bytes(response, version)
                await connection.send([_SIZE.pack(len(body)) + body])
        connection.close()

    async def _answer(self, key: ApiKey, version: int, body: bytes) -> Message:
        request: Any = decode(request_class(key), version, body)
        if isinstance(request, ApiVersionsRequest):
            return self._versions()
        if isinstance(request, EnvelopeRequest):
            return await self._open(request)
        return await self._carry_out(request, RequestSource(version))

    async def _carry_out(self, request: Any, source: RequestSource) -> Message:
        try:
            response: Message = await self.node.ask(request, source, LISTENER)
            self._quorum.on_response(request, response)
            return response
        except KafkaError as error:
            return _refused(request, error)

    async def _open(self, envelope: EnvelopeRequest) -> Message:
        """A client's request that a broker has forwarded."""
        header, start = decode_request_header(envelope.request_data)
        key, version = ApiKey(header.api_key), header.api_version
        request: Any = decode(request_class(key), version, envelope.request_data[start:])
        principal = decode(DefaultPrincipalData, 0, envelope.request_principal[2:])
        source = RequestSource(version, Principal(principal.type, principal.name), is_forwarded=True)
        if not self.is_active:
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        response = await self._carry_out(request, source)
        encode_header = response_header_encoder(key, version)
        return EnvelopeResponse(response_data=encode_header(header.correlation_id) + encode_bytes(response, version))

    def _versions(self) -> ApiVersionsResponse:
        keys = []
        for key in SERVED:
            versions = request_class(ApiKey(key)).valid_versions
            keys.append(ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1))
        feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
        return ApiVersionsResponse(api_keys=keys, supported_features=[feature])


class ControllerQuorum:
    """Controllers that know each other, and are voters if they are formatted as such.

    ``settings`` are those of ``ActiveSettings``.
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
        new_controller: Callable[..., ActiveController] = ActiveController,
    ) -> None:
        self.new_controller = new_controller
        self.on_response: Callable[[Message, Message], None] = lambda request, response: None
        """Told of every request that is not refused as a whole."""
        self.cluster_id = cluster_id
        self.seed = seed
        self.levels = levels
        self.times = times or RaftTimes()
        self.log_settings = log_settings or MetadataLogSettings()
        self.settings = dict(settings or {})
        self.servers: dict[int, ControllerServer] = {}

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


async def _next_frame(connection: Connection, received: bytearray) -> bytes:
    """The next request, without its size. Raises OSError at the end of the stream."""
    buffer = memoryview(bytearray(1 << 16))
    while len(received) < _SIZE.size or len(received) < _SIZE.size + _SIZE.unpack_from(received)[0]:
        count = connection.receive_into(buffer)
        if count == WOULD_BLOCK:
            await connection.wait_readable()
        elif count == 0:
            raise OSError("the other side has closed the connection")
        else:
            received += buffer[:count]
    end = _SIZE.size + _SIZE.unpack_from(received)[0]
    frame = bytes(received[_SIZE.size : end])
    del received[:end]
    return frame


def _refused(request: Message, error: KafkaError) -> Message:
    """The response to a request that fails as a whole."""
    key = ApiKey(request.api_key)
    handler = next((each for each in HANDLERS if each.api_key == key), None)
    if handler is not None:
        handler.load()
        if handler.error_response is not None:
            response: Message = handler.error_response(request, error)
            return response
    made: Any = response_class(key)()
    made.error_code = error.code
    return made  # type: ignore[no-any-return]


def _rules(node_id: int, quorum: ControllerQuorum) -> ControllerRules:
    config = Config()
    for settings in (LogSettings, DelegationTokenSettings):
        config.settings(settings)
    known = {**UNUSED, **declared_settings(config)}
    return ControllerRules(
        configs=ConfigRules(node_id, [*quorum.servers], LogSettings(), known),
        tokens=TokenRules(None, DelegationTokenSettings().lifetimes),
        supported=SUPPORTED,
        describe_configs=lambda overrides: [],
    )
