"""What a start finds after a crash, and what it makes of it."""

from __future__ import annotations

import copy
import random
import struct
import zlib

import pytest
import trio
import trio.testing

from ottla.log.log_directories import LogStartError
from ottla.log.transactional_reads import aborted_between

SETTINGS = {"segment_bytes": 700, "index_interval_bytes": 0}
FOLDER = "t-0"


async def written(world, batches: int = 12, *, flush_at: int | None = None):
    """Batches of two records, some with producers, under epochs that change; flushed at one of them."""
    log = await world.log(**SETTINGS)
    for n in range(batches):
        header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 2 * n}
        world.append(log, f"a{n}" + "x" * 60, f"b{n}" + "x" * 60, epoch=n // 5, timestamp=world.clock.now + n, **header)
        if n == flush_at:
            await log.flush()
            await world.managers[-1].write_checkpoints()
    return log


def path(world, name: str) -> str:
    return f"{world.path}/{FOLDER}/{name}"


def read(world, name: str) -> bytes:
    return world.disk.read_file(path(world, name))


def write(world, name: str, data: bytes) -> None:
    world.disk.write_file(path(world, name), data)


def summary(log) -> dict:
    """All that a restart must find again."""
    return {
        "offsets": (log.log_start_offset, log.log_end_offset),
        "size": log.size,
        "segments": [(s.base_offset, s.size, s.next_offset, s.indexes.largest_timestamp()) for s in log.segments],
        "indexes": [s.indexes.loaded()[0].to_bytes() for s in log.segments],
        "epochs": log.leader_epochs.entries(),
        "producers": [(p.producer_id, p.producer_epoch, p.last_sequence) for p in log.active_producers()],
        "topic_id": log.topic_id,
    }


async def test_clean_restart(world, read_values):
    log = await written(world)
    assert len(log.segments) > 3
    before, records = summary(log), read_values(log)
    await world.managers[-1].stop()
    assert world.disk.exists(f"{world.path}/.kafka_cleanshutdown")
    log = await world.log(**SETTINGS)
    assert not world.disk.exists(f"{world.path}/.kafka_cleanshutdown")
    assert (summary(log), read_values(log)) == (before, records)
    assert (log.recovery_point, log.high_watermark) == (24, 24)


async def test_restart_after_kill(world, read_values):
    log = await written(world, flush_at=6)
    before, records = summary(log), read_values(log)
    world.kill()
    log = await world.log(**SETTINGS)
    assert (summary(log), read_values(log)) == (before, records)
    assert log.recovery_point == 14
    world.append(log, "after", epoch=2)
    assert read_values(log)[-1] == (24, "after")


async def test_kill_while_loading_leaves_no_clean_mark(world):
    await written(world)
    await world.managers[-1].stop()
    await world.start()
    world.kill()
    assert not world.disk.exists(f"{world.path}/.kafka_cleanshutdown")


async def test_torn_tail_at_every_byte_of_the_last_batch(make_world, read_values):
    world = make_world("memory")
    log = await written(world)
    name = f"{log.segments[-1].base_offset:020d}.log"
    size = log.segments[-1].size
    start = log.segments[-1].position_of(22)
    records = read_values(log)
    world.kill()
    data = read(world, name)
    assert len(data) == size
    for cut in range(start, size):
        write(world, name, data[:cut])
        log = await world.log(**SETTINGS)
        assert (log.log_end_offset, read_values(log)) == (22, records[:-2])
        assert len(read(world, name)) == start
        again = world.append(log, "a", "b", producer_id=7, producer_epoch=0, base_sequence=22)
        assert (again.first_offset, again.is_duplicate) == (22, False)
        world.kill()


@pytest.mark.parametrize("tail", ["zeros", "garbage", "zeros in the last batch", "wrong crc", "huge length"])
async def test_bad_tail(world, read_values, tail):
    log = await written(world)
    records = read_values(log)
    name = f"{log.segments[-1].base_offset:020d}.log"
    start = log.segments[-1].position_of(22)
    world.kill()
    data = bytearray(read(world, name))
    left = records
    if tail == "zeros":
        data += bytes(5000)
    elif tail == "garbage":
        data += random.Random(1).randbytes(3000)
    else:
        left = records[:-2]
        if tail == "zeros in the last batch":
            data[start + 70 :] = bytes(len(data) - start - 70)
        elif tail == "wrong crc":
            data[-1] ^= 4
        else:
            struct.pack_into(">i", data, start + 8, 1 << 30)
    write(world, name, data)
    log = await world.log(**SETTINGS)
    assert read_values(log) == left
    assert log.log_end_offset == len(left)


async def test_damage_in_the_middle_cuts_there_and_drops_later_segments(world, read_values):
    log = await written(world, flush_at=2)
    records = read_values(log)
    assert [s.base_offset for s in log.segments][1] == 6
    world.kill()
    name = f"{6:020d}.log"
    data = bytearray(read(world, name))
    data[len(data) // 2] ^= 1
    write(world, name, data)
    log = await world.log(**SETTINGS)
    assert read_values(log) == records[:8]
    assert [s.base_offset for s in log.segments] == [0, 6]
    assert [name for name in world.files() if name.endswith(".log")] == [f"{n:020d}.log" for n in (0, 6)]
    assert log.leader_epochs.entries() == [(0, 0)]
    world.append(log, "x", "y", producer_id=7, producer_epoch=0, base_sequence=8)


async def test_below_the_recovery_point_nothing_is_scanned(world, read_values):
    log = await written(world, flush_at=8)
    records = read_values(log)
    world.kill()
    name = f"{0:020d}.log"
    data = bytearray(read(world, name))
    data[-10] ^= 1  # only a scan with the CRC could tell
    write(world, name, data)
    log = await world.log(**SETTINGS)
    assert log.log_end_offset == 24
    assert [offset for offset, _ in read_values(log)] == [offset for offset, _ in records]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "garbage", "odd size", "emptied", "of other batches"])
