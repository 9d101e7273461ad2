"""Open transactions, the last stable offset and the index of aborted transactions."""

from __future__ import annotations

import errno
import struct

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.offset_index import CorruptIndexError
from ottla.log.transaction_index import AbortedTxn, decode_transaction_index, encode_aborted
from ottla.log.transactional_reads import aborted_between, aborted_transactions
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch

SEGMENT = {"segment_bytes": 1000}


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.raises(KafkaError, match=code.name)


class Producer:
    """A transactional producer, whose coordinator always says yes."""

    def __init__(self, world, log, producer_id: int, epoch: int = 0) -> None:
        self.world, self.log = world, log
        self.producer_id, self.epoch = producer_id, epoch
        self.sequence = 0

    def verify(self, *, sequence: int | None = None) -> None:
        state = self.log.producer_state
        if not state.has_ongoing(self.producer_id, self.epoch):
            asked = state.begin_verification(
                self.producer_id, self.epoch, self.sequence if sequence is None else sequence, self.world.clock.now
            )
            state.confirm(self.producer_id, asked)

    def send(self, *values: str, transactional: bool = True) -> int:
        """The batch's first offset."""
        header = {
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequence,
            "is_transactional": transactional,
        }
        result = self.world.append(self.log, *values, **header)
        self.sequence += len(values)
        return result.first_offset

    def begin(self, *values: str) -> int:
        self.verify()
        return self.send(*values)

    def end(self, *, commit: bool, epoch: int | None = None, coordinator_epoch: int = 3, version: int = 0) -> int:
        """The marker's offset."""
        kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
        marker = build_end_marker_batch(
            EndTransactionMarker(kind, coordinator_epoch),
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            timestamp=self.world.clock.now,
        )
        result = self.log.append_end_marker(marker, 0, self.world.clock.now, version)
        self.log.high_watermark = self.log.log_end_offset
        return result.first_offset


