"""Moves between log directories as the replica manager sees them: begun, shown, changed, ended, and taken up after a crash."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.handlers.describe_log_dirs import describe_log_dir
from ottla.log.log_directory import LogDirectory
from ottla.log.log_manager import LogManager
from ottla.log.memory_disk import MemoryDisk
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.replication.log_dir_moves import LogDirMoves
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.partition import Partition
from ottla.replication.replica_manager import ReplicaManager
from ottla.wire.records import Record, build_batch

from ..helpers.told import apply, led, registration, tell
from .helpers.replicas import Submitted

TOPIC_ID = bytes(range(16))
FOLDERS = ["/a", "/b", "/c"]


class Notices:
    """A cluster that is told of moves, once it ``answers``."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        """What was said, and the folder of the log at that time."""
        self.answers = trio.Event()

    async def announce(self, partition: Partition, folder: LogDirectory) -> None:
        self.told.append((f"to {folder.path}", partition.log.folder.path))
        await self.answers.wait()

    def settle(self, partition: Partition) -> None:
        self.told.append(("settled", partition.log.folder.path))


class Broker:
    """Logs, replicas and moves on a disk in memory; ``run`` carries the moves out."""

    def __init__(self, disk: MemoryDisk, notices: Notices | None = None) -> None:
        clock, rng = SimulatedClock(), random.Random(1)
        settings = LogSettings({"segment_bytes": 1000})
        self.logs = LogManager(disk, FOLDERS, settings, LogManagerSettings(), clock, InlineWorkers(), rng)
        self.metadata = MetadataCache("cluster")
        self.replicas = ReplicaManager(1, self.logs, settings, lambda topic: {}, self.metadata, Submitted(), 30_000)
        self.moves = LogDirMoves(self.replicas, self.logs, self.metadata, notices)

    async def start(self, *, is_new: bool = False) -> Broker:
        self.logs.take(1)
        await self.logs.load()
        assert self.lead(is_new=is_new) == ErrorCode.NONE
        return self

    def lead(self, number: int = 0, *, is_new: bool = False) -> ErrorCode:
        decided = registration(1, 3, (1,), (1,))._replace(is_new=is_new)
        return apply(self.replicas, "t", TOPIC_ID, number, decided)

    def append(self, count: int = 20) -> None:
        for _ in range(count):
            batch = build_batch([Record(timestamp=0, key=None, value=b"x" * 100)])
            self.replicas.partition("t", 0).append(batch, 0)

    def places(self) -> dict[str, tuple[bool, int]]:
        """Folder -> (is_future_key, offset_lag) of partition 0."""
        found = {}
        for folder in self.logs.folders:
            for topic in describe_log_dir(self.logs, folder, None).topics:
                for partition in topic.partitions:
                    found[folder.path] = (partition.is_future_key, partition.offset_lag)
        return found

    async def run(self) -> None:
        """Until nothing is left to do."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.moves.run)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()


async def new_broker() -> Broker:
    return await Broker(MemoryDisk()).start(is_new=True)


async def test_progress_is_shown() -> None:
    broker = await new_broker()
    broker.append()
    broker.moves.alter("t", 0, "/b")
    assert broker.places() == {"/a": (False, 0), "/b": (True, 20)}
    broker.append(5)
    assert broker.places() == {"/a": (False, 0), "/b": (True, 25)}
    await broker.run()
    assert broker.places() == {"/b": (False, 0)}
    assert broker.replicas.partition("t", 0).log is broker.logs.get("t", 0)
    broker.append()
    assert broker.logs.get("t", 0).high_watermark == 45


async def test_another_target_and_back() -> None:
    broker = await new_broker()
    broker.append()
    for target in ("/b", "/b", "/c"):
        broker.moves.alter("t", 0, target)
        assert broker.places().keys() == {"/a", target}
    broker.moves.alter("t", 0, "/a")
    assert broker.places() == {"/a": (False, 0)}
    await broker.run()
    assert broker.places() == {"/a": (False, 0)}
    assert broker.logs.cleaner.paused == set()
    broker.moves.alter("t", 0, "/c")
    await broker.run()
    assert broker.places() == {"/c": (False, 0)}


async def test_a_restart_takes_a_move_up_again() -> None:
    disk = MemoryDisk()
    broker = await Broker(disk).start(is_new=True)
    broker.append()
    broker.moves.alter("t", 0, "/b")
    disk.kill()
    again = await Broker(disk).start()
    assert again.places() == {"/a": (False, 0), "/b": (True, 20)}
    await again.run()
    assert again.places() == {"/b": (False, 0)}
    assert again.logs.get("t", 0).log_end_offset == 20


async def test_a_log_that_moves_is_not_compacted_meanwhile() -> None:
    broker = await new_broker()
    log = broker.logs.get("t", 0)
    broker.moves.alter("t", 0, "/b")
    assert broker.logs.cleaner.paused == {log}
    await broker.run()
    assert broker.logs.cleaner.paused == set()


async def test_deletion_of_a_partition_that_moves() -> None:
    broker = await new_broker()
    broker.append()
    broker.moves.alter("t", 0, "/b")
    broker.replicas.stop("t", 0, None, deletes=True)
    await broker.run()
    assert broker.places() == {}
    assert broker.logs.cleaner.paused == set()


async def test_failure_of_either_folder() -> None:
    broker = await new_broker()
    broker.append()
    broker.moves.alter("t", 0, "/b")
    broker.logs.folders[1].fail("gone", OSError(5, "gone"))
    await broker.run()
    assert broker.places() == {"/a": (False, 0)}
    broker.append()
    broker.logs.folders[0].fail("gone", OSError(5, "gone"))
    with pytest.raises(KafkaError) as caught:
        broker.append()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.lead() == ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.lead(1) == ErrorCode.KAFKA_STORAGE_ERROR, "it may be in a folder that failed"
    assert broker.lead(2, is_new=True) == ErrorCode.NONE


async def test_partition_that_is_not_here_yet() -> None:
    broker = await new_broker()

    def refusal(number: int) -> ErrorCode:
        with pytest.raises(KafkaError) as caught:
            broker.moves.alter("t", number, "/c")
        return caught.value.code

    tell(broker.metadata, led("t", TOPIC_ID, {1: 2}))
    assert refusal(1) is ErrorCode.REPLICA_NOT_AVAILABLE
    assert refusal(2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for number in (1, 2):
        assert broker.lead(number, is_new=True) == ErrorCode.NONE
        assert broker.logs.get("t", number).folder.path == "/c"


async def test_a_cluster_that_knows_of_folders_is_told_before_the_swap() -> None:
    notices = Notices()
    broker = await Broker(MemoryDisk(), notices).start(is_new=True)
    broker.append()
    broker.moves.alter("t", 0, "/b")
    await broker.run()
    assert notices.told == [("to /b", "/a"), ("settled", "/a")]  # it was given up when the broker stopped
    assert broker.places()["/a"] == (False, 0)
    async with trio.open_nursery() as nursery:
        notices = Notices()
        broker = await Broker(MemoryDisk(), notices).start(is_new=True)
        broker.moves.alter("t", 0, "/b")
        nursery.start_soon(broker.moves.run)
        await trio.testing.wait_all_tasks_blocked(0.01)
        broker.append()
        notices.answers.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert notices.told == [("to /b", "/a"), ("settled", "/b")]
        assert broker.places() == {"/b": (False, 0)}
        assert broker.replicas.partition("t", 0).log.log_end_offset == 20
        nursery.cancel_scope.cancel()
