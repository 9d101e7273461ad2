"""When a segment is full, and what it leaves."""

from __future__ import annotations

import struct

from ottla.log.offset_index import OffsetIndex
from ottla.log.time_index import TimeIndex
from ottla.wire.records import Record


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


async def test_by_size(world):
    log = await world.log(segment_bytes=400)
    for _ in range(7):
        world.append(log, "x" * 100)
    size = log.size // 7
    per_segment = 400 // size
    assert per_segment == 2
    assert bases(log) == [0, 2, 4, 6]


async def test_a_batch_that_just_fits(world):
    size = len(world.batch(["x" * 100]))
    log = await world.log(segment_bytes=2 * size)
    for _ in range(4):
        world.append(log, "x" * 100)
    assert bases(log) == [0, 2]


async def test_by_time_of_the_records(world):
    log = await world.log(segment_ms=1000)
    for timestamp in (5000, 5500, 6000, 6001, 6002, 100, 7002):
        world.append(log, "x", timestamp=timestamp)
    assert bases(log) == [0, 3, 6]


async def test_by_the_clock_where_records_have_no_time(world):
    log = await world.log(segment_ms=1000)
    world.append(log, Record(timestamp=-1))
    world.clock.now += 1000
    world.append(log, Record(timestamp=-1))
    assert bases(log) == [0]
    world.clock.now += 1
    world.append(log, Record(timestamp=-1))
    assert bases(log) == [0, 2]


async def test_time_counts_on_after_a_restart(world):
    log = await world.log(segment_ms=1000)
    world.append(log, "x", timestamp=5000)
    await world.managers[-1].stop()
    log = await world.log(segment_ms=1000)
    world.append(log, "x", timestamp=6000)
    world.append(log, "x", timestamp=6001)
    assert bases(log) == [0, 2]


async def test_jitter_makes_segments_roll_early_but_not_all_at_once(world):
    manager = await world.start(segment_ms=10_000, segment_jitter_ms=5_000)
    waited = set()
    for partition in range(10):
        log = manager.get_or_create("t", partition, bytes(16))
        timestamp = 1000
        while len(log.segments) < 2:
            world.append(log, "x", timestamp=timestamp)
            timestamp += 100
        waited.add(timestamp - 1100)
    assert min(waited) > 4_900
    assert max(waited) <= 10_100
    assert len(waited) > 3


async def test_by_full_offset_index(world):
    log = await world.log(index_interval_bytes=0, segment_index_bytes=40)
    for n in range(20):
        world.append(log, "x", timestamp=7 - n)
    # The first batch of a segment has no entry, so 5 entries are 6 batches.
    assert bases(log) == [0, 6, 12, 18]


async def test_by_full_time_index(world):
    log = await world.log(index_interval_bytes=0, segment_index_bytes=48)
    for n in range(20):
        world.append(log, "x", timestamp=n)
    # Room for 4 entries, the last of them kept for the closing one: 3 are 4 batches.
    assert bases(log) == [0, 4, 8, 12, 16]


async def test_by_offset_out_of_reach_of_the_index(world):
    log = await world.log()
    world.append(log, "x")
    log.log_end_offset = (1 << 31) - 1
    world.append(log, "x")
    assert bases(log) == [0]
    world.append(log, "x")
    assert bases(log) == [0, 1 << 31]
    world.append(log, "x")
    assert bases(log) == [0, 1 << 31]


async def test_rolled_segment_has_exact_index_files_and_a_snapshot(world):
    log = await world.log(index_interval_bytes=0, segment_bytes=500)
    for n in range(4):
        world.append(log, "x" * 100, timestamp=[10, 30, 20, 50][n])
    size = len(world.batch(["x" * 100]))
    assert bases(log) == [0, 2] or bases(log) == [0, 3]
    folder = f"{world.path}/t-0"
    index = world.disk.read_file(f"{folder}/{0:020d}.index")
    assert index == struct.pack(">iiii", 1, size, 2, 2 * size)[: 8 * (bases(log)[1] - 1)]
    times = world.disk.read_file(f"{folder}/{0:020d}.timeindex")
    assert times == struct.pack(">qi", 30, 1)
    assert f"{bases(log)[1]:020d}.snapshot" in world.files()


def test_offset_index_as_kafka_lays_it_out():
    index = OffsetIndex()
    for relative_offset, position in ((3, 100), (9, 300), (0x7FFFFFFF, 0x7FFFFF00)):
        index.append(relative_offset, position)
    data = index.to_bytes()
    assert data == struct.pack(">6i", 3, 100, 9, 300, 0x7FFFFFFF, 0x7FFFFF00)
    again = OffsetIndex.from_bytes(data, 0x7FFFFFFF)
    assert [again.lookup(n) for n in (0, 2, 3, 8, 9, 10)] == [(-1, 0)] * 2 + [(3, 100)] * 2 + [(9, 300)] * 2
    assert [again.boundary(n) for n in (99, 100, 299, 300)] == [(-1, 0), (3, 100), (3, 100), (9, 300)]


def test_time_index_as_kafka_lays_it_out():
    index = TimeIndex()
    for timestamp, relative_offset in ((1 << 40, 3), ((1 << 40) + 1, 9), ((1 << 40) + 1, 12), (5, 13)):
        index.maybe_append(timestamp, relative_offset)
    data = index.to_bytes()
    assert data == struct.pack(">qiqi", 1 << 40, 3, (1 << 40) + 1, 9)
    again = TimeIndex.from_bytes(data)
    assert [again.lookup((1 << 40) + n) for n in (-1, 0, 1, 2)] == [0, 3, 9, 9]


def test_zeros_that_kafka_preallocates_are_no_entries():
    assert len(OffsetIndex.from_bytes(struct.pack(">4i", 3, 100, 0, 0) + bytes(800), 1000)) == 1
    assert len(OffsetIndex.from_bytes(bytes(800), 1000)) == 0
    assert len(TimeIndex.from_bytes(struct.pack(">qi", 9, 1) + bytes(1200))) == 1
