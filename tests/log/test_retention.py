"""Old segments: by size, by time, by DeleteRecords, and never above the high watermark."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.records import Record

SEGMENT = 400


async def written(world, *timestamps: int, **settings):
    """One record per timestamp, two to a segment."""
    log = await world.log(segment_bytes=SEGMENT, **settings)
    for timestamp in timestamps:
        world.append(log, "x" * 100, timestamp=timestamp)
    return log


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize(
    ("keep", "left"), [(0, [7]), (1, [6]), (2, [4, 6]), (3, [4, 6]), (4, [2, 4, 6]), (8, [0, 2, 4, 6])]
)
async def test_keeps_at_least_retention_bytes(world, keep, left, caplog):
    caplog.set_level("INFO")
    log = await written(world, *range(1, 8), retention_ms=-1)
    one = log.size // 7
    log.update_settings(
        type(log.settings)({"segment_bytes": SEGMENT, "retention_ms": -1, "retention_bytes": keep * one})
    )
    log.delete_old_segments(world.clock.now)
    assert bases(log) == left
    assert log.log_start_offset == left[0]
    assert log.size == sum(segment.size for segment in log.segments)
    said = [record.getMessage() for record in caplog.records if "deleting" in record.getMessage()]
    gone = len(range(0, left[0], 2))
    assert len(said) == bool(gone)
    if gone:
        noun = "segment" if gone == 1 else "segments"
        assert f"deleting {gone} {noun} below offset {left[0]}, " in said[0]


async def test_by_time(world, read_values):
    log = await written(world, 1000, 5000, 2000, 2500, 3000, 9000, 9500, retention_ms=1000)
    assert log.delete_old_segments(5000) == 0
    assert log.delete_old_segments(6000) == 0
    assert log.delete_old_segments(6001) == 2, "from the start on, as long as all of a segment is old"
    assert log.log_start_offset == 4
    assert [offset for offset, _ in read_values(log)] == [4, 5, 6]
    assert log.delete_old_segments(10_000) == 0
    assert log.delete_old_segments(10_001) == 1
    assert bases(log) == [6]


async def test_old_active_segment_rolls_and_goes(world):
    log = await written(world, 1000, 1000, 1000, retention_ms=10)
    assert log.delete_old_segments(2000) == 2
    assert bases(log) == [3]
    assert (log.log_start_offset, log.log_end_offset, log.size) == (3, 3, 0)
    assert log.delete_old_segments(1 << 50) == 0, "an empty active segment stays"
    world.append(log, "again")
    await world.managers[-1].stop()
    log = await world.log()
    assert (log.log_start_offset, log.log_end_offset) == (3, 4)


async def test_emptied_log_keeps_its_offsets_over_a_restart(world):
    log = await written(world, 1000, 1000, 1000, retention_ms=10)
    log.delete_old_segments(2000)
    await world.managers[-1].stop()
    log = await world.log()
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert world.append(log, "x").first_offset == 3


async def test_records_without_time_go_by_the_age_of_the_file(memory_world):
    now = 1000
    memory_world.disk.now_ms = lambda: now
    log = await memory_world.log(retention_ms=100)
    memory_world.append(log, Record(timestamp=-1))
    now = 2000
    assert log.delete_old_segments(1100) == 0
    assert log.delete_old_segments(1101) == 1


async def test_largest_timestamp_that_a_client_made_up_deletes_nothing(memory_world):
    """librdkafka gives 0 for the largest timestamp of records that have none."""
    now = memory_world.clock.now
    memory_world.disk.now_ms = lambda: now
    log = await memory_world.log(retention_ms=100)
    memory_world.append(log, Record(timestamp=-1), Record(timestamp=-1), max_timestamp=0)
    assert log.delete_old_segments(now + 100) == 0
    assert log.delete_old_segments(now + 101) == 1


async def test_nothing_above_the_high_watermark_goes(world):
    log = await written(world, *range(1, 8), retention_ms=0)
    log.high_watermark = 5
    assert log.delete_old_segments(world.clock.now) == 2
    assert bases(log) == [4, 6]
    log.high_watermark = 6
    assert log.delete_old_segments(world.clock.now) == 1


async def test_compacted_topic_keeps_everything(world):
    log = await world.log(segment_bytes=SEGMENT, cleanup_policy=("compact",), retention_ms=0, retention_bytes=0)
    for _ in range(7):
        world.append(log, ("k", "x" * 100))
    assert log.delete_old_segments(1 << 50) == 0
    log.delete_records_before(4)
    assert log.delete_old_segments(1 << 50) == 2, "what DeleteRecords asked for goes anyway"


async def test_compact_and_delete_deletes(world):
    log = await world.log(segment_bytes=SEGMENT, cleanup_policy=("compact", "delete"), retention_ms=0)
    world.append(log, ("k", "x"))
    assert log.delete_old_segments(1 << 50) == 1


async def test_delete_records(world, read_values):
    log = await written(world, *range(1, 8), retention_ms=-1)
    assert log.delete_records_before(3) == 3
    assert log.delete_records_before(2) == 3, "never back"
    assert [offset for offset, _ in read_values(log)] == [3, 4, 5, 6]
    assert log.delete_old_segments(0) == 1
    assert bases(log) == [2, 4, 6]
    assert log.delete_records_before(-1) == 7
    assert log.delete_old_segments(0) == 2
    assert bases(log) == [6], "the active segment stays"
    assert read_values(log) == []


@pytest.mark.parametrize("offset", [-2, 6, 7, 8])
async def test_delete_records_above_the_high_watermark(world, offset):
    log = await written(world, *range(1, 8))
    log.high_watermark = 5
    with pytest.raises(KafkaError) as caught:
        log.delete_records_before(offset)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_start_offset == 0


async def test_log_start_survives_a_clean_stop(world):
    log = await written(world, *range(1, 8))
    log.delete_records_before(3)
    await world.managers[-1].stop()
    text = world.disk.read_file(f"{world.path}/log-start-offset-checkpoint")
    assert text == b"0\n1\nt 0 3\n"
    assert (await world.log()).log_start_offset == 3


async def test_log_start_survives_a_crash_soon_after(world):
    log = await written(world, *range(1, 8))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.managers[-1].run)
        log.delete_records_before(3)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    world.kill()
    assert (await world.log()).log_start_offset == 3


async def test_leader_epochs_follow_the_start(world):
    log = await world.log()
    for epoch in (1, 1, 4, 6):
        world.append(log, "x", epoch=epoch)
    log.delete_records_before(3)
    assert log.leader_epochs.entries() == [(6, 3)]


async def test_deleted_files_are_renamed_and_removed_after_the_delay(world):
    with trio.fail_after(20):
        log = await written(world, *range(1, 8), retention_ms=0, file_delete_delay_ms=300)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.managers[-1].run)
            log.delete_old_segments(world.clock.now)
            assert sum(name.endswith(".deleted") for name in world.files()) == 12
            while any(name.endswith(".deleted") for name in world.files()):
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        kept = {name for name in world.files() if name.startswith("0")}
        assert kept == {f"{7:020d}.{suffix}" for suffix in ("log", "index", "timeindex", "snapshot")}


async def test_upkeep_applies_retention(world):
    with trio.fail_after(20):
        manager = await world.start(
            manager={"retention_check_interval_ms": 10}, segment_bytes=SEGMENT, retention_ms=1000
        )
        log = manager.get_or_create("t", 0, bytes(16))
        for _ in range(6):
            world.append(log, "x" * 100, timestamp=1000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manager.run)
            while log.log_start_offset < 6:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
