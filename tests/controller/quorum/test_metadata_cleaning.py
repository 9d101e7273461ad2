"""What goes of the metadata log and its snapshots, what stays, and that a start finds all of the metadata, also after a crash."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.controller.quorum.loader import MetadataLoader
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.log.memory_disk import MemoryDisk
from ottla.log.metadata_snapshots import MetadataSnapshotId, SnapshotHead, encode_snapshot
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition
from ottla.wire.messages.setting_records import ProducerIdsRecord
from ottla.wire.messages.topic_records import PartitionRecord
from ottla.wire.records import iter_batches
from ottla.wire.schema import Message

from .helpers.following_world import FEATURE, World, ids, loaded, running, settle
from .helpers.images import contents
from .helpers.record_walk import RecordWalk

Clock = trio.testing.MockClock
CLOCK_STARTS_MS = 1_700_000_000_000
MINUTE = 61


def limits(**changes: Any) -> MetadataLogSettings:
    """Small segments and snapshots, and nothing that is deleted, but for the changes."""
    unlimited = {"retention_bytes": -1, "retention_ms": -1}
    small = {"segment_bytes": 1500, "record_bytes_between_snapshots": 1000}
    return MetadataLogSettings({**small, **unlimited, **changes})


async def grow(world: World, count: int) -> None:
    """Append batches one by one, each of which is followed by what it causes."""
    for _ in range(count):
        world.quorum.append(ids(world.quorum.end_offset))
        await settle(world)


def covered(world: World) -> bool:
    """Whether a start finds everything: a snapshot reaches to where the log begins, and the log goes on after it."""
    log = world.log
    return log.start_offset == 0 or log.start_offset <= log.snapshots[-1].end_offset <= log.end_offset


def first_segment(world: World) -> int:
    return min(int(path.stem) for path in world.folder.rglob("*.log"))


async def test_by_size_the_oldest_go_and_the_log_begins_at_the_oldest_that_stays(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(retention_bytes=5000)
        async with world.following():
            await settle(world)
            await grow(world, 200)
            before = list(world.log.snapshots)
            assert (len(before) > 10, world.log.start_offset) == (True, 0)
            await trio.sleep(MINUTE)
            after = list(world.log.snapshots)
            assert after == before[-len(after) :]
            assert 2 <= len(after) < len(before)
            assert world.log.start_offset == after[0].end_offset
            sizes = sum(path.stat().st_size for path in world.folder.rglob("*.checkpoint"))
            assert 3000 < world.log.size + sizes <= 5000
            assert 0 < first_segment(world) <= world.log.start_offset
            wanted = contents(world.image)
        async with world.following():
            assert world.log.snapshots == after
            await settle(world)
            assert contents(world.image) == wanted


async def test_by_age_what_is_older_goes_but_never_the_newest(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(retention_ms=600_000)
        async with world.following():
            await settle(world)
            world.quorum.now_ms = CLOCK_STARTS_MS
            await grow(world, 30)
            old = list(world.log.snapshots)
            world.quorum.now_ms = CLOCK_STARTS_MS + 300_000
            await grow(world, 30)
            snapshots = list(world.log.snapshots)
            await trio.sleep(8 * MINUTE)
            assert world.log.snapshots == snapshots
            await trio.sleep(3 * MINUTE)
            assert world.log.snapshots == snapshots[len(old) :]
            assert world.log.start_offset == world.log.snapshots[0].end_offset
            await trio.sleep(60 * MINUTE)
            assert world.log.snapshots == snapshots[-1:]
            assert contents(await loaded(world, snapshots[-1]))["next_producer_id"] > 0


async def test_without_limits_and_with_one_snapshot_nothing_goes(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        for settings, count in ((limits(), 30), (limits(record_bytes_between_snapshots=3000, retention_bytes=1), 0)):
            world.settings = settings
            async with world.following():
                await settle(world)
                await grow(world, count)
                names = sorted(path.name for path in world.folder.rglob("*") if path.is_file())
                await trio.sleep(10 * MINUTE)
                if count:
                    assert sorted(path.name for path in world.folder.rglob("*") if path.is_file()) == names
                    assert world.log.start_offset == 0
                    for snapshot in world.log.snapshots[1:]:
                        (world.folder / "__cluster_metadata-0" / snapshot.file_name).unlink()
                else:
                    assert len(world.log.snapshots) == 1
                    assert world.log.start_offset == 0


async def test_nothing_is_deleted_on_account_of_a_snapshot_that_cannot_be_read(
    tmp_path: Path, autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(retention_bytes=1)
        async with world.following():
            await settle(world)
            await grow(world, 60)
            snapshots = list(world.log.snapshots)
            damaged = world.folder / "__cluster_metadata-0" / snapshots[2].file_name
            damaged.write_bytes(b"\0" * 100)
            await trio.sleep(MINUTE)
            assert world.log.snapshots == snapshots[1:]
            assert world.log.start_offset == snapshots[1].end_offset
            assert str(damaged) in caplog.text


async def test_a_snapshot_that_was_fetched_is_kept_and_deleted_by_the_same_rules(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(retention_bytes=1)
        async with world.following():
            await settle(world)
            await grow(world, 30)
            assert len(world.log.snapshots) > 1
            world.quorum.is_silent = True
            await trio.sleep(5)
            world.quorum.append(ids(500))
            world.quorum.take_snapshot([FEATURE, ids(500)])
            fetched = MetadataSnapshotId(world.quorum.end_offset, 1)
            world.quorum.is_silent = False
            await settle(world)
            assert world.log.snapshots == [fetched]
            assert [path.name for path in world.folder.rglob("*.checkpoint*")] == [fetched.file_name]
            await grow(world, 30)
            await trio.sleep(MINUTE)
            assert len(world.log.snapshots) == 1
            assert world.log.snapshots[0] > fetched
            assert world.log.start_offset == world.log.snapshots[0].end_offset


def put_snapshot(world: World, snapshot: MetadataSnapshotId, next_producer_id: int) -> None:
    """A file as a crash leaves it between the renaming of a fetched snapshot and what follows from that."""
    records = [(FEATURE, 0), (ProducerIdsRecord(next_producer_id=next_producer_id), 0)]
    batches = encode_snapshot(SnapshotHead(1_000), records, epoch=snapshot.epoch, now_ms=1_000)
    (world.folder / "__cluster_metadata-0" / snapshot.file_name).write_bytes(b"".join(batches))


async def test_a_crash_before_the_log_was_emptied_for_a_snapshot(tmp_path: Path, autojump_clock: Clock) -> None:
    """Of a later epoch than the log: what the log has there is another leader's, however far it reaches."""
    async with running(tmp_path) as world:
        async with world.following():
            await settle(world)
            await grow(world, 9)
        put_snapshot(world, MetadataSnapshotId(5, 3), 7)
        world.quorum.elect(2)
        world.quorum.elect(3, keeps=3)
        world.quorum.append(ids(6))
        world.quorum.take_snapshot([FEATURE, ids(7)])
        async with world.following():
            assert (world.log.start_offset, world.log.end_offset) == (5, 5)
            await settle(world)
            assert world.image.next_producer_id == 7