@pytest.mark.parametrize("clean", [True, False])
async def test_damaged_index(world, read_values, suffix, damage, clean):
    log = await written(world, flush_at=8)
    before, records = summary(log), read_values(log)
    if clean:
        await world.managers[-1].stop()
    else:
        world.kill()
    for name in [name for name in world.files() if name.endswith(f".{suffix}")]:
        data = read(world, name)
        if damage == "missing":
            world.disk.remove(path(world, name))
        elif damage == "garbage":
            write(world, name, random.Random(2).randbytes(24))
        elif damage == "odd size":
            write(world, name, data + b"\0")
        elif damage == "emptied":
            write(world, name, b"")
        elif suffix == "index":
            write(world, name, struct.pack(">ii", 1, 61))
    log = await world.log(**SETTINGS)
    assert read_values(log) == records
    for offset in range(24):
        assert read_values(log, offset) == records[offset:]
    if damage in ("missing", "odd size"):
        after = summary(log)
        del after["indexes"], before["indexes"]
        assert after == before
    assert log.log_end_offset == 24


async def test_emptied_time_indexes_lose_no_time(world):
    log = await written(world)
    times = [s.indexes.largest_timestamp() for s in log.segments]
    await world.managers[-1].stop()
    for name in world.files():
        if name.endswith("index"):
            write(world, name, b"")
    log = await world.log(**SETTINGS)
    assert [s.indexes.largest_timestamp() for s in log.segments] == times
    assert await log.offset_for_timestamp(times[1], 1 << 60) == (10, times[1], 1)


async def test_clean_mark_that_lies(world, read_values):
    log = await written(world)
    records = read_values(log)
    await world.managers[-1].stop()
    name = f"{log.segments[-1].base_offset:020d}.log"
    write(world, name, read(world, name)[:-3])
    log = await world.log(**SETTINGS)
    assert read_values(log) == records[:-2]


