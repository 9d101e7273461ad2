"""Reading: what is returned from where, its limits, and slices that outlive their segment."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.records import iter_batches


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def offsets(piece) -> list[tuple[int, int]]:
    """(base offset, last offset) of each batch; releases the slice."""
    if piece is None:
        return []
    data = piece.read()
    assert len(data) == piece.nbytes
    piece.release()
    return [(batch.base_offset, batch.last_offset) for batch in iter_batches(data)]


async def written(world, batches: int, per_batch: int = 3, **settings):
    log = await world.log(**settings)
    for _ in range(batches):
        world.append(log, *["x" * 100] * per_batch)
    return log


async def test_offset_inside_a_batch_gives_the_whole_batch(world):
    log = await written(world, 3)
    for offset in (3, 4, 5):
        assert offsets(log.read(offset, 1 << 20, up_to=9, at_least_one=True)) == [(3, 5), (6, 8)]


async def test_nothing_at_the_end(world):
    log = await written(world, 2)
    assert log.read(6, 1000, up_to=6, at_least_one=True) is None
    empty = world.managers[-1].get_or_create("never", 0)
    assert empty.read(0, 1000, up_to=0, at_least_one=True) is None


@pytest.mark.parametrize("offset", [-1, 7, 100])
async def test_out_of_range(world, offset):
    log = await written(world, 2)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(offset, 1000, up_to=6, at_least_one=True)


async def test_below_the_log_start(world):
    log = await written(world, 3)
    log.delete_records_before(4)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(3, 1000, up_to=9, at_least_one=True)
    assert offsets(log.read(4, 1 << 20, up_to=9, at_least_one=True)) == [(3, 5), (6, 8)]


@pytest.mark.parametrize("index_interval_bytes", [0, 500, 4096])
async def test_up_to_is_never_crossed(world, index_interval_bytes):
    log = await written(world, 30, index_interval_bytes=index_interval_bytes, segment_bytes=4000)
    for up_to in range(log.log_end_offset + 1):
        offset = 0
        seen = []
        while found := offsets(log.read(offset, 1 << 20, up_to=up_to, at_least_one=True)):
            seen += found
            offset = found[-1][1] + 1
        whole = up_to // 3
        assert seen == [(3 * i, 3 * i + 2) for i in range(whole)]


@pytest.mark.parametrize("index_interval_bytes", [0, 700, 4096])
async def test_max_bytes_ends_on_a_batch(world, index_interval_bytes):
    log = await written(world, 40, index_interval_bytes=index_interval_bytes)
    size = log.size // 40
    for offset in (0, 1, 30, 117):
        for max_bytes in (size, size + 1, 3 * size - 1, 3 * size, 20 * size):
            found = offsets(log.read(offset, max_bytes, up_to=120, at_least_one=False))
            assert found[0] == (offset // 3 * 3, offset // 3 * 3 + 2)
            assert len(found) * size <= max_bytes
            if index_interval_bytes == 0:
                assert len(found) == min(max_bytes // size, 40 - offset // 3)


async def test_first_batch_is_whole_though_larger_than_max_bytes(world):
    log = await written(world, 3)
    for max_bytes in (0, 1, 100):
        assert offsets(log.read(4, max_bytes, up_to=9, at_least_one=True)) == [(3, 5)]
        assert log.read(4, max_bytes, up_to=9, at_least_one=False) is None


async def test_one_slice_stays_in_one_segment(world):
    log = await written(world, 12, segment_bytes=1300)
    assert len(log.segments) == 4
    assert offsets(log.read(0, 1 << 20, up_to=36, at_least_one=True)) == [(0, 2), (3, 5), (6, 8)]
    assert offsets(log.read(9, 1 << 20, up_to=36, at_least_one=True)) == [(9, 11), (12, 14), (15, 17)]


async def test_sequential_and_random_readers_see_the_same(world):
    log = await written(world, 200, per_batch=1, index_interval_bytes=300, segment_bytes=9000)
    for reader in ([*range(0, 200, 7)], [199, 3, 100, 3, 0, 198, 42, 99, 100]):
        for offset in reader:
            (first, *_) = offsets(log.read(offset, 1 << 20, up_to=200, at_least_one=True))
            assert first == (offset, offset)


async def test_reader_at_the_tail_gets_each_new_batch(world):
    log = await written(world, 1)
    offset = 3
    for _ in range(40):
        assert log.read(offset, 1 << 20, up_to=log.log_end_offset, at_least_one=True) is None
        world.append(log, "x", "y")
        assert offsets(log.read(offset, 1 << 20, up_to=log.log_end_offset, at_least_one=True)) == [(offset, offset + 1)]
        offset += 2


async def test_slice_outlives_retention_and_deletion(world):
    log = await written(world, 12, segment_bytes=1300, retention_bytes=0, file_delete_delay_ms=0)
    held = [log.read(offset, 1 << 20, up_to=36, at_least_one=True) for offset in (0, 9, 27)]
    before = [piece.read() for piece in held]
    assert log.delete_old_segments(world.clock.now) == 4
    world.managers[-1].delete("t", 0)
    assert [piece.read() for piece in held] == before
    for piece in held:
        piece.release()


async def test_slice_of_bytes_that_are_gone(world):
    log = await written(world, 3)
    piece = log.read(3, 1 << 20, up_to=9, at_least_one=True)
    log.truncate_to(6)
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        piece.read()
    piece.release()


async def test_open_files_are_bounded(os_world):
    manager = await os_world.start()
    manager.folders[0].max_open_files = 5
    logs = [manager.get_or_create("t", partition, bytes(16)) for partition in range(20)]
    for log in logs:
        os_world.append(log, "first")
    held = logs[0].read(0, 1000, up_to=1, at_least_one=True)
    for _ in range(3):
        for log in logs:
            os_world.append(log, "again")
            assert offsets(log.read(0, 1000, up_to=log.log_end_offset, at_least_one=True))[0] == (0, 0)
            assert sum(other.segments[0].file.open_file is not None for other in logs) <= 5
    assert logs[0].segments[0].file.open_file is not None, "a pinned file stays open"
    assert offsets(held) == [(0, 0)]


async def test_read_error(memory_world):
    log = await written(memory_world, 3)
    piece = log.read(0, 1000, up_to=9, at_least_one=True)
    memory_world.disk.fail("read")
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        piece.read()
    with refused(ErrorCode.KAFKA_STORAGE_ERROR):
        log.read(4, 1000, up_to=9, at_least_one=True)
    piece.release()


async def test_truncation_makes_a_reader_search_anew(world):
    log = await written(world, 4, per_batch=2)
    assert offsets(log.read(0, log.size // 2, up_to=8, at_least_one=True)) == [(0, 1), (2, 3)]
    log.truncate_to(2)
    world.append(log, "x", "y", "z", "w")
    assert offsets(log.read(4, 1 << 20, up_to=6, at_least_one=True)) == [(2, 5)]