def aborted(log, offset: int = 0, max_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    """(producer id, first offset) of what a read from ``offset`` on has to leave out."""
    found = log.read(offset, max_bytes, up_to=log.last_stable_offset, at_least_one=True)
    try:
        return [(entry.producer_id, entry.first_offset) for entry in aborted_transactions(log, offset, found)]
    finally:
        found.release()


async def test_the_last_stable_offset(world):
    log = await world.log()
    first, second = Producer(world, log, 1), Producer(world, log, 2)
    world.append(log, "plain")
    assert log.last_stable_offset == 1
    first.begin("a", "b")
    second.begin("c")
    assert log.last_stable_offset == 1
    first.end(commit=True)
    assert log.last_stable_offset == 3, "where the second transaction begins"
    second.end(commit=False)
    assert log.last_stable_offset == log.log_end_offset == 6
    assert aborted(log) == [(2, 3)]


async def test_a_marker_above_the_high_watermark_does_not_count_yet(world):
    log = await world.log()
    producer = Producer(world, log, 1)
    producer.begin("a")
    world.append(log, "plain")
    producer.end(commit=False)
    log.high_watermark = 2
    assert log.last_stable_offset == 0
    log.high_watermark = 3
    assert log.last_stable_offset == 3


async def test_what_is_outside_of_a_transaction_is_refused(world):
    log = await world.log()
    producer = Producer(world, log, 1)
    with refused(ErrorCode.INVALID_TXN_STATE):
        producer.send("never added")
    producer.begin("a")
    with refused(ErrorCode.INVALID_TXN_STATE):
        producer.send("plain", transactional=False)
    asked = log.producer_state.begin_verification(1, 0, 0, world.clock.now)
    producer.end(commit=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        producer.send("late")
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.producer_state.confirm(1, asked)
    assert log.log_end_offset == 2


async def test_a_truncation_ends_no_verification_that_is_under_way(world):
    """Seed 1388: a leader loses its session, truncates what was not committed, and leads again before its coordinator answers."""
    log = await world.log()
    producer = Producer(world, log, 1)
    producer.begin("a")
    producer.end(commit=True)
    world.append(log, "of a leader that was not followed")
    asked = log.producer_state.begin_verification(1, 0, producer.sequence, world.clock.now)
    log.truncate_to(2)
    log.producer_state.confirm(1, asked)
    assert producer.send("b") == 2
    assert log.last_stable_offset == 2


async def test_the_first_batch_comes_first(world):
    log = await world.log()
    producer = Producer(world, log, 1)
    producer.sequence = 5
    producer.verify(sequence=2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        producer.send("the batch with sequence 2 has not come")


async def test_markers_that_are_out_of_date(world):
    log = await world.log()
    producer = Producer(world, log, 1, epoch=4)
    producer.begin("a")
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        producer.end(commit=True, epoch=3)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        producer.end(commit=True, version=2)
    producer.end(commit=True, epoch=5, version=2)
    producer.end(commit=True, epoch=5, version=2)  # a second time
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        producer.end(commit=True, epoch=5, coordinator_epoch=2)
    (state,) = log.active_producers()
    assert (state.producer_epoch, state.coordinator_epoch, state.current_txn_first_offset) == (5, 3, -1)


async def test_aborted_transactions_cover_what_is_read_and_no_more(world):
    log = await world.log(**SEGMENT)
    long, short = Producer(world, log, 1), Producer(world, log, 2)
    begun = long.begin("x" * 50)
    starts = []
    for _ in range(20):
        starts.append(short.begin("y" * 50))
        short.end(commit=False)
    end = long.end(commit=False)
    assert len(log.segments) > 3
    assert log.last_stable_offset == end + 1
    assert (1, begun) in aborted(log), "its marker is in the last segment"
    segment = next(segment for segment in log.segments if segment.next_offset > starts[10])
    found = aborted(log, starts[10], max_bytes=1)
    assert found[0] == (2, starts[10])
    assert found[-1] == (1, begun)
    assert all(first < segment.next_offset for _, first in found), "later segments were not read"
    assert aborted(log, end) == [(1, begun)]


@pytest.mark.parametrize("clean", [True, False])
async def test_restart(make_world, clean):
    world = make_world("memory")
    log = await world.log(**SEGMENT)
    long, short = Producer(world, log, 1), Producer(world, log, 2)
    long.begin("x" * 50)
    for _ in range(10):
        short.begin("y" * 50)
        short.end(commit=False)
    before = [segment.aborted.entries() for segment in log.segments]
    assert sum(map(len, before)) == 10
    if clean:
        await world.managers[-1].stop()
    else:
        world.kill()
    log = await world.log(**SEGMENT)
    assert [segment.aborted.entries() for segment in log.segments] == before
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 0, "the transaction is still open"
    long.log = log
    long.send("z")
    long.end(commit=True)
    assert log.last_stable_offset == log.log_end_offset
    assert len(aborted(log)) == len(before[0])


@pytest.mark.parametrize("clean", [True, False])
async def test_a_damaged_index_is_made_anew(make_world, clean):
    world = make_world("memory")
    log = await world.log(**SEGMENT)
    producer = Producer(world, log, 1)
    for _ in range(20):
        producer.begin("y" * 50)
        producer.end(commit=False)
    before = [segment.aborted.entries() for segment in log.segments]
    assert len(before) > 3
    await log.flush()
    await world.managers[-1].stop()
    path = log.segments[1].file.path_of(".txnindex")
    world.disk.write_file(path, world.disk.read_file(path)[:-1])
    if not clean:
        world.disk.remove("data/.kafka_cleanshutdown")
    log = await world.log(**SEGMENT)
    assert [segment.aborted.entries() for segment in log.segments] == before


async def test_truncation_takes_back_the_end_of_a_transaction(world):
    log = await world.log(**SEGMENT)
    producer = Producer(world, log, 1)
    for _ in range(10):
        producer.begin("y" * 50)
        producer.end(commit=False)
    kept = log.log_end_offset
    begun = producer.begin("z")
    marker = producer.end(commit=False)
    log.truncate_to(marker)
    assert log.last_stable_offset == begun
    assert sum(len(segment.aborted.entries()) for segment in log.segments) == 10
    log.truncate_to(kept)
    assert log.last_stable_offset == kept
    log.truncate_to(1)
    assert log.last_stable_offset == 0
    assert [segment.aborted.entries() for segment in log.segments] == [[]]


async def test_retention_takes_the_index_along(world):
    log = await world.log(**SEGMENT)
    producer = Producer(world, log, 1)
    for _ in range(20):
        producer.begin("y" * 50)
        producer.end(commit=False)
    assert any(name.endswith(".txnindex") for name in world.files())
    log.delete_records_before(log.log_end_offset - 1)
    log.delete_old_segments(world.clock.now)
    left = [name for name in world.files() if name.endswith(".txnindex")]
    assert len(left) == 1
    assert sum(name.endswith(".txnindex.deleted") for name in world.files()) > 1


async def test_the_file_as_kafka_lays_it_out(world):
    log = await world.log()
    producer, other = Producer(world, log, 9), Producer(world, log, 10)
    world.append(log, "plain")
    other.begin("o")
    producer.begin("a", "b")
    producer.end(commit=False)
    data = world.disk.read_file(f"{log.directory}/{0:020d}.txnindex")
    assert struct.unpack(">hqqqq", data) == (0, 9, 2, 4, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        struct.pack(">hqqqq", 1, 9, 2, 4, 1),
        encode_aborted(AbortedTxn(9, 2, 4, 1)) * 2,
        encode_aborted(AbortedTxn(9, 0, 1, 1)),
    ],
    ids=["torn", "unknown version", "not ascending", "before the segment"],
)
def test_what_is_no_index(data):
    with pytest.raises(CorruptIndexError):
        decode_transaction_index(data, 2)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("rolled", [True, False])
async def test_an_aborted_transaction_is_known_though_there_was_no_descriptor_for_its_index(
    memory_world, clean, rolled
):
    world = memory_world
    log = await world.log(**SEGMENT)
    producer = Producer(world, log, 1)
    begun = producer.begin("dropped")
    world.disk.fail("open", errno.EMFILE, where=lambda path: path.endswith(".txnindex"))
    marker = producer.end(commit=False)
    assert not log.folder.is_offline
    assert not any(name.endswith(".txnindex") for name in world.files())
    expected = [AbortedTxn(1, begun, marker, marker + 1)]
    assert aborted_between(log.segments, begun, marker + 1) == expected
    world.disk.heal()
    if rolled:
        while len(log.segments) == 1:
            world.append(log, "x" * 400)
    if clean:
        await world.managers[-1].stop()
    else:
        world.kill()
    log = await world.log(**SEGMENT)
    assert aborted_between(log.segments, begun, marker + 1) == expected


async def test_entries_that_wait_for_a_descriptor_go_with_their_markers_and_are_written_with_the_next(memory_world):
    world = memory_world
    log = await world.log()
    producer = Producer(world, log, 1)
    producer.begin("first")
    producer.end(commit=False)
    world.disk.fail("open", errno.EMFILE, where=lambda path: path.endswith(".txnindex"))
    for value in ("second", "third"):
        producer.begin(value)
        marker = producer.end(commit=False)
    log.truncate_to(marker)
    world.disk.heal()
    producer.end(commit=False)
    index = log.segments[0].aborted
    assert [entry.first_offset for entry in index.entries()] == [0, 2, 4]
    written = decode_transaction_index(world.disk.read_file(index.path), 0)
    assert written == index.entries()
