"""What is kept of a batch: keys, tombstones and their time, transactions and their markers, headers of producers."""

from __future__ import annotations

import pytest

from ottla.base.errors import KafkaError
from ottla.log.batch_filter import BatchFilter
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.offset_map import OffsetMap
from ottla.log.transaction_index import AbortedTxn
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.records import Record, RecordBatch, build_batch

NOW = 1_700_000_000_000
DAY = 86_400_000


def batch(base, *pairs, **header):
    """A batch at offset ``base`` of (key, value) pairs; None leaves an offset out."""
    records = [
        Record(base + n, NOW - 100 + n, pair[0].encode(), None if pair[1] is None else pair[1].encode(), [("h", b"x")])
        for n, pair in enumerate(pairs)
        if pair is not None
    ]
    return RecordBatch(
        build_batch(records, base_offset=base, last_offset=base + len(pairs) - 1, leader_epoch=4, **header)
    )


def marker(offset, producer_id, kind, epoch=0):
    built = RecordBatch(
        build_end_marker_batch(
            EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=epoch, timestamp=NOW - 50
        )
    )
    built.stamp(offset, 4)
    return built


def commit(offset, producer_id):
    return marker(offset, producer_id, ControlRecordType.COMMIT)


def abort(offset, producer_id):
    return marker(offset, producer_id, ControlRecordType.ABORT)


def clean(batches, *, now=NOW, retention=DAY, last_records=(), end=1 << 40, up_to=None, aborted=(), kept_aborted=None):
    """Clean batches as one round does: (what is kept of them, in place)."""
    offset_map = OffsetMap(1 << 16, 0.9)
    for each in batches:
        if up_to is None or each.base_offset < up_to:
            is_aborted = any(a.producer_id == each.producer_id and a.first_offset <= each.base_offset for a in aborted)
            for record in [] if each.is_control or is_aborted else each.records():
                offset_map.put(record.key, record.offset)
            offset_map.latest_offset = each.last_offset
    transactions = CleanedTransactions((kept_aborted if kept_aborted is not None else []).append)
    transactions.add(aborted)
    batch_filter = BatchFilter(offset_map, transactions, dict(last_records), end, retention, now)
    return [batch_filter.keep(each) for each in batches]


def pairs(kept):
    return [(r.offset, r.key.decode(), r.value and r.value.decode()) for b in kept if b for r in b.records()]


@pytest.mark.cpython
def test_a_batch_of_many_records_is_not_in_memory_as_objects():
    """A few hundred kilobytes can hold millions of records; objects of all of them took 200 bytes each."""
    import tracemalloc

    count = 60_000  # of objects these would be 12 MB
    many = RecordBatch(build_batch((Record(n, NOW, b"k", None) for n in range(count)), compression=4, leader_epoch=4))
    tracemalloc.start()
    try:
        (kept,) = clean([many])
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert [record.offset for record in kept.records()] == [count - 1]
    offset_map = OffsetMap(1 << 16, 0.9)
    batch_filter = BatchFilter(offset_map, CleanedTransactions(), {}, 1 << 40, DAY, NOW)
    tracemalloc.start()
    try:
        rebuilt = batch_filter.keep(many)  # all of them stay, and get the horizon of their tombstones
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert rebuilt.record_count == count


def test_batch_that_loses_nothing_is_the_same_bytes():
    batches = [batch(0, ("a", "1"), ("b", "1"), compression=4), batch(2, ("c", "2"))]
    assert clean(batches) == batches


def test_newest_of_a_key_stays_at_its_offset():
    kept = clean([batch(0, ("a", "1"), ("b", "1"), ("a", "2")), batch(3, ("c", "1"), ("b", "2"))])
    assert pairs(kept) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("timestamp_type", [0, 1])
def test_what_a_shorter_batch_keeps(codec, timestamp_type):
    header = {"producer_id": 8, "producer_epoch": 2, "base_sequence": 11}
    old = batch(10, ("b", "1"), ("a", "1"), ("b", "2"), compression=codec, timestamp_type=timestamp_type, **header)
    (new, _) = clean([old, batch(20, ("b", "3"))])
    assert new is not None
    new.check_crc()
    same = ["base_offset", "last_offset", "partition_leader_epoch", "compression", "timestamp_type", "attributes"]
    same += ["producer_id", "producer_epoch", "base_sequence", "last_sequence"]
    for name in same:
        assert getattr(new, name) == getattr(old, name), name
    (record,) = new.records()
    assert record == list(old.records())[1]
    assert new.max_timestamp == (old.max_timestamp if timestamp_type else record.timestamp)


def test_empty_batch_goes():
    assert clean([batch(0, ("a", "1")), batch(1, ("a", "2"))])[0] is None


def test_records_above_the_map_stay():
    batches = [batch(0, ("a", "1")), batch(1, ("a", "2"), ("b", None)), batch(3, ("a", "3"))]
    assert pairs(clean(batches, up_to=1)) == [(0, "a", "1"), (1, "a", "2"), (2, "b", None), (3, "a", "3")]