async def test_segment_that_lost_its_last_batch_ends_the_log_though_retention_has_just_deleted(world, read_values):
    """Only compaction leaves gaps between segments, and what retention deletes is no sign of it."""
    log = await written(world, flush_at=2)
    first, second, third = [segment.base_offset for segment in log.segments[:3]]
    log.high_watermark = log.log_end_offset
    log.delete_records_before(second)
    log.delete_old_segments(world.clock.now)
    assert any(name.endswith(".log.deleted") for name in world.files())
    world.kill()
    name = f"{second:020d}.log"
    whole = read(world, name)
    write(world, name, whole[: len(whole) * 2 // 3])
    log = await world.log(**SETTINGS)
    assert first < second < log.log_end_offset < third
    assert [segment.base_offset for segment in log.segments] == [second]


async def test_stray_files_are_cleared_away(world):
    log = await written(world)
    await world.managers[-1].stop()
    before = world.files()
    for name in (f"{0:020d}.log.deleted", f"{99:020d}.index", f"{99:020d}.timeindex", f"{5:020d}.log.cleaned", "x.tmp"):
        write(world, name, b"junk")
    log = await world.log(**SETTINGS)
    assert log.log_end_offset == 24
    assert world.files() == before


async def test_complete_swap_file_replaces_its_segments(world, read_values):
    log = await written(world)
    records = read_values(log)
    await world.managers[-1].stop()
    bases = [s.base_offset for s in log.segments]
    merged = read(world, f"{bases[0]:020d}.log") + read(world, f"{bases[1]:020d}.log")
    write(world, f"{bases[0]:020d}.log.swap", merged)
    log = await world.log(**SETTINGS)
    assert [s.base_offset for s in log.segments] == [bases[0], *bases[2:]]
    assert read_values(log) == records


async def test_damaged_leader_epochs_are_found_in_the_log(world):
    log = await written(world)
    epochs = log.leader_epochs.entries()
    assert epochs == [(0, 0), (1, 10), (2, 20)]
    await world.managers[-1].stop()
    write(world, "leader-epoch-checkpoint", b"0\n5\n1 1\n")
    assert (await world.log(**SETTINGS)).leader_epochs.entries() == epochs


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
@pytest.mark.parametrize("content", [b"", b"junk", b"0\n2\nt 0 5\n", b"0\n1\nt 0 x\n", b"1\n0\n", b"\xff\xfe\x00"])
async def test_damaged_checkpoint_does_no_harm(world, read_values, name, content):
    log = await written(world, flush_at=8)
    records = read_values(log)
    world.kill()
    world.disk.write_file(f"{world.path}/{name}", content)
    log = await world.log(**SETTINGS)
    assert read_values(log) == records


async def test_files_that_end_before_the_log_starts(world):
    log = await written(world, 3)
    log.delete_records_before(5)
    await world.managers[-1].stop()
    write(world, f"{0:020d}.log", b"")
    log = await world.log(**SETTINGS)
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert world.append(log, "x").first_offset == 5


async def test_old_message_format_is_refused_rather_than_cut(world):
    await written(world, 2)
    world.kill()
    name = f"{0:020d}.log"
    message = struct.pack(">bbq", 1, 0, 1000) + struct.pack(">i", -1) + struct.pack(">i5s", 5, b"hello")
    data = struct.pack(">qiI", 0, len(message) + 4, zlib.crc32(message)) + message
    write(world, name, data)
    with pytest.raises(LogStartError, match="message format 0 or 1"):
        await world.start(**SETTINGS)
    assert read(world, name) == data


async def test_only_snapshots_that_fit_are_used(world):
    """A snapshot above the cut would know of batches that are no longer there."""
    log = await written(world)
    name = f"{log.segments[-1].base_offset:020d}.log"
    await world.managers[-1].stop()
    world.disk.remove(f"{world.path}/.kafka_cleanshutdown")
    write(world, name, read(world, name)[:-1])
    log = await world.log(**SETTINGS)
    assert log.log_end_offset == 22
    again = world.append(log, "a", "b", producer_id=7, producer_epoch=0, base_sequence=22)
    assert not again.is_duplicate


async def test_end_below_the_checkpoints_after_a_clean_stop_is_named(world, caplog):
    for lost in ("tail", "everything"):
        log = await world.log()
        world.append(log, *"abc")
        size = log.segments[0].size
        world.append(log, *"def")
        end = log.log_end_offset
        await world.managers[-1].stop()
        caplog.clear()
        manager = await world.start()
        assert "records were lost" not in caplog.text
        await manager.stop()
        path = f"{world.path}/t-0/{0:020d}.log"
        if lost == "tail":
            file = world.disk.open(path)
            file.truncate(size)
            file.close()
        else:
            for name in world.files():
                world.disk.remove(f"{world.path}/t-0/{name}")
        await world.start()
        (line,) = (line for line in caplog.messages if "records were lost" in line)
        assert line == (
            f"{world.path}/t-0 ends at offset {3 if lost == 'tail' else 0}, although it was stopped cleanly "
            f"with a recovery point of {end} and a high watermark of {end}: records were lost since"
        )
        await world.managers[-1].stop()


async def test_crash_that_loses_the_end_is_not_named_as_a_loss_after_a_clean_stop(memory_world, caplog):
    world = memory_world
    log = await world.log()
    world.append(log, *"abc")
    await world.managers[-1].write_checkpoints()
    world.disk.crash(random.Random(1))
    await world.start()
    assert "records were lost" not in caplog.text


@pytest.mark.parametrize("seed", range(10))
async def test_power_loss_keeps_the_topics_id_of_a_log_that_was_flushed(memory_world, seed):
    """In a KRaft cluster a log without one is set aside, with all that is in it."""
    world = memory_world
    log = await world.log()
    world.append(log, *"abc")
    await log.flush()
    metadata = read(world, "partition.metadata")
    world.disk.crash(random.Random(seed))
    assert read(world, "partition.metadata") == metadata


@pytest.mark.parametrize("seed", range(40))
async def test_power_loss_keeps_what_was_flushed(memory_world, read_values, seed):
    rng = random.Random(seed)
    log = await written(memory_world, 12, flush_at=rng.randrange(12))
    flushed = log.recovery_point
    records = read_values(log)
    memory_world.disk.crash(rng)
    log = await memory_world.log(**SETTINGS)
    found = read_values(log)
    assert found == records[: len(found)]
    assert len(found) >= flushed
    for n in range(len(found) // 2, 12):
        again = memory_world.append(log, f"a{n}", f"b{n}", producer_id=7, producer_epoch=0, base_sequence=2 * n)
        assert not again.is_duplicate
    assert log.log_end_offset == 24


@pytest.mark.parametrize("seed", range(25))
async def test_power_loss_after_a_topic_was_deleted_and_made_again(memory_world, read_values, seed):
    rng = random.Random(seed)
    manager = await memory_world.start(**SETTINGS)
    old = manager.get_or_create("t", 0, b"a" * 16)
    for _ in range(10):
        memory_world.append(old, "old" + "x" * 100)
    old.delete_records_before(8)
    await old.flush()
    await manager.write_checkpoints()
    manager.delete("t", 0)
    new = manager.get_or_create("t", 0, b"b" * 16)
    for n in range(rng.randrange(1, 8)):
        memory_world.append(new, f"{n}" + "y" * 100)
    await new.flush()
    records = read_values(new)
    memory_world.append(new, "not flushed")
    memory_world.disk.crash(rng)
    manager = await memory_world.start(**SETTINGS)
    again = manager.get_or_create("t", 0, b"b" * 16)
    assert again.log_start_offset == 0
    assert read_values(again)[: len(records)] == records


async def test_truncation_at_the_recovery_point_lasts(memory_world, read_values):
    """The segment is flushed already, and no longer scanned once another begins behind it."""
    log = await memory_world.log()
    memory_world.append(log, "kept")
    await log.flush()
    memory_world.append(log, "cut")
    log.truncate_to(1)
    log.roll()
    memory_world.append(log, "after")
    await log.flush()
    await memory_world.managers[-1].write_checkpoints()
    for seed in range(20):
        disk = copy.deepcopy(memory_world.disk)
        disk.crash(random.Random(seed))
        world = type(memory_world)(disk, memory_world.path)
        assert read_values(await world.log()) == [(0, "kept"), (1, "after")]


@pytest.mark.parametrize("rolls_during_the_flush", [False, True])
async def test_flushed_transactions_stay_aborted(memory_world, held_workers, rolls_during_the_flush):
    """The index of a segment that was flushed while it was active is on disk before the segment is scanned no more."""
    log = await memory_world.log(segment_bytes=10_000)
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log.producer_state.confirm(7, log.producer_state.begin_verification(7, 0, 0, 0))
    memory_world.append(log, "aborted", **producer)
    memory_world.abort(log, 7)
    if rolls_during_the_flush:
        workers = held_workers(log, before=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.flush)
            await trio.testing.wait_all_tasks_blocked()
            log.roll()  # the job is made, and not yet run
            workers.release.set()
    else:
        await log.flush()
        log.roll()
    memory_world.append(log, "later")
    await log.flush()
    await memory_world.managers[-1].write_checkpoints()
    end = log.log_end_offset
    for seed in range(20):
        disk = copy.deepcopy(memory_world.disk)
        disk.crash(random.Random(seed))
        world = type(memory_world)(disk, memory_world.path)
        again = await world.log()
        again.high_watermark = again.log_end_offset
        assert again.log_end_offset == end
        assert [entry.producer_id for entry in aborted_between(again.segments, 0, end)] == [7]


IMPOSSIBLE = {
    "base offset below": (0, b"\xff"),
    "base offset above": (0, b"\x7f"),
    "length below zero": (8, b"\xff"),
    "length above": (8, b"\x7f"),
    "no length": (8, bytes(1)),
    "last offset below": (23, b"\xff"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
@pytest.mark.parametrize("indexed", [True, False])
async def test_impossible_header_at_the_end_of_a_clean_log_costs_no_more_than_its_batch(
    memory_world, read_values, what, indexed
):
    world = memory_world
    settings = {"index_interval_bytes": 0 if indexed else 4096, "segment_bytes": 1000}
    log = await world.log(**settings)
    for n in range(20):
        world.append(log, f"{n}" + "x" * 100, f"{n}")
    segment = log.segments[-1]
    last = segment.position_of(log.log_end_offset - 1)
    assert last > 0 and segment.base_offset > 0
    values = read_values(log)
    await world.managers[-1].stop()
    position, byte = IMPOSSIBLE[what]
    file = world.disk.open(segment.path)
    file.write(byte * 4, last + position)
    file.close()
    assert read_values(await world.log(**settings)) == values[:-2]
