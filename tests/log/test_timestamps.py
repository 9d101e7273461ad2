"""From times to offsets."""

from __future__ import annotations

import pytest

from ottla.base.errors import KafkaError
from ottla.wire.compression import GZIP, NONE, ZSTD
from ottla.wire.records import LOG_APPEND_TIME, Record

NONE_FOUND = (-1, -1, -1)


async def written(world, groups, *, epoch=None, **settings):
    """One batch per group of timestamps."""
    log = await world.log(**settings)
    for n, group in enumerate(groups):
        records = [Record(timestamp=timestamp, value=b"x" * 50) for timestamp in group]
        world.append(log, *records, epoch=n if epoch is None else epoch, compression=(NONE, GZIP, ZSTD)[n % 3])
    return log


def expected(groups, target, start=0, up_to=1 << 60):
    offset = 0
    for n, group in enumerate(groups):
        for timestamp in group:
            if timestamp >= target and offset >= start:
                return (offset, timestamp, n) if offset < up_to else NONE_FOUND
            offset += 1
    return NONE_FOUND


RISING = [[100, 110], [120, 130, 140], [150], [160, 170]]
SHUFFLED = [[500, 100], [50, 60], [400, 600, 10], [5], [700, 650], [650, 640], [699], [800]]
CONSTANT = [[7, 7], [7], [7, 7]]


@pytest.mark.parametrize("groups", [RISING, SHUFFLED, CONSTANT])
@pytest.mark.parametrize(
    "settings",
    [{}, {"index_interval_bytes": 0}, {"segment_bytes": 350}, {"segment_bytes": 350, "index_interval_bytes": 0}],
    ids=["one segment", "dense index", "many segments", "many segments, dense index"],
)
@pytest.mark.parametrize("restart", [False, True])
async def test_first_record_at_or_after(memory_world, groups, settings, restart):
    world = memory_world
    log = await written(world, groups, **settings)
    if restart:
        await world.managers[-1].stop()
        log = await world.log(**settings)
    end = log.log_end_offset
    times = sorted({t for group in groups for t in group})
    for target in {0, *times, *(t + 1 for t in times), times[-1] + 100}:
        assert await log.offset_for_timestamp(target, end) == expected(groups, target), target


async def test_below_up_to_only(world):
    log = await written(world, SHUFFLED, segment_bytes=350)
    for up_to in range(log.log_end_offset + 1):
        for target in (1, 550, 700, 900):
            assert await log.offset_for_timestamp(target, up_to) == expected(SHUFFLED, target, up_to=up_to)


async def test_not_below_the_log_start(world):
    log = await written(world, SHUFFLED, segment_bytes=350)
    for start in range(1, log.log_end_offset):
        log.delete_records_before(start)
        for target in (1, 300, 550, 700):
            assert (await log.offset_for_timestamp(target, 1 << 60))[:2] == expected(SHUFFLED, target, start)[:2]


async def test_empty_log(world):
    log = await world.log()
    assert await log.offset_for_timestamp(0, 0) == NONE_FOUND
    assert await log.max_timestamp(0) == NONE_FOUND


async def test_largest_timestamp(world):
    log = await written(world, SHUFFLED[:6], segment_bytes=350)
    assert await log.max_timestamp(1 << 60) == (8, 700, 4)
    assert await log.max_timestamp(8) == NONE_FOUND


async def test_largest_timestamp_is_that_of_the_first_record_that_has_it(world):
    log = await written(world, [[5], [3, 9, 9], [9, 9]])
    assert await log.max_timestamp(1 << 60) == (2, 9, 1)


async def test_log_append_time(world, read_batches):
    log = await world.log(message_timestamp_type="LogAppendTime")
    start = world.clock.now
    for _ in range(3):
        world.append(log, "a", "b", timestamp=1)
        world.clock.now += 10
    assert {batch.timestamp_type for batch in read_batches(log)} == {LOG_APPEND_TIME}
    assert await log.offset_for_timestamp(start + 1, 1 << 60) == (2, start + 10, 0)
    assert (await log.max_timestamp(1 << 60))[:2] == (4, start + 20)


async def test_records_without_time(world):
    log = await written(world, [[-1, -1], [-1]])
    assert await log.offset_for_timestamp(0, 1 << 60) == NONE_FOUND
    assert await log.max_timestamp(1 << 60) == (0, -1, 0)


async def test_a_log_without_records_has_no_largest_timestamp(world):
    assert await (await world.log()).max_timestamp(1 << 60) == NONE_FOUND


async def test_after_truncation_the_largest_timestamp_is_that_of_what_is_left(world):
    log = await written(world, SHUFFLED, index_interval_bytes=0)
    log.truncate_to(7)
    assert (await log.max_timestamp(1 << 60))[:2] == (5, 600)
    assert await log.offset_for_timestamp(650, 1 << 60) == NONE_FOUND


async def test_damaged_batch_is_not_believed(memory_world):
    log = await written(memory_world, RISING)
    segment = log.segments[0]
    last = segment.position_of(log.log_end_offset - 1)
    file = segment.file.open()
    file.write(bytes([file.read(1, segment.size - 3)[0] ^ 1]), segment.size - 3)
    assert await log.offset_for_timestamp(100, log.log_end_offset) == expected(RISING, 100)
    assert last < segment.size - 3
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        await log.offset_for_timestamp(160, log.log_end_offset)