def test_tombstone_gets_a_horizon_and_goes_when_it_has_passed():
    (kept,) = clean([batch(0, ("a", "1"), ("a", None), ("b", "1"), compression=1)], retention=1000)
    assert kept.delete_horizon_ms == NOW + 1000
    assert [r.timestamp for r in kept.records()] == [NOW - 99, NOW - 98]
    kept.check_crc()
    (before,) = clean([kept], now=NOW + 999, retention=5)
    assert bytes(before.view) == bytes(kept.view), "the horizon is set once"
    (after,) = clean([kept], now=NOW + 1000)
    assert pairs([after]) == [(2, "b", "1")]
    assert after.delete_horizon_ms == NOW + 1000


def test_endless_retention():
    (kept,) = clean([batch(0, ("a", None))], retention=(1 << 63) - 1)
    assert kept.delete_horizon_ms == (1 << 63) - 1
    assert pairs([kept]) == [(0, "a", None)]
    assert [record.timestamp for record in kept.records()] == [NOW - 100]


def test_last_batch_of_a_producer_keeps_its_header():
    header = {"producer_id": 8, "producer_epoch": 2, "base_sequence": 11, "is_transactional": True}
    old = batch(10, ("a", "1"), ("a", "2"), compression=2, **header)
    (new, _) = clean([old, batch(20, ("a", "3"))], last_records={8: (11, 2)})
    assert (new.record_count, new.size, list(new.records())) == (0, 61, [])
    assert (new.base_offset, new.last_offset, new.base_sequence, new.last_sequence) == (10, 11, 11, 12)
    assert (new.producer_id, new.producer_epoch, new.is_transactional, new.compression) == (8, 2, True, 0)
    assert (new.max_timestamp, new.base_timestamp) == (old.max_timestamp, -1)
    new.check_crc()
    assert [bytes(b.view) for b in clean([new], last_records={8: (11, 2)})] == [bytes(new.view)]
    assert clean([new]) == [None], "once the producer is forgotten, it goes"
    assert clean([old, batch(20, ("a", "3"))], last_records={8: (40, 2)})[0] is None


def test_last_batch_of_the_round_keeps_its_header():
    (_, last) = clean([batch(0, ("b", "1")), batch(1, None, ("a", "1"))], end=3)
    assert last.record_count == 1
    (new,) = clean([batch(1, None, None)], end=3)
    assert (new.record_count, new.next_offset) == (0, 3)


def test_committed_transaction():
    data = batch(0, ("a", "1"), producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    kept = clean([data, commit(1, 8)])
    assert [b.base_offset for b in kept] == [0, 1]
    assert kept[1].delete_horizon_ms is None


@pytest.mark.parametrize("end", [commit, abort])
def test_marker_without_a_transaction_waits_for_its_horizon(end):
    (kept,) = clean([end(1, 8)], retention=1000)
    assert kept.delete_horizon_ms == NOW + 1000
    assert [r.key for r in kept.records()] == [r.key for r in end(1, 8).records()]
    assert clean([kept], now=NOW + 999) == [kept]
    assert clean([kept], now=NOW + 1000) == [None]
    (header,) = clean([kept], now=NOW + 1000, last_records={8: (-1, 0)})
    assert (header.record_count, header.is_control, header.producer_id) == (0, True, 8)
    assert clean([header], now=NOW) == [None], "an emptied marker says nothing"


def test_aborted_transaction():
    """Its data goes at once, its marker and its index entry stay for one more cleaning, and then until the horizon."""
    header = {"producer_epoch": 0, "is_transactional": True}
    batches = [
        batch(0, ("a", "1")),
        batch(1, ("a", "aborted"), ("b", "aborted"), producer_id=8, base_sequence=0, **header),
        batch(3, ("b", "other"), producer_id=9, base_sequence=0, **header),
        abort(4, 8),
        commit(5, 9),
        batch(6, ("c", "8 again"), producer_id=8, base_sequence=2, **header),
        commit(7, 8),
    ]
    aborted = [AbortedTxn(8, 1, 4, 3)]
    index = []
    kept = clean(batches, aborted=aborted, kept_aborted=index)
    assert pairs([b for b in kept if b and not b.is_control]) == [(0, "a", "1"), (3, "b", "other"), (6, "c", "8 again")]
    assert [b.base_offset for b in kept if b] == [0, 3, 4, 5, 6, 7]
    assert index == aborted
    index.clear()
    again = clean([b for b in kept if b], aborted=aborted, kept_aborted=index, retention=10)
    assert [(b.base_offset, b.delete_horizon_ms) for b in again if b.is_control] == [
        (4, NOW + 10),
        (5, None),
        (7, None),
    ]
    assert index == []
    last = clean([b for b in again if b], now=NOW + 10)
    assert [b.base_offset for b in last if b] == [0, 3, 5, 6, 7]


def test_damaged_batch():
    sound = batch(0, ("a", "1"))
    damaged = bytearray(sound.view)
    damaged[-1] ^= 1  # the value of the header
    batch_filter = BatchFilter(OffsetMap(1 << 10, 0.9), CleanedTransactions(), {}, 1, DAY, NOW)
    assert batch_filter.keep(sound) is sound
    with pytest.raises(KafkaError, match="CRC"):
        batch_filter.keep(RecordBatch(damaged))
