"""A damaged batch in a log that is in use: reads of it answer CORRUPT_MESSAGE, and everything else goes on.

What a start does with one is in test_recovery.
"""

from __future__ import annotations

from struct import Struct

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.batch_layout import BATCH_LENGTH_POSITION
from ottla.wire.records import iter_batches

_LENGTH = Struct(">i")
PER_SEGMENT = 4
END = 3 * PER_SEGMENT


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


async def three_segments(world, **settings):
    """A log of one-record batches, four in a segment, that was closed and opened again: no position is remembered."""
    size = len(world.batch([("key 00", "x" * 100)]))
    settings = {"segment_bytes": PER_SEGMENT * size, "index_interval_bytes": 0, **settings}
    log = await world.log(**settings)
    for n in range(END):
        world.append(log, (f"key {n:02}", "x" * 100), timestamp=1000 + n)
    assert len(log.segments) == 3
    await world.managers[-1].stop()
    return await world.log(**settings)


def damage(log, offset: int, length: int) -> None:
    """Write another length into the header of the batch at ``offset``."""
    segment = log.segments[log.segments.place_of(offset)]
    position = segment.size // (segment.next_offset - segment.base_offset) * (offset - segment.base_offset)
    file = segment.file.disk.open(segment.path)
    file.write(_LENGTH.pack(length), position + BATCH_LENGTH_POSITION)
    file.close()


def read(log, offset: int, max_bytes: int = 1 << 20):
    """(base offset, last offset) of each batch."""
    piece = log.read(offset, max_bytes, up_to=END, at_least_one=True)
    try:
        return [(batch.base_offset, batch.last_offset) for batch in iter_batches(piece.read())]
    finally:
        piece.release()


def others_are_served(world, log) -> None:
    assert read(log, PER_SEGMENT, 1) == [(PER_SEGMENT, PER_SEGMENT)]
    assert read(log, 2 * PER_SEGMENT) == [(n, n) for n in range(2 * PER_SEGMENT, END)]
    world.append(log, ("key", "x"), timestamp=2000)
    assert not log.folder.is_offline


@pytest.mark.parametrize("length", [-1, -(1 << 31), 0, 48])
async def test_a_batch_whose_length_is_too_small(world, length):
    log = await three_segments(world)
    damage(log, 5, length)
    for _ in range(2):
        with refused(ErrorCode.CORRUPT_MESSAGE):
            read(log, 5)
    assert read(log, 4, 300) == [(4, 4)], "what is before it is read up to it"
    assert read(log, 6) == [(6, 6), (7, 7)], "what is behind it is found by the index"
    others_are_served(world, log)


async def test_a_batch_on_the_way_to_another(world):
    log = await three_segments(world, index_interval_bytes=1 << 20)
    damage(log, 5, -1)
    for offset in (5, 6, 7):
        with refused(ErrorCode.CORRUPT_MESSAGE):
            read(log, offset)
    others_are_served(world, log)


async def test_behind_a_batch_whose_length_is_too_large_there_is_nothing(world):
    """As in Kafka, the next segment follows."""
    log = await three_segments(world, index_interval_bytes=1 << 20)
    damage(log, 5, 1 << 30)
    assert read(log, 5) == [(n, n) for n in range(8, 12)]
    assert read(log, 4, 300) == [(4, 4)]
    others_are_served(world, log)


@pytest.mark.parametrize("spare", [1, 20, 26])
async def test_a_length_that_ends_just_before_the_end_of_the_segment(world, spare):
    log = await three_segments(world, index_interval_bytes=1 << 20)
    size = log.segments[1].size
    damage(log, 5, size - size // PER_SEGMENT - 12 - spare)
    assert read(log, 7) == [(n, n) for n in range(8, 12)]
    others_are_served(world, log)


async def test_the_index_is_lost_too(world):
    log = await three_segments(world)
    damage(log, 5, -1)
    world.disk.remove(log.segments[1].file.path_of(".index"))
    with refused(ErrorCode.CORRUPT_MESSAGE):
        read(log, 6)
    with refused(ErrorCode.CORRUPT_MESSAGE):
        read(log, 6)
    others_are_served(world, log)


async def test_look_ups_by_time(world):
    log = await three_segments(world, index_interval_bytes=1 << 20)
    damage(log, 5, -1)
    with refused(ErrorCode.CORRUPT_MESSAGE):
        await log.offset_for_timestamp(1006, END)
    assert (await log.offset_for_timestamp(1009, END))[:2] == (9, 1009)
    others_are_served(world, log)


async def test_a_truncation_that_does_not_find_its_place_changes_nothing(world):
    log = await three_segments(world, index_interval_bytes=1 << 20)
    damage(log, 5, -1)
    with refused(ErrorCode.CORRUPT_MESSAGE):
        log.truncate_to(6)
    assert log.log_end_offset == END
    others_are_served(world, log)


async def test_compaction_leaves_the_log_alone(world, caplog):
    """Even one whose index is lost, so that it is noticed while the log is only looked at."""
    log = await three_segments(world, cleanup_policy="compact", min_compaction_lag_ms=1)
    log.high_watermark = END
    damage(log, 5, -1)
    world.disk.remove(log.segments[1].file.path_of(".timeindex"))
    manager = world.managers[-1]
    while await manager.cleaner.clean_dirtiest():
        pass
    assert "t-0 cannot be compacted" in caplog.text
    assert manager.cleaner.uncleanable_count == 1
    others = manager.get_or_create("u", 0, bytes(16))
    world.append(others, ("key", "x"))
    assert not manager.is_offline


async def test_retention_goes_on_with_other_logs(world):
    log = await three_segments(world, retention_ms=10)
    damage(log, 5, -1)
    world.disk.remove(log.segments[1].file.path_of(".timeindex"))
    log.high_watermark = END
    manager = world.managers[-1]
    other = manager.get_or_create("u", 0, bytes(16))
    world.append(other, "x", timestamp=1)
    other.high_watermark = 1
    await manager.delete_old_segments()
    assert other.log_start_offset == 1
    assert not manager.is_offline
    with pytest.raises(KafkaError):
        log.delete_old_segments(world.clock.now)
