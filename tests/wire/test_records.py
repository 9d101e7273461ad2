"""Record batches: what is built is read back, headers and checksums are strict, stamps change what they name only."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.batch_layout import BATCH_HEADER_SIZE
from ottla.wire.compression import compress
from ottla.wire.record_codec import rest_after
from ottla.wire.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    IncompleteBatch,
    Record,
    RecordBatch,
    RecordsBuilder,
    build_batch,
    iter_batches,
    iter_complete_batches,
    with_body,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
BLOB = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=40), BLOB), max_size=4)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 0) -> list[Record]:
    """Records with ascending offsets, some without, and timestamps all over the place."""
    timestamps = st.integers(-1, 2**62) | st.integers(1_732_000_000_000, 1_732_000_000_300)
    size = draw(st.integers(min_size, 12))
    offset = 0
    records = []
    for _ in range(size):
        offset += draw(st.just(1) | st.integers(1, 2**25))
        records.append(Record(offset - 1, draw(timestamps), draw(BLOB), draw(BLOB), draw(HEADERS)))
    return records


def some_records(count: int = 3, base_offset: int = 0) -> list[Record]:
    return [
        Record(base_offset + i, 1000 + i, b"key %d" % i, b"value %d" % i, [("header", b"%d" % i)]) for i in range(count)
    ]


def with_crc(batch: bytearray) -> bytearray:
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch


def patched(batch: bytearray, layout: str, position: int, value: int) -> bytearray:
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    return with_crc(changed)


def header_error(data: bytes | bytearray) -> KafkaError:
    with pytest.raises(KafkaError) as raised:
        RecordBatch(data)
    return raised.value


def records_error(data: bytes | bytearray) -> ErrorCode:
    batch = RecordBatch(data)
    batch.check_crc()
    with pytest.raises(KafkaError) as raised:
        list(batch.records())
    return raised.value.code


@given(
    records=record_lists(),
    compression=st.integers(0, 4),
    base_offset=st.integers(0, 2**40),
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    flags=st.tuples(st.booleans(), st.booleans()),
    wrap=st.sampled_from((bytes, bytearray, memoryview)),
)
def test_round_trip(
    records: list[Record],
    compression: int,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    leader_epoch: int,
    flags: tuple[bool, bool],
    wrap: type,
) -> None:
    moved = [replace(record, offset=record.offset + base_offset) for record in records]
    data = build_batch(
        moved,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=flags[0],
        is_control=flags[1],
    )
    batch = RecordBatch(wrap(data))
    batch.check_crc()
    assert list(batch.records()) == moved
    assert batch.base_offset == base_offset
    assert batch.last_offset == (moved[-1].offset if moved else base_offset - 1)
    assert batch.next_offset == batch.last_offset + 1
    assert batch.size == len(data) == len(batch.view)
    assert batch.partition_leader_epoch == leader_epoch
    assert batch.magic == 2
    assert batch.compression == compression
    assert batch.timestamp_type == CREATE_TIME
    assert (batch.is_transactional, batch.is_control) == flags
    assert batch.delete_horizon_ms is None
    assert batch.base_timestamp == (moved[0].timestamp if moved else -1)
    assert batch.max_timestamp == max((record.timestamp for record in moved), default=-1)
    assert (batch.producer_id, batch.producer_epoch) == (producer_id, producer_epoch)
    assert batch.base_sequence == base_sequence
    assert batch.record_count == len(moved)


def test_the_bytes_of_a_batch() -> None:
    data = build_batch(
        [Record(timestamp=1000, key=b"k", value=None, headers=[("h", b"")]), Record(timestamp=998, value=b"vv")],
        base_offset=258,
        leader_epoch=5,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        is_transactional=True,
    )
    assert data == with_crc(
        bytearray.fromhex(
            "0000000000000102 00000045 00000005 02 00000000 0010 00000001 00000000000003e8 00000000000003e8"
            "0000000000000007 0001 00000003 00000002"
            "14 00 00 00 02 6b 01 02 02 68 00"
            "10 00 03 02 01 04 76 76 00"
        )
    )


@given(base=INT64, timestamps=st.lists(INT64, min_size=1, max_size=5))
def test_timestamps_wrap_at_64_bits_as_in_java(base: int, timestamps: list[int]) -> None:
    records = [Record(timestamp=timestamp) for timestamp in timestamps]
    data = build_batch(records, max_timestamp=0)
    struct.pack_into(">q", data, 27, base)
    shift = base - timestamps[0]
    expected = [(timestamp + shift + 2**63) % 2**64 - 2**63 for timestamp in timestamps]
    assert [record.timestamp for record in RecordBatch(data).records()] == expected


def test_records_without_an_offset_count_on() -> None:
    records = [Record(value=b"a"), Record(offset=14, value=b"b"), Record(value=b"c")]
    batch = RecordBatch(build_batch(records, base_offset=10))
    assert [record.offset for record in batch.records()] == [10, 14, 15]
    assert (batch.last_offset_delta, batch.record_count) == (5, 3)


def test_a_builder_tells_its_size_and_goes_on_after_a_build() -> None:
    builder = RecordsBuilder(base_offset=4)
    assert builder.uncompressed_size == BATCH_HEADER_SIZE
    assert builder.append(b"k", b"v", 5) == 4
    first = builder.build()
    assert builder.uncompressed_size == len(first)
    assert builder.append(None, b"w", 6, [("h", None)]) == 5
    assert (builder.next_offset, builder.record_count) == (6, 2)
    assert [record.value for record in RecordBatch(builder.build()).records()] == [b"v", b"w"]
    assert RecordBatch(first).record_count == 1


def test_header_keys_that_are_not_utf_8_keep_their_bytes() -> None:
    data = build_batch([Record(headers=[("a\udcffz", b"1")])])
    assert b"a\xffz" in data
    records = list(RecordBatch(data).records())
    assert build_batch(records) == data


@pytest.mark.parametrize(("base_sequence", "count", "last"), [(-1, 3, -1), (0, 3, 2), (2**31 - 2, 2, 2**31 - 1)])
def test_last_sequence(base_sequence: int, count: int, last: int) -> None:
    assert RecordBatch(build_batch(some_records(count), base_sequence=base_sequence)).last_sequence == last


def test_sequence_numbers_wrap_to_zero() -> None:
    assert RecordBatch(build_batch(some_records(4), base_sequence=2**31 - 2)).last_sequence == 1


def test_an_append_time_batch_gives_all_its_records_the_max_timestamp() -> None:
    batch = RecordBatch(build_batch(some_records(), timestamp_type=LOG_APPEND_TIME, max_timestamp=77))
    assert batch.timestamp_type == LOG_APPEND_TIME
    assert {record.timestamp for record in batch.records()} == {77}


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = RecordBatch(build_batch(some_records(), delete_horizon_ms=5_000_000))
    assert (batch.delete_horizon_ms, batch.base_timestamp, batch.max_timestamp) == (5_000_000, 5_000_000, 1002)
    assert list(batch.records()) == some_records()


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_without_records_keeps_its_offsets(compression: int) -> None:
    data = build_batch([], base_offset=10, last_offset=19, max_timestamp=9, producer_id=3, compression=compression)
    batch = RecordBatch(data)
    batch.check_crc()
    assert list(batch.records()) == []
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.record_count) == (10, 19, 20, 0)
    assert (batch.base_timestamp, batch.max_timestamp, batch.producer_id) == (-1, 9, 3)


def test_a_batch_without_records_may_have_no_bytes_behind_its_header_whatever_its_codec() -> None:
    for compression in range(5):
        data = patched(build_batch([], last_offset=4), ">h", 21, compression)
        assert len(data) == BATCH_HEADER_SIZE
        assert list(RecordBatch(data).records()) == []


def test_a_stamp_changes_offset_and_epoch_and_nothing_else() -> None:
    data = build_batch(some_records(), base_sequence=4)
    before = bytes(data)
    batch = RecordBatch(memoryview(data))
    batch.stamp(123_456_789_012, 42)
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (
        123_456_789_012,
        123_456_789_014,
        42,
    )
    again = RecordBatch(data)
    again.check_crc()
    assert (again.base_offset, again.partition_leader_epoch) == (123_456_789_012, 42)
    assert [record.offset for record in again.records()] == [123_456_789_012 + i for i in range(3)]
    assert data[8:12] == before[8:12]
    assert data[16:] == before[16:]


def test_an_append_time_stamp_writes_type_time_and_checksum() -> None:
    data = build_batch(some_records(), compression=1, is_transactional=True)
    batch = RecordBatch(data)
    batch.stamp_append_time(1_800_000_000_000)
    again = RecordBatch(data)
    again.check_crc()
    assert (batch.crc, batch.attributes, batch.max_timestamp) == (again.crc, again.attributes, again.max_timestamp)
    assert (again.timestamp_type, again.compression, again.is_transactional) == (LOG_APPEND_TIME, 1, True)
    assert {record.timestamp for record in again.records()} == {1_800_000_000_000}
    again.stamp_timestamp(CREATE_TIME, 1002)
    RecordBatch(data).check_crc()
    assert data == build_batch(some_records(), compression=1, is_transactional=True)


def test_a_stamp_with_the_same_times_leaves_even_a_wrong_checksum_alone() -> None:
    data = build_batch(some_records(), timestamp_type=LOG_APPEND_TIME, max_timestamp=5)
    data[17] ^= 0xFF
    before = bytes(data)
    RecordBatch(data).stamp_append_time(5)
    assert data == before


def test_stamping_bytes_that_cannot_change_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        RecordBatch(bytes(build_batch(some_records()))).stamp(1, 1)


def test_every_damaged_byte_behind_the_crc_is_found() -> None:
    data = build_batch(some_records())
    for position in range(17, len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        with pytest.raises(KafkaError) as raised:
            RecordBatch(damaged).check_crc()
        assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_incomplete_batch_says_how_much_is_needed() -> None:
    data = build_batch(some_records())
    for size in range(len(data)):
        error = header_error(data[:size])
        assert isinstance(error, IncompleteBatch)
        assert error.code is ErrorCode.INVALID_RECORD
        assert size < error.needed <= len(data)
        if size >= 17:
            assert error.needed == len(data)


@pytest.mark.parametrize(
    ("magic", "code"),
    [
        (0, ErrorCode.INVALID_RECORD),
        (1, ErrorCode.INVALID_RECORD),
        (3, ErrorCode.CORRUPT_MESSAGE),
        (-1, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_other_magics_are_refused_as_kafka_refuses_them(magic: int, code: ErrorCode) -> None:
    assert header_error(patched(build_batch(some_records()), ">b", 16, magic)).code is code


def test_messages_of_the_old_formats_are_refused() -> None:
    """They are shorter than a batch's header, so the magic must be seen without one."""
    for magic, timestamp in ((0, b""), (1, bytes(8))):
        body = bytes(4) + struct.pack(">bb", magic, 0) + timestamp + struct.pack(">ii", -1, 1) + b"v"
        message = struct.pack(">qi", 0, len(body)) + body
        error = header_error(message)
        assert error.code is ErrorCode.INVALID_RECORD
        assert not isinstance(error, IncompleteBatch)


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 13, 14, 48])
def test_lengths_no_batch_can_have(length: int) -> None:
    error = header_error(patched(build_batch(some_records()), ">i", 8, length))
    assert error.code is ErrorCode.CORRUPT_MESSAGE


