"""Nodes of a quorum with their drivers, disks in memory and one network in memory, all in the loop of a test."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

import trio

from ottla.base.errors import KafkaError
from ottla.base.memory_network import MemoryConnection, MemoryListener, MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.controller.raft import effects
from ottla.controller.raft.driver import RaftDriver
from ottla.controller.raft.events import CleanRequested, PreparedBatch, SnapshotWritten
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import RaftIdentity
from ottla.controller.raft.settings import MetadataLogSettings, RaftTimes
from ottla.controller.raft.storage import RaftStorage
from ottla.controller.raft.voter_set import ListenerEndpoint, QuorumVoter, ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.log_directory import LogDirectory
from ottla.log.memory_disk import MemoryDisk
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId, SnapshotFile, SnapshotHead, encode_snapshot
from ottla.metadata.types import LogPosition
from ottla.replication.broker_client import BrokerClient
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch
from ottla.wire.registry import request_class

from ....replication.helpers.scripted_peer import Peer

LISTENER = "CONTROLLER"
FOLDER = "data"
PORT = 9093
_SERVED = (
    ApiKey.FETCH,
    ApiKey.API_VERSIONS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)
_PATIENCE_S = 60.0


class DrivenNode:
    """One node. ``driver`` is that of its present life."""

    driver: RaftDriver

    def __init__(self, quorum: DrivenQuorum, node_id: int) -> None:
        self.node_id = node_id
        self.disk = MemoryDisk()
        self.key = ReplicaKey(node_id, b"directory" + node_id.to_bytes(7, "big"))
        self.endpoint = ListenerEndpoint(LISTENER, f"node-{node_id}", PORT)
        self.clock = SimulatedClock()
        self.news: list[effects.HighWatermarkAdvanced | effects.LeaderChanged] = []
        self.failure: Exception | None = None
        self.connections: list[MemoryConnection] = []
        self._quorum = quorum
        self._scope = trio.CancelScope()
        self.is_down = True
        self._ended = trio.Event()

    async def live(self, task_status: trio.TaskStatus[None]) -> None:
        """Run until ``kill``, or an error of the disk."""
        self._ended = trio.Event()
        folder = LogDirectory(self.disk, FOLDER, self.clock, InlineWorkers())
        log = MetadataLog(folder, self._quorum.settings)
        await log.open()
        storage = RaftStorage(log)
        identity = RaftIdentity("quorum", self.key, (self.endpoint,), LISTENER)
        node = RaftNode(
            identity,
            self._quorum.times,
            log.outline(),
            self._quorum.bootstrap,
            VoterSet(),
            random.Random(self.node_id),
        )
        self.driver = RaftDriver(node, storage, self._quorum.client, self.clock, InlineWorkers())
        self.news, self._heard = [], self.driver.news()
        self.is_down = False
        try:
            with trio.CancelScope() as self._scope:
                async with trio.open_nursery() as nursery:
                    listener = await self._quorum.network.listen(self.endpoint.host, PORT, 10)
                    nursery.start_soon(self._accept, listener, nursery)
                    nursery.start_soon(self._hear)
                    task_status.started()
                    try:
                        await self.driver.run()
                    except (OSError, KafkaError) as error:
                        self.failure = error
                    nursery.cancel_scope.cancel()
        finally:
            listener.close()
            for connection in self.connections:
                connection.close()
            self.is_down = True
            self._ended.set()

    async def kill(self, *, loses_power: random.Random | None = None) -> None:
        """End its present life at once."""
        self._scope.cancel()
        await self._ended.wait()
        if loses_power is not None:
            self.disk.crash(loses_power)

    async def _hear(self) -> None:
        async for news in self._heard:
            self.news.append(news)

    async def _accept(self, listener: MemoryListener, nursery: trio.Nursery) -> None:
        while True:
            connection = await listener.accept()
            self.connections.append(connection)
            nursery.start_soon(self._serve, connection)

    async def _serve(self, connection: MemoryConnection) -> None:
        peer = Peer(connection)
        with contextlib.suppress(AssertionError, OSError, KafkaError):
            while True:
                header, request = await peer.request()
                if isinstance(request, ApiVersionsRequest):
                    await peer.answer(header, _versions())
                else:
                    await peer.answer(header, await self.driver.ask(request, LISTENER))

    @property
    def leads(self) -> bool:
        if self.is_down:
            return False
        node = self.driver.node
        return node.quorum.state.leader_id == self.node_id and node.quorum.high_watermark is not None

    def append(self, *values: bytes) -> int:
        """Append a record each, in one batch; the offset of the last one."""
        records = [Record(number, 0, None, value, ()) for number, value in enumerate(values)]
        return self.driver.append(self.driver.node.epoch, [PreparedBatch(build_batch(records), len(records))])

    def take_snapshot(self) -> None:
        """Write a snapshot of all that is committed, and let the log begin after it."""
        log = self.driver.storage.log
        position = LogPosition(log.high_watermark - 1, log.last_epoch, 0)
        file = log.create_snapshot(MetadataSnapshotId(log.high_watermark, log.last_epoch))
        assert file is not None
        for batch in encode_snapshot(log.snapshot_head(position), [], epoch=file.id.epoch, now_ms=0):
            file.append(batch)
        file.freeze()
        log.add_snapshot(file.id)
        self.driver.step(SnapshotWritten(file.id, file.size))
        self.driver.step(CleanRequested(file.id))

    def values(self) -> list[bytes]:
        """Those of the committed records."""
        log = self.driver.storage.log
        return [
            record.value or b""
            for batch in log._batches(log.start_offset, log.high_watermark)
            if not batch.is_control
            for record in batch.records()
        ]


class DrivenQuorum:
    """The nodes by their ids. ``start`` those that are to run."""

    def __init__(self, nursery: trio.Nursery, ids: Iterable[int], times: RaftTimes) -> None:
        self.network = MemoryNetwork(1 << 22)
        self.settings = MetadataLogSettings()
        self.times = times
        self._nursery = nursery
        self.nodes = {node_id: DrivenNode(self, node_id) for node_id in ids}
        self.bootstrap = [ControllerAddress(node.endpoint.host, PORT) for node in self.nodes.values()]

    def format(self, *ids: int) -> None:
        """Have these nodes be the first voters."""
        voters = VoterSet(QuorumVoter(self.nodes[each].key, (self.nodes[each].endpoint,), 0, 1) for each in ids)
        for node_id in ids:
            file = SnapshotFile(self.nodes[node_id].disk, f"{FOLDER}/__cluster_metadata-0", BOOTSTRAP_ID)
            for batch in encode_snapshot(SnapshotHead(0, 1, voters.to_record()), [], epoch=0, now_ms=0):
                file.append(batch)
            file.freeze()

    async def start(self, *ids: int) -> None:
        for node_id in ids:
            await self._nursery.start(self.nodes[node_id].live)

    def client(self, address: ControllerAddress) -> BrokerClient:
        timeout = self.times.request_timeout_ms / 1000
        return BrokerClient(self.network, address.host, address.port, "raft-client", timeout=timeout)

    async def leader(self, *, but: int = -1) -> DrivenNode:
        """The node that leads, once there is one."""
        await until(lambda: any(node.leads for node in self.nodes.values() if node.node_id != but))
        return next(node for node in self.nodes.values() if node.leads and node.node_id != but)


async def until(condition: Callable[[], bool]) -> None:
    """Return once it holds."""
    with trio.fail_after(_PATIENCE_S):
        while not condition():
            await trio.sleep(0.01)


@contextlib.asynccontextmanager
async def driven_quorum(
    *ids: int, further: Sequence[int] = (), times: RaftTimes | None = None
) -> AsyncIterator[DrivenQuorum]:
    """The nodes of these ids are voters, and run; the ``further`` ones are there to be started."""
    async with trio.open_nursery() as nursery:
        quorum = DrivenQuorum(nursery, [*ids, *further], times or RaftTimes())
        quorum.format(*ids)
        await quorum.start(*ids)
        yield quorum
        nursery.cancel_scope.cancel()


def _versions() -> ApiVersionsResponse:
    keys = []
    for key in _SERVED:
        versions = request_class(key).valid_versions
        keys.append(ApiVersion(api_key=key, min_version=versions.start, max_version=versions.stop - 1))
    feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
    return ApiVersionsResponse(api_keys=keys, supported_features=[feature])
