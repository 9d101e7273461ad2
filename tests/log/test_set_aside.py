"""A damaged batch of a stopped broker is taken out of its log and put back; what is around it stays as it was."""

from __future__ import annotations

import contextlib
import random
from struct import Struct

import pytest

from ottla.log.follower_append import append_as_follower
from ottla.log.read_only_disk import ReadOnlyDisk
from ottla.log.set_aside import NothingToSetAsideError, put_back, set_aside
from ottla.log.verify.directory import verify_folder
from ottla.wire.batch_layout import BATCH_LENGTH_POSITION
from ottla.wire.records import iter_batches

from .test_log_cleaner_crashes import FailingDisk

_LENGTH = Struct(">i")
BATCHES = 12
PER_BATCH = 3
END = BATCHES * PER_BATCH


async def filled(world, **settings) -> int:
    """A log of equal batches of three records, four in a segment, that was stopped cleanly; the size of a batch."""
    await world.start()
    size = len(world.batch([(f"{n:03}", "x" * 100) for n in range(PER_BATCH)]))
    world.kill()
    log = await world.log(segment_bytes=4 * size, index_interval_bytes=0, **settings)
    for n in range(BATCHES):
        world.append(log, *[(f"{n * PER_BATCH + m:03}", "x" * 100) for m in range(PER_BATCH)], epoch=n // 5)
    assert [segment.base_offset for segment in log.segments] == [0, 12, 24]
    await world.managers[-1].identify(1, "a-cluster")
    await world.managers[-1].stop()
    return size


def segment_of(world, base_offset: int) -> str:
    return f"{world.path}/t-0/{base_offset:020d}.log"


def overwrite(world, base_offset: int, position: int, data: bytes) -> None:
    file = world.disk.open(segment_of(world, base_offset))
    file.write(data, position)
    file.sync()
    file.close()


async def offsets(world) -> list[int]:
    """The offsets that a reader gets, which looks at every CRC; the log is stopped cleanly again."""
    log = await world.log()
    assert (log.log_start_offset, log.log_end_offset) == (0, END)
    found, offset = [], 0
    while offset < END:
        piece = log.read(offset, 1 << 20, up_to=END, at_least_one=True)
        for batch in iter_batches(piece.read()):
            batch.check_crc()
            found += [record.offset for record in batch.records()]
            offset = batch.next_offset
        piece.release()
    await world.managers[-1].stop()
    return found


def all_but(first: int, last: int) -> list[int]:
    return [offset for offset in range(END) if not first <= offset <= last]


def flip_record(world, size: int, slot: int) -> tuple[int, int]:
    """Damage a record of the batch at a place in the log; its offsets."""
    overwrite(world, slot // 4 * 12, slot % 4 * size + 90, b"\xff")
    return slot * PER_BATCH, slot * PER_BATCH + PER_BATCH - 1


@pytest.mark.parametrize("slot", [0, 1, 3, 4, 7, 8, 11])
@pytest.mark.parametrize("clean", [True, False])
async def test_batch_with_a_wrong_crc(world, slot, clean):
    size = await filled(world)
    first, last = flip_record(world, size, slot)
    damaged = world.disk.read_file(segment_of(world, slot // 4 * 12))
    done = set_aside(world.disk, world.path, "t-0", last)
    assert (done.first, done.last, done.position, done.size) == (first, last, slot % 4 * size, size)
    kept = f"{world.path}/{done.kept}"
    assert world.disk.read_file(kept) == damaged[slot % 4 * size :][:size]
    if not clean:
        world.disk.remove(f"{world.path}/.kafka_cleanshutdown")
        world.disk.remove(f"{world.path}/recovery-point-offset-checkpoint")
    assert await offsets(world) == all_but(first, last)
    put_back(world.disk, world.path, "t-0", first)
    assert world.disk.read_file(segment_of(world, slot // 4 * 12)) == damaged
    assert not world.disk.exists(kept)


@pytest.mark.parametrize("slot", [1, 3, 9])
@pytest.mark.parametrize("length", [-1, 7, 1 << 30])
async def test_batch_whose_length_is_damaged(world, slot, length):
    size = await filled(world)
    overwrite(world, slot // 4 * 12, slot % 4 * size + BATCH_LENGTH_POSITION, _LENGTH.pack(length))
    first = slot * PER_BATCH
    done = set_aside(world.disk, world.path, "t-0", first)
    assert (done.first, done.last, done.size) == (first, first + PER_BATCH - 1, size)
    assert await offsets(world) == all_but(done.first, done.last)


async def test_overwritten_across_batches_and_headers(world):
    """Everything from there to the next batch that is valid is one piece."""
    size = await filled(world)
    overwrite(world, 12, size + 30, random.Random(3).randbytes(size + 20))
    done = set_aside(world.disk, world.path, "t-0", 16)
    assert (done.first, done.last, done.size) == (15, 20, 2 * size)
    assert await offsets(world) == all_but(15, 20)


async def test_followers_and_compaction_pass_over_what_takes_its_place(make_world):
    world, other = make_world("memory"), make_world("memory")
    size = await filled(world, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    flip_record(world, size, 5)
    set_aside(world.disk, world.path, "t-0", 15)
    leader, follower = await world.log(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0), await other.log()
    for base_offset in (0, 12, 24):
        piece = leader.read(base_offset, 1 << 20, up_to=END, at_least_one=True)
        append_as_follower(follower, piece.read(), 2)
        piece.release()
    follower.high_watermark = END
    await other.managers[-1].stop()
    assert await offsets(other) == all_but(15, 17)
    leader.high_watermark = END
    assert await world.managers[-1].cleaner.clean_dirtiest()
    await world.managers[-1].stop()
    assert await offsets(world) == all_but(15, 17)


async def test_one_batch_at_a_time(world):
    size = await filled(world)
    flip_record(world, size, 1)
    flip_record(world, size, 2)
    with pytest.raises(NothingToSetAsideError, match=r"position .* offsets 3 to 5"):
        set_aside(world.disk, world.path, "t-0", 6)
    assert set_aside(world.disk, world.path, "t-0", 3).size == size
    assert set_aside(world.disk, world.path, "t-0", 6).size == size
    assert await offsets(world) == all_but(3, 8)


async def test_a_second_damaged_batch_in_the_active_segment_costs_no_more_than_itself(world):
    """A start that had to read the segment would cut the log there."""
    size = await filled(world)
    flip_record(world, size, 8)
    flip_record(world, size, 9)
    set_aside(world.disk, world.path, "t-0", 24)
    log = await world.log()
    assert log.log_end_offset == END
    await world.managers[-1].stop()
    put_back(world.disk, world.path, "t-0", 24)
    assert (await world.log()).log_end_offset == END
    await world.managers[-1].stop()
    for offset in (24, 27):
        set_aside(world.disk, world.path, "t-0", offset)
    assert await offsets(world) == all_but(24, 29)


async def test_nothing_is_changed_where_nothing_is_damaged(world):
    await filled(world)
    for partition, offset, why in (
        ("t-0", 4, "is not damaged"),
        ("t-0", END, "no batch in it is damaged"),
        ("t-1", 0, "there is no partition t-1"),
        ("..", 0, r"there is no partition \.\."),
    ):
        with pytest.raises(NothingToSetAsideError, match=why):
            set_aside(world.disk, world.path, partition, offset)
    with pytest.raises(NothingToSetAsideError, match=r"there is no t-0/00000000000000000003\.damaged"):
        put_back(world.disk, world.path, "t-0", 3)
    assert await offsets(world) == list(range(END))


async def test_torn_end_is_left_to_the_start(world):
    size = await filled(world)
    overwrite(world, 24, 4 * size, b"torn")
    with pytest.raises(NothingToSetAsideError, match="a start cuts it there"):
        set_aside(world.disk, world.path, "t-0", END)


async def test_folder_of_a_running_broker_is_refused(world):
    size = await filled(world)
    flip_record(world, size, 1)
    await world.start()
    with pytest.raises(BlockingIOError):
        set_aside(world.disk, world.path, "t-0", 3)


@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
@pytest.mark.parametrize("slot", [5, 9])
async def test_crash_at_each_operation_leaves_the_log_with_the_batch_or_without_it(make_world, slot, power_loss):
    seen = []
    base_offset, first = slot // 4 * 12, slot * PER_BATCH
    for last in range(200):
        disk = FailingDisk()
        world = make_world("memory")
        world.disk = disk
        size = await filled(world)
        flip_record(world, size, slot)
        with_batch = disk.read_file(segment_of(world, base_offset))
        disk.fail_after(last)
        is_done = False
        with contextlib.suppress(OSError):
            set_aside(disk, world.path, "t-0", first)
            is_done = True
        disk.crash_or_kill(random.Random(last), power_loss)
        assert (await world.log()).log_end_offset == END
        await world.managers[-1].stop()
        seen.append(disk.read_file(segment_of(world, base_offset)) == with_batch)
        if seen[-1]:
            assert not is_done
            set_aside(disk, world.path, "t-0", first)
        kept = disk.read_file(f"{world.path}/t-0/{first:020d}.damaged")
        assert kept == with_batch[slot % 4 * size :][:size]
        assert await offsets(world) == all_but(first, first + PER_BATCH - 1)
        if is_done:
            break
    assert is_done
    assert set(seen) == {False, True}


async def test_the_file_of_another_batch_is_not_replaced(world):
    size = await filled(world)
    flip_record(world, size, 5)
    world.disk.write_file(f"{world.path}/t-0/{15:020d}.damaged", b"of another time")
    with pytest.raises(NothingToSetAsideError, match="already exists"):
        set_aside(world.disk, world.path, "t-0", 15)


async def test_verify_names_the_batch_and_finds_nothing_afterwards(os_world):
    world = os_world
    size = await filled(world)
    flip_record(world, size, 5)
    (line,) = map(str, verify_folder(ReadOnlyDisk(), world.path))
    assert line.startswith(
        f"t-0/{12:020d}.log: after offset 15, at position {size}, no valid batch follows: the batch of offsets 15 to 17: "
    )
    assert line.endswith(
        "; a start leaves it as it is, and a consumer that comes there fails; 'ottla set-aside DATA_DIR t-0 15' takes it out"
    )
    set_aside(world.disk, world.path, "t-0", 15)
    assert list(verify_folder(ReadOnlyDisk(), world.path)) == []
    assert await offsets(world) == all_but(15, 17)
