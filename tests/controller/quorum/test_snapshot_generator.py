"""A broker's own snapshots: when one is written, what is in it, and that a restart goes on from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pytest
import trio
import trio.testing

from ottla.controller.raft.settings import MetadataLogSettings
from ottla.controller.raft.voter_set import VoterSet
from ottla.log.disk import OpenFile, OsDisk
from ottla.log.metadata_snapshots import MetadataSnapshotId
from ottla.wire.messages.control_records import KRaftVersionRecord, Voter, VotersRecord
from ottla.wire.messages.metadata_log_records import BeginTransactionRecord, EndTransactionRecord, NoOpRecord

from .helpers.following_world import FEATURE, ids, loaded, running, settle, topic
from .helpers.images import contents
from .helpers.record_walk import RecordWalk

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Clock = trio.testing.MockClock
INTERVAL = 60
"""Seconds, where a test waits for it: a broker fetches twice in each."""


def limits(*, size: int = 20 << 20, interval_ms: int = INTERVAL * 1000) -> MetadataLogSettings:
    return MetadataLogSettings({"record_bytes_between_snapshots": size, "snapshot_interval_ms": interval_ms})


async def test_after_enough_bytes_a_snapshot_has_the_image_and_a_restart_begins_with_it(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(size=4000)
        async with world.following():
            await settle(world)
            world.quorum.elect(2)
            await settle(world)
            while not world.log.snapshots:
                assert world.quorum.end_offset < 100
                world.quorum.append(*topic(f"t{world.quorum.end_offset}", world.quorum.end_offset))
                await settle(world)
            (snapshot,) = world.log.snapshots
            assert snapshot == MetadataSnapshotId(world.quorum.end_offset, 2)
            assert snapshot.end_offset > 40
            assert contents(await loaded(world, snapshot)) == contents(world.image)
            world.quorum.append(ids(77))
            await settle(world)
            before = contents(world.image)
        async with world.following():
            assert world.log.newest_snapshot == snapshot
            await settle(world)
            assert contents(world.image) == before
        assert [path.name for path in world.folder.rglob("*.checkpoint*")] == [snapshot.file_name]


async def test_what_is_loaded_at_the_start_does_not_count(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        for number in range(50):
            world.quorum.append(*topic(f"t{number}", number))
        world.settings = limits(size=2000)
        async with world.following():
            await settle(world)
            world.quorum.append(ids(2))
            await settle(world)
            assert world.log.snapshots == []


async def test_any_cluster_is_written_so_that_it_is_the_same(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(size=1)
        async with world.following():
            await settle(world)
            for record in RecordWalk(7).records(300):
                world.quorum.append(record)
            await settle(world)
            world.quorum.append(NoOpRecord())
            await settle(world)
            newest = world.log.snapshots[-1]
            assert newest.end_offset == world.quorum.end_offset
            assert contents(await loaded(world, newest)) == contents(world.image)


async def test_after_the_interval_the_next_record_brings_a_snapshot(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits()
        async with world.following():
            await settle(world)
            await trio.sleep(2 * INTERVAL)
            assert world.log.snapshots == []
            world.quorum.append(ids(2))
            await settle(world)
            assert world.log.snapshots == [MetadataSnapshotId(world.quorum.end_offset, 1)]
            await trio.sleep(INTERVAL - 1)
            world.quorum.append(ids(3))
            await settle(world)
            assert len(world.log.snapshots) == 1
            await trio.sleep(2)
            world.quorum.append(ids(4))
            await settle(world)
            assert world.log.snapshots[1:] == [MetadataSnapshotId(world.quorum.end_offset, 1)]


async def test_an_interval_of_zero_is_never(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(interval_ms=0)
        async with world.following():
            await settle(world)
            await trio.sleep(10 * INTERVAL)
            world.quorum.append(ids(2))
            await settle(world)
            assert world.log.snapshots == []


async def test_a_snapshot_that_was_fetched_is_begun_to_count_from(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits()
        async with world.following():
            await settle(world)
            world.quorum.is_silent = True
            await trio.sleep(2 * INTERVAL)
            world.quorum.append(ids(2))
            world.quorum.take_snapshot([FEATURE, ids(2)])
            fetched = MetadataSnapshotId(world.quorum.end_offset, 1)
            world.quorum.is_silent = False
            await settle(world)
            world.quorum.append(ids(3))
            await settle(world)
            assert world.log.snapshots == [fetched]


async def test_within_a_transaction_nothing_is_written_of_it(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(size=1000)
        async with world.following():
            await settle(world)
            before = world.quorum.end_offset
            world.quorum.append(BeginTransactionRecord())
            for number in range(20):
                world.quorum.append(*topic(f"t{number}", number))
            await trio.testing.wait_all_tasks_blocked()
            assert world.image.position is not None
            assert world.image.position.offset == before - 1
            assert world.log.snapshots == []
            world.quorum.append(EndTransactionRecord(), ids(9))
            await settle(world)
            assert world.log.snapshots == [MetadataSnapshotId(world.quorum.end_offset, 1)]
            assert len((await loaded(world, world.log.snapshots[0])).topics) == 20


async def test_a_snapshot_says_what_the_log_said_of_the_voters_at_its_end(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(size=1)
        first, second = (VotersRecord(voters=[Voter(voter_id=number)]) for number in (1, 2))
        world.quorum.append_control(KRaftVersionRecord(k_raft_version=1), first)
        async with world.following():
            await settle(world)
            world.quorum.append(ids(2))
            world.quorum.append_control(second, commits=False)
            await trio.testing.wait_all_tasks_blocked()
            assert world.raft.quorum.voters == VoterSet.of_record(second)
            head = world.log.read_snapshot(world.log.snapshots[-1]).head
            assert (head.kraft_version, head.voters, head.last_contained_ms) == (1, first, 1_000)
        async with world.following():
            assert world.raft.quorum.voters == VoterSet.of_record(second)


class PacedWorkers:
    """Each call waits before it begins, for as long as the test wants."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        await trio.sleep(self.seconds)
        return function(*args)