async def test_a_log_that_lost_its_end_goes_on_at_its_newest_snapshot(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            await settle(world)
        put_snapshot(world, MetadataSnapshotId(9, 1), 7)
        world.quorum.is_silent = True
        async with world.following():
            assert (world.log.end_offset, world.log.high_watermark, world.log.last_epoch) == (9, 9, 1)


async def test_what_a_crash_left_of_a_cleaning_is_removed(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.settings = limits(retention_bytes=1)
        async with world.following():
            await settle(world)
            await grow(world, 60)
            await trio.sleep(MINUTE)
            (kept,) = world.log.snapshots
        assert first_segment(world) > 5
        put_snapshot(world, MetadataSnapshotId(5, 1), 7)
        (world.folder / "__cluster_metadata-0" / "00000000000000000003-0000000001.checkpoint.deleted").write_bytes(b"")
        async with world.following():
            assert world.log.snapshots == [kept]
            assert [path.name for path in world.folder.rglob("*.checkpoint*")] == [kept.file_name]


async def test_a_gap_that_a_loss_of_power_left_is_fetched_again(tmp_path: Path, autojump_clock: Clock) -> None:
    """Where files are deleted, gaps in other logs may come of compaction; in this one they never do."""
    async with running(tmp_path) as world:
        world.settings = limits(record_bytes_between_snapshots=1 << 20)
        async with world.following():
            await settle(world)
            await grow(world, 60)
        segments = sorted(world.folder.rglob("*.log"))
        assert len(segments) > 2
        (batch, *_, last) = iter_batches(segments[0].read_bytes())
        segments[0].write_bytes(segments[0].read_bytes()[: -last.size])
        (segments[0].parent / f"{batch.base_offset:020d}.log.deleted").write_bytes(b"")
        async with world.following():
            assert world.log.end_offset == last.base_offset
            await settle(world)
            assert world.image.next_producer_id == 62


@pytest.mark.parametrize("seed", range(5))
async def test_after_every_loss_of_power_all_of_the_metadata_is_there(
    seed: int, tmp_path: Path, autojump_clock: Clock
) -> None:
    """What is committed comes again from the leader, which may keep nothing but a snapshot; what is here has to fit to it."""
    randomness = random.Random(seed)
    async with running(tmp_path) as world:
        disk = world.disk = MemoryDisk()
        world.settings = limits(retention_bytes=randomness.choice([1, 4000]))
        batches = operations(RecordWalk(seed).records(300))
        left, epoch = list(batches), 0
        while left:
            async with world.following():
                for _ in range(randomness.randint(5, 60)):
                    world.quorum.append(*left.pop(0))
                    if randomness.random() < 0.1:
                        world.quorum.elect(randomness.choice(world.quorum.ids))
                    if randomness.random() < 0.5:
                        await settle(world)
                    if randomness.random() < 0.05:
                        await trio.sleep(MINUTE)
                    assert covered(world)
                    if not left:
                        break
                if randomness.random() < 0.5:
                    await settle(world)
                assert world.raft.epoch >= epoch
                epoch = world.log.election.epoch if world.log.election is not None else 0
            disk.crash(randomness)
        async with world.following():
            assert covered(world)
            await settle(world)
            found = contents(world.image)
        assert found.pop("position") is not None
        wanted = contents(await replayed(batches))
        wanted.pop("position")
        for each in (found, wanted):
            each["features"] = each["features"].levels
        assert found == wanted


def operations(records: Iterable[Message]) -> list[list[Message]]:
    """What is written together, as partitions with their topic: an image in between would have none."""
    batches: list[list[Message]] = []
    for record in records:
        if isinstance(record, PartitionRecord):
            batches[-1].append(record)
        else:
            batches.append([record])
    return batches


async def replayed(batches: list[list[Message]]) -> ClusterImage:
    loader = MetadataLoader(lambda delta: None)
    await loader.load_snapshot(batches, LogPosition(0, 1, 1), 0)
    return loader.image