def test_batches_end_to_end() -> None:
    parts = [build_batch(some_records(count, 10 * count), base_offset=10 * count) for count in (1, 2, 3)]
    data = b"".join(parts)
    for iterate in (iter_batches, iter_complete_batches):
        assert [bytes(batch.view) for batch in iterate(data)] == parts
        assert list(iterate(b"")) == []
    second = RecordBatch(data, len(parts[0]))
    assert second.base_offset == 20
    assert second.view == parts[1]


def test_an_incomplete_tail_raises_or_is_left_out() -> None:
    first, second = build_batch(some_records(1)), build_batch(some_records(2))
    for size in range(1, len(second)):
        data = first + second[:size]
        assert [batch.size for batch in iter_complete_batches(data)] == [len(first)]
        strict = iter_batches(data)
        assert next(strict).size == len(first)
        with pytest.raises(IncompleteBatch):
            next(strict)


@pytest.mark.parametrize("iterate", [iter_batches, iter_complete_batches])
def test_a_corrupt_batch_raises_after_the_ones_before_it(iterate: Callable[[bytes], Iterator[RecordBatch]]) -> None:
    first = build_batch(some_records(1))
    batches = iterate(first + bytes(100))
    assert next(batches).size == len(first)
    with pytest.raises(KafkaError) as raised:
        next(batches)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("compression", range(5))