async def test_while_one_is_written_the_broker_goes_on_and_it_has_what_was_there_at_its_beginning(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        workers = world.workers = PacedWorkers()
        for number in range(3000):
            world.quorum.append(*topic(f"t{number}", number))
        world.settings = limits()
        async with world.following():
            await settle(world)
            await trio.sleep(INTERVAL)
            workers.seconds = 1.0
            world.quorum.append(ids(5))
            await settle(world)
            snapshot, wanted = MetadataSnapshotId(world.quorum.end_offset, 1), contents(world.image)
            await trio.sleep(2.5)
            world.quorum.append(*topic("late", 5000), ids(6))
            await settle(world)
            assert world.image.next_producer_id == 6
            assert world.log.snapshots == []
            await trio.sleep(20)
            assert world.log.snapshots == [snapshot]
            assert contents(await loaded(world, snapshot)) == wanted


class FullDisk(OsDisk):
    """Takes no more of snapshots while it ``is_full``."""

    is_full = False

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if self.is_full and ".checkpoint" in path:
            raise OSError(28, "No space left on device", path)
        return super().open(path, create=create)


async def test_one_that_cannot_be_written_is_given_up_and_another_is_tried_later(
    tmp_path: Path, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as world:
        disk = world.disk = FullDisk()
        world.settings = limits()
        async with world.following():
            await settle(world)
            disk.is_full = True
            await trio.sleep(INTERVAL)
            world.quorum.append(ids(5))
            await settle(world)
            assert "A snapshot of the metadata could not be written: [Errno 28] No space left" in caplog.text
            disk.is_full = False
            world.quorum.append(ids(6))
            await settle(world)
            assert world.log.snapshots == []
            await trio.sleep(INTERVAL)
            world.quorum.append(ids(7))
            await settle(world)
            assert world.log.snapshots == [MetadataSnapshotId(world.quorum.end_offset, 1)]


async def test_what_ends_in_the_middle_of_writing_leaves_nothing_that_counts(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        workers = world.workers = PacedWorkers()
        world.settings = limits()
        async with world.following():
            await settle(world)
            await trio.sleep(INTERVAL)
            workers.seconds = 10.0
            world.quorum.append(ids(5))
            await settle(world)
            assert [path.suffix for path in world.folder.rglob("*.checkpoint*")] == [".part"]
        assert list(world.folder.rglob("*.checkpoint*")) == []
        workers.seconds = 0.0
        async with world.following():
            await settle(world)
            assert world.image.next_producer_id == 5
