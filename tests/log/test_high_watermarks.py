"""High watermarks on disk: when they are written, and what a start makes of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import trio
import trio.testing

from ottla.log.checkpoints import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, read_offsets, write_offsets
from ottla.log.partition_log import PartitionLog
from ottla.log.settings import LogSettings

from .conftest import TOPIC_ID, HeldWorkers, World


def written(world: World, name: str = HIGH_WATERMARK_CHECKPOINT) -> dict[tuple[str, int], int]:
    return read_offsets(world.disk, f"{world.path}/{name}")


async def test_they_are_written_every_five_seconds(memory_world: World, autojump_clock: trio.testing.MockClock) -> None:
    world = memory_world
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        world.append(log, "a", "b", "c")
        log.high_watermark = 2
        await trio.sleep(5.5)
        assert written(world) == {("t", 0): 2}
        assert written(world, RECOVERY_POINT_CHECKPOINT) == {}, "it has an interval of its own"
        log.high_watermark = 3
        await trio.sleep(5)
        assert written(world) == {("t", 0): 3}
        nursery.cancel_scope.cancel()
    world.kill()
    assert (await world.start()).get("t", 0).high_watermark == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(20))
async def test_they_do_not_cover_what_a_power_loss_may_bring_back(
    memory_world: World, read_values: Callable[[PartitionLog], list[tuple[int, str]]], seed: int
) -> None:
    """A follower that truncated has other records from there on, until they are flushed."""
    world, rng = memory_world, random.Random(seed)
    log = await world.log()
    for value in "abcd":
        world.append(log, value)
    await log.flush()
    log.truncate_to(1)
    for value in "xyz":
        world.append(log, value, epoch=1)
    is_flushed = rng.random() < 0.3
    if is_flushed:
        await log.flush()
    await world.managers[-1].write_checkpoints()
    world.disk.crash(rng)
    log = await world.log()
    assert log.high_watermark == (4 if is_flushed else 1)
    assert read_values(log)[: log.high_watermark] == list(enumerate("axyz"))[: log.high_watermark]


async def test_a_truncation_is_flushed_within_five_seconds(
    memory_world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Or the high watermark on disk would stay there until the segment is full."""
    world = memory_world
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(manager.run)
        world.append(log, "a", "b")
        log.truncate_to(0)
        world.append(log, "x", "y", epoch=1)
        await trio.sleep(5.5)
        assert written(world) == {("t", 0): 0}
        await trio.sleep(5)
        assert written(world) == {("t", 0): 2}
        nursery.cancel_scope.cancel()


async def test_a_stop_writes_them(memory_world: World) -> None:
    manager = await memory_world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    memory_world.append(log, "a", "b", "c")
    log.high_watermark = 1
    await manager.stop()
    assert (await memory_world.start()).get("t", 0).high_watermark == 1  # type: ignore[union-attr]


async def test_start_keeps_them_within_the_log(memory_world: World) -> None:
    world = memory_world
    for start, checkpointed, expected in ((0, 99, 4), (2, 1, 2), (2, 3, 3), (0, None, 0)):
        manager = await world.start()
        log = manager.get_or_create("t", 0, TOPIC_ID)
        log.truncate_fully_and_start_at(0)
        for value in "abcd":
            world.append(log, value)
        log.delete_records_before(start)
        await manager.stop()
        offsets = {} if checkpointed is None else {("t", 0): checkpointed}
        write_offsets(world.disk, f"{world.path}/{HIGH_WATERMARK_CHECKPOINT}", offsets)
        manager = await world.start()
        assert manager.get("t", 0).high_watermark == expected  # type: ignore[union-attr]
        await manager.stop()


async def test_everything_found_after_a_kill_is_flushed_where_only_what_is_flushed_counts(memory_world: World) -> None:
    """Or the high watermark would go back to the checkpoint, 0 here, until the first flush has ended."""
    world = memory_world
    by_record = LogSettings({"flush_messages": 1})
    for of_broker, of_topic in ((by_record, None), (LogSettings(), by_record)):
        flush_messages = of_broker.flush_messages
        manager = await world.start(flush_messages=flush_messages)
        log = manager.get_or_create("t", 0, TOPIC_ID, of_topic)
        before = log.log_end_offset
        world.append(log, "a", "b")
        await log.flush()
        world.kill()
        manager = await world.start(flush_messages=flush_messages)
        log = manager.get_or_create("t", 0, TOPIC_ID, of_topic)
        assert log.high_watermark <= before < log.safe_end_offset == log.log_end_offset == before + 2
        world.kill()


async def test_what_was_gathered_earlier_does_not_replace_what_is_written(memory_world: World) -> None:
    """The watermarks and the other checkpoints are written by two tasks, and workers keep no order."""
    world = memory_world
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    world.append(log, "a", "b")
    log.high_watermark = 1
    (part,) = manager._folders
    workers = part.folder.workers
    part.folder.workers = held = HeldWorkers(before=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(part.write_checkpoints)
        await trio.testing.wait_all_tasks_blocked()
        part.folder.workers = workers
        log.high_watermark = 2
        await part.write_checkpoints()
        log.high_watermark = 1
        held.release.set()
    assert written(world) == {("t", 0): 2}