@pytest.mark.parametrize("count", [-1, 1, 2, 4, 2**31 - 1])
def test_a_wrong_record_count_is_invalid(compression: int, count: int) -> None:
    data = build_batch(some_records(3), compression=compression)
    assert records_error(patched(data, ">i", 57, count)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    "body",
    [
        "0e 00 00 00 01 01 00",  # length one byte beyond the batch
        "01 00 00 00 01 01 00",  # negative length
        "0c 00 00 00 10 01 00",  # key longer than the record
        "0c 00 00 00 01 7e 00",  # value longer than the record
        "0c 00 00 00 01 01 02",  # a header that is not there
        "0c 00 00 00 01 01 01",  # negative number of headers
        "0c 00 00 00 01 01 fe ff ff ff 0f",  # impossible number of headers
        "0e 00 00 00 01 01 00 00",  # a byte too many in the record
        "0c 00 00 00 01 01 00 00",  # a byte too many in the batch
        "10 00 00 00 01 01 02 01 01",  # header without a key
        "18 00 00 ff ff ff ff ff 01 01 01 00 00",  # offset delta of more than 32 bits
        "20 00 80 80 80 80 80 80 80 80 80 80 00 00 01 01 00",  # timestamp delta of eleven bytes
        "20 00 80 80 80 80 80 80 80 80 80 7f 00 00 01 01 00",  # timestamp delta of more than 64 bits
        "80 80 80 80 80 80",  # a varint that does not end
        "0c",
        "",
    ],
)
def test_malformed_records(body: str) -> None:
    data = build_batch([]) + bytes.fromhex(body)
    struct.pack_into(">i", data, 8, len(data) - 12)
    assert records_error(patched(data, ">i", 57, 1)) is ErrorCode.INVALID_RECORD


