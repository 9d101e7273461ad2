"""Idempotence: duplicates, gaps, epochs, wrap, expiry, snapshots."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot

MAX_SEQUENCE = (1 << 31) - 1


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


def send(world, log, sequence: int, count: int = 2, *, pid: int = 7, epoch: int = 0):
    return world.append(log, *["x"] * count, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)


async def test_duplicate_of_the_last_five_batches_gives_the_old_offsets(world):
    log = await world.log()
    world.append(log, "before")
    first = [send(world, log, 2 * n) for n in range(6)]
    end = log.log_end_offset
    for n in range(1, 6):
        again = send(world, log, 2 * n)
        assert (again.first_offset, again.last_offset) == (first[n].first_offset, first[n].last_offset)
        assert again.is_duplicate
    assert log.log_end_offset == end
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, 0)


@pytest.mark.parametrize("sequence", [1, 3, 100])
async def test_gap_or_overlap(world, sequence):
    log = await world.log()
    send(world, log, 0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, sequence)
    assert log.log_end_offset == 2
    send(world, log, 2)


async def test_duplicate_with_another_length_is_none(world):
    log = await world.log()
    send(world, log, 0, 2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, 0, 1)


@pytest.mark.parametrize("sequence", [0, 5, MAX_SEQUENCE])
async def test_unknown_producer_may_begin_anywhere(world, sequence):
    log = await world.log()
    send(world, log, sequence, 1)
    assert log.log_end_offset == 1


async def test_sequence_wraps(world):
    log = await world.log()
    send(world, log, MAX_SEQUENCE - 1, 2)
    send(world, log, 0, 2)
    assert send(world, log, 0, 2).is_duplicate
    assert log.log_end_offset == 4


async def test_sequence_wraps_inside_a_batch(world):
    log = await world.log()
    send(world, log, MAX_SEQUENCE, 3)
    send(world, log, 2, 1)
    assert send(world, log, MAX_SEQUENCE, 3).is_duplicate
    assert log.log_end_offset == 4


async def test_new_epoch_begins_at_zero_and_fences_the_old_one(world):
    log = await world.log()
    send(world, log, 0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, 2, epoch=1)
    send(world, log, 0, epoch=1)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        send(world, log, 2, epoch=0)
    assert log.log_end_offset == 4


async def test_producers_do_not_mix(world):
    log = await world.log()
    send(world, log, 0, pid=1)
    send(world, log, 0, pid=2)
    send(world, log, 2, pid=1)
    assert send(world, log, 0, pid=2).is_duplicate
    state = {s.producer_id: (s.producer_epoch, s.last_sequence) for s in log.active_producers()}
    assert state == {1: (0, 3), 2: (0, 1)}


async def test_refused_batch_leaves_no_trace(world):
    log = await world.log(segment_bytes=300)
    send(world, log, 0)
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        world.append(log, "x" * 400, producer_id=7, producer_epoch=0, base_sequence=2)
    send(world, log, 2)


async def test_idle_producers_are_forgotten(world):
    manager = await world.start(manager={"producer_id_expiration_ms": 1000})
    log = manager.get_or_create("t", 0, bytes(16))
    send(world, log, 0, pid=1)
    world.clock.now += 500
    send(world, log, 0, pid=2)
    world.clock.now += 500
    await manager._expire_idle_producers()
    assert [state.producer_id for state in log.active_producers()] == [2]
    assert not send(world, log, 17, pid=1).is_duplicate


@pytest.mark.parametrize("clean", [True, False])
async def test_restart_remembers_sequences(world, clean):
    log = await world.log(segment_bytes=1000)
    old = [send(world, log, 2 * n) for n in range(30)]
    send(world, log, 4, pid=8, epoch=3)
    if clean:
        await world.managers[-1].stop()
    else:
        world.kill()
    log = await world.log(segment_bytes=1000)
    again = send(world, log, 58)
    assert again.is_duplicate
    assert again.first_offset == old[-1].first_offset
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, 62)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        send(world, log, 6, pid=8, epoch=2)
    send(world, log, 60)
    send(world, log, 6, pid=8, epoch=3)


async def test_snapshots_of_rolls_are_kept_and_of_stops_only_the_newest(world):
    log = await world.log(segment_bytes=200)
    for n in range(8):
        send(world, log, 2 * n)
    send(world, log, 16, 1)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    for sequence in (17, 18):
        await world.managers[-1].stop()
        log = await world.log(segment_bytes=10_000)
        send(world, log, sequence, 1)
    await world.managers[-1].stop()
    await world.log(segment_bytes=200)
    snapshots = [int(name[:20]) for name in world.files() if name.endswith(".snapshot")]
    assert snapshots == [*bases[1:], log.log_end_offset]


async def test_damaged_snapshot_is_not_believed(world):
    log = await world.log(segment_bytes=400)
    for n in range(8):
        send(world, log, 2 * n)
    await world.managers[-1].stop()
    folder = f"{world.path}/t-0"
    for name in world.files():
        if name.endswith(".snapshot"):
            data = bytearray(world.disk.read_file(f"{folder}/{name}"))
            data[-1] ^= 1
            world.disk.write_file(f"{folder}/{name}", data)
    log = await world.log(segment_bytes=400)
    assert send(world, log, 14).is_duplicate
    send(world, log, 16)


async def test_truncation_goes_back_to_what_was_known_then(world):
    log = await world.log(segment_bytes=400)
    for n in range(10):
        send(world, log, 2 * n)
    log.truncate_to(8)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        send(world, log, 18)
    assert send(world, log, 6).is_duplicate
    assert send(world, log, 8).first_offset == 8


async def test_open_transaction_is_tracked_until_its_marker(world):
    log = await world.log()
    batch = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    log.append_as_leader(world.batch(["a"], base_sequence=0, **batch), 0, world.clock.now, internal=True)
    log.append_as_leader(world.batch(["b"], base_sequence=1, **batch), 0, world.clock.now, internal=True)
    assert log.active_producers()[0].current_txn_first_offset == 0
    marker = world.batch([("\0\0\0\1", "\0\0\0\0\0\5")], is_control=True, **batch)
    log.append_as_leader(marker, 0, world.clock.now, internal=True)
    (state,) = log.active_producers()
    assert (state.current_txn_first_offset, state.coordinator_epoch, state.last_sequence) == (-1, 5, 1)


async def test_snapshot_as_kafka_lays_it_out(world):
    log = await world.log()
    world.append(log, "before")
    send(world, log, 5, 3, pid=1 << 40, epoch=9)
    (state,) = log.active_producers()
    entry = struct.pack(">qhiqiqiq", 1 << 40, 9, 7, 3, 2, world.clock.now, -1, -1)
    body = struct.pack(">i", 1) + entry
    data = encode_snapshot([state])
    assert data == struct.pack(">hI", 1, crc32c(body)) + body
    (again,) = decode_snapshot(data)
    (batch,) = again.batches
    assert (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset) == (5, 7, 1, 3)


@pytest.mark.parametrize("damage", [b"", b"\0\1", struct.pack(">hIi", 2, 0, 0), struct.pack(">hIi", 1, 0, 1)])
def test_what_is_no_snapshot(damage):
    with pytest.raises(ValueError, match=r"."):
        decode_snapshot(damage)
