"""A broker's folder, in which it follows a quorum that the test plays: fetching, loading, snapshots, and restarts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import trio.testing

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock, Workers
from ottla.controller.quorum.following import LoaderListener, MetadataFollower, MetadataListener
from ottla.controller.quorum.loader import MetadataLoader
from ottla.controller.quorum.snapshot_generator import SnapshotGenerator
from ottla.controller.raft.driver import RaftDriver
from ottla.controller.raft.metadata_cleaning import MetadataLogCleaner
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.node import RaftNode
from ottla.controller.raft.quorum_state import RaftIdentity
from ottla.controller.raft.settings import MetadataLogSettings, RaftTimes
from ottla.controller.raft.storage import RaftStorage
from ottla.controller.raft.voter_set import ReplicaKey, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.disk import Disk, OsDisk
from ottla.log.log_directory import LogDirectory
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.setting_records import FeatureLevelRecord, ProducerIdsRecord
from ottla.wire.messages.topic_records import PartitionRecord, TopicRecord
from ottla.wire.schema import Message

from .scripted_quorum import HOST, ScriptedQuorum

FEATURE = FeatureLevelRecord(name="metadata.version", feature_level=30)


def ids(next_producer_id: int) -> ProducerIdsRecord:
    return ProducerIdsRecord(next_producer_id=next_producer_id)


def topic(name: str, number: int) -> list[Message]:
    topic_id = (number + 1).to_bytes(16)
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, directories=[b"d" * 16]
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]


class World:
    """A quorum, and one broker's folder, in which it follows. ``settings`` are those of the next run."""

    def __init__(self, folder: Path) -> None:
        self.network = MemoryNetwork(1 << 20)
        self.quorum = ScriptedQuorum(self.network)
        self.folder = folder
        self.settings = MetadataLogSettings()
        self.static_voters: dict[int, ControllerAddress] = {}
        self.has_bootstrap_servers = True
        self.disk: Disk = OsDisk()
        self.workers: Workers = InlineWorkers()
        self.image = ClusterImage()
        self.published: list[ClusterDelta] = []
        self._changed = trio.Event()
        self.log: MetadataLog
        self.further: list[Callable[[RaftDriver], MetadataListener]] = []
        """Those that follow the same node beside the loader, in the next run."""
        self.raft: RaftNode
        self.loader: MetadataLoader

    def _publish(self, delta: ClusterDelta) -> None:
        self.published.append(delta)
        self.image = self.image.apply(delta)
        self._changed.set()
        self._changed = trio.Event()

    async def sees(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(60):
            while not condition():
                await self._changed.wait()

    async def sees_ids(self, next_producer_id: int) -> None:
        await self.sees(lambda: self.image.next_producer_id == next_producer_id)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """One run of the broker; its image begins anew."""
        self.image, self.published = ClusterImage(), []
        clock = SimulatedClock()
        disk_folder = LogDirectory(self.disk, str(self.folder), clock, self.workers)
        self.log = MetadataLog(disk_folder, self.settings)
        await self.log.open()
        bootstrap = [ControllerAddress(HOST, node_id) for node_id in self.quorum.ids if self.has_bootstrap_servers]
        identity = RaftIdentity("cluster", ReplicaKey(7, b"d" * 16), (), "CONTROLLER", may_vote=False)
        voters = VoterSet.of_addresses(self.static_voters, "CONTROLLER")
        self.raft = RaftNode(identity, RaftTimes(), self.log.outline(), bootstrap, voters, random.Random(1))
        driver = RaftDriver(self.raft, RaftStorage(self.log), self._connect, clock, self.workers)
        loader = self.loader = MetadataLoader(self._publish)
        listeners = [LoaderListener(driver, loader), *(made(driver) for made in self.further)]
        followers = [MetadataFollower(driver, listener, self.workers) for listener in listeners]
        generator = SnapshotGenerator(self.log, self.settings, clock, self.workers, driver.note_snapshot)
        loader.on_image = generator.on_metadata_update
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.run)
            for follower in followers:
                nursery.start_soon(follower.run)
            nursery.start_soon(generator.run)
            nursery.start_soon(MetadataLogCleaner(self.log, self.settings, clock, self.workers, driver.clean).run)
            yield
            nursery.cancel_scope.cancel()

    @property
    def leadership(self) -> tuple[int, int]:
        """The epoch, and who leads in it; -1 where that is not known."""
        return self.raft.epoch, self.raft.leader_id

    def _connect(self, address: ControllerAddress) -> BrokerClient:
        return BrokerClient(self.network, *address, "raft-client-7", timeout=2.0, max_in_flight=1)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[World]:
    """A quorum that serves, with one record of metadata."""
    world = World(folder)
    async with trio.open_nursery() as nursery:
        await nursery.start(world.quorum.run)
        world.quorum.append()
        world.quorum.append(FEATURE, ids(1))
        yield world
        nursery.cancel_scope.cancel()


async def settle(world: World) -> None:
    """Wait until what is committed is published, and what follows from it is done."""
    end = world.quorum.high_watermark - 1
    await world.sees(lambda: world.image.position is not None and world.image.position.offset == end)
    await trio.testing.wait_all_tasks_blocked()


async def loaded(world: World, snapshot: MetadataSnapshotId) -> ClusterImage:
    """What a snapshot on disk says."""
    reader = world.log.read_snapshot(snapshot)
    loader = MetadataLoader(lambda delta: None)
    await loader.load_snapshot(
        reader.batches(), LogPosition(snapshot.end_offset - 1, snapshot.epoch, reader.head.last_contained_ms), 0
    )
    return loader.image