def test_compressed_bytes_that_are_none() -> None:
    for compression in range(1, 5):
        data = patched(build_batch([Record(value=bytes(range(200)))]), ">h", 21, compression)
        assert records_error(data) is ErrorCode.CORRUPT_MESSAGE
    for codec in (5, 6, 7):
        assert records_error(patched(build_batch(some_records()), ">h", 21, codec)) is (
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )


def test_records_have_a_limit() -> None:
    batch = RecordBatch(build_batch([Record(value=bytes(100_000))], compression=4))
    assert len(list(batch.records(101_000))) == 1
    with pytest.raises(KafkaError) as raised:
        list(batch.records(100_000))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE


@given(records=record_lists(min_size=1), compression=st.integers(0, 4), seed=st.integers(0, 2**32))
def test_any_damage_is_a_kafka_error_or_reads_as_something(records: list[Record], compression: int, seed: int) -> None:
    """The checksum would find it; here it is made right again, so that every check behind it is reached."""
    damage = random.Random(seed)
    data = build_batch(records, compression=compression)
    for _ in range(damage.randint(1, 5)):
        data[damage.randrange(len(data))] = damage.randrange(256)
    if damage.random() < 0.3:
        del data[damage.randrange(len(data)) :]
    try:
        for batch in iter_batches(data):
            for record in batch.records(1_000_000):
                assert -(2**63) <= record.timestamp < 2**63
    except KafkaError:
        pass


@given(records=record_lists(min_size=1), cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_records_that_come_in_pieces(records: list[Record], cuts: list[int]) -> None:
    batch = RecordBatch(build_batch(records))
    body = bytes(batch.view[BATCH_HEADER_SIZE:])
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(places)]
    whole = list(batch.records())
    assert list(batch.records_of(pieces)) == whole
    for first in range(len(records) + 1):
        assert list(batch.records_of(rest_after(pieces, first), first)) == whole[first:]


@given(records=record_lists(min_size=1), cut=st.integers(1, 50), where=st.integers(0, 2000))
def test_records_that_come_in_pieces_and_end_early(records: list[Record], cut: int, where: int) -> None:
    batch = RecordBatch(build_batch(records))
    body = bytes(batch.view[BATCH_HEADER_SIZE:-cut])
    for read in (
        lambda pieces: list(batch.records_of(pieces)),
        lambda pieces: list(batch.records_of(rest_after(pieces, batch.record_count - 1), batch.record_count - 1)),
    ):
        with pytest.raises(KafkaError) as raised:
            read([body[:where], body[where:]])
        assert raised.value.code is ErrorCode.INVALID_RECORD


def test_a_long_record_in_pieces_has_a_limit_of_its_own() -> None:
    batch = RecordBatch(build_batch([Record(value=bytes(5_000_000))], compression=4))
    assert len(list(batch.records_of(batch.body_pieces(), largest=5_000_100))) == 1
    with pytest.raises(KafkaError) as raised:
        list(batch.records_of(batch.body_pieces(), largest=4_999_999))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("compression", range(5))
def test_millions_of_bytes_are_compressed_as_they_come(compression: int) -> None:
    records = [Record(index, 0, None, b"%d" % index * 100) for index in range(3000)]
    batch = RecordBatch(build_batch(records, compression=compression))
    batch.check_crc()
    assert list(batch.records()) == records


@pytest.mark.parametrize("codec", range(5))
def test_the_same_batch_with_another_codec(codec: int) -> None:
    records = some_records()
    batch = RecordBatch(build_batch(records, compression=4, producer_id=5, producer_epoch=6, base_sequence=7))
    body = compress(codec, b"".join(batch.body_pieces()))
    other = RecordBatch(with_body(batch, codec, body))
    other.check_crc()
    assert (other.compression, other.producer_id, other.base_sequence) == (codec, 5, 7)
    assert list(other.records()) == list(batch.records())
