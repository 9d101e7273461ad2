"""What a leader's append gives back, refuses and leaves on disk."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.log.batch_preparation import BatchPreparation, LargeBatchError
from ottla.log.follower_append import append_as_follower
from ottla.log.partition_log import PartitionLog
from ottla.log.settings import LogSettings
from ottla.log.validation import RecordsRefusedError
from ottla.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from ottla.wire.records import CREATE_TIME, LOG_APPEND_TIME, Record, RecordBatch, build_batch, with_body


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


async def test_offsets_follow_each_other(world, read_values):
    log = await world.log()
    first = world.append(log, "a", "b")
    second = world.append(log, "c")
    assert (first.first_offset, first.last_offset, second.first_offset, second.last_offset) == (0, 1, 2, 2)
    assert (first.log_append_time_ms, first.log_start_offset, first.is_duplicate) == (-1, 0, False)
    assert read_values(log) == [(0, "a"), (1, "b"), (2, "c")]


async def test_batch_is_stamped_with_offset_and_leader_epoch(world, read_batches):
    log = await world.log()
    world.append(log, "a", epoch=3)
    world.append(log, "b", epoch=4, leader_epoch=77)
    assert [(b.base_offset, b.partition_leader_epoch) for b in read_batches(log)] == [(0, 3), (1, 4)]
    for batch in read_batches(log):
        batch.check_crc()


async def test_read_only_bytes_are_not_changed(world):
    log = await world.log()
    world.append(log, "a")
    batch = bytes(world.batch(["b"]))
    before = bytes(batch)
    log.append_as_leader(batch, 5, world.clock.now)
    assert batch == before
    assert log.log_end_offset == 2


async def test_never_written_partition_has_no_files(world):
    manager = await world.start()
    for partition in range(50):
        manager.get_or_create("t", partition, bytes(16))
    assert world.disk.names(world.path) == [".lock"]


async def test_first_append_makes_the_files_of_kafka(world):
    log = await world.log()
    world.append(log)
    assert world.files() == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]
    metadata = world.disk.read_file(f"{world.path}/t-0/partition.metadata")
    assert metadata == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


async def test_batch_larger_than_max_message_bytes(world):
    log = await world.log(max_message_bytes=200)
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        world.append(log, "x" * 200)
    assert log.log_end_offset == 0


async def test_batch_as_large_as_max_message_bytes(world):
    batch = world.batch(["x" * 200])
    log = await world.log(max_message_bytes=len(batch))
    log.append_as_leader(batch, 0, world.clock.now)
    assert log.log_end_offset == 1


async def test_batch_larger_than_a_segment(world):
    log = await world.log(segment_bytes=200)
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        world.append(log, "x" * 200)


async def test_broken_crc(world):
    log = await world.log()
    batch = world.batch(["hello"])
    batch[-1] ^= 1
    with refused(ErrorCode.CORRUPT_MESSAGE):
        log.append_as_leader(batch, 0, world.clock.now)


@pytest.mark.parametrize("cut", [0, 1, 16, 17, 60, 61, 65])
async def test_incomplete_batch(world, cut):
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(world.batch(["hello"])[:cut], 0, world.clock.now)


async def test_two_batches_in_one_produce(world):
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(world.batch(["a"]) + world.batch(["b"]), 0, world.clock.now)


@pytest.mark.parametrize("magic", [0, 1])
async def test_old_message_formats(world, magic):
    log = await world.log()
    batch = world.batch(["a"])
    batch[16] = magic
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(batch, 0, world.clock.now)


async def test_base_offset_of_a_client_must_be_zero(world):
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        world.append(log, "a", base_offset=1)


def with_header(batch: bytearray, position: int, form: str, value: int) -> bytearray:
    """The batch with one field changed, and its CRC made right."""
    struct.pack_into(form, batch, position, value)
    struct.pack_into(">I", batch, 17, RecordBatch(batch).compute_crc())
    return batch


@pytest.mark.parametrize(
    ("position", "form", "value"),
    [(57, ">i", 3), (57, ">i", 0), (57, ">i", -1), (23, ">i", 0), (23, ">i", -1), (23, ">i", 5)],
    ids=["count+1", "count=0", "count=-1", "delta-1", "delta=-1", "delta+4"],
)
async def test_count_that_is_not_the_range_of_offsets(world, position, form, value):
    log = await world.log()
    batch = with_header(world.batch(["a", "b"]), position, form, value)
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(batch, 0, world.clock.now)
    assert log.log_end_offset == 0


async def test_unknown_codec(world):
    log = await world.log()
    for codec in (5, 6, 7):
        with refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
            log.append_as_leader(with_header(world.batch(["a"]), 21, ">h", codec), 0, world.clock.now)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
async def test_records_that_cannot_be_decompressed(world, codec):
    # Not CORRUPT_MESSAGE, which clients retry: the CRC is right, the batch will never be.
    log = await world.log(compression_type="uncompressed")
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(with_header(world.batch(["abc"]), 21, ">h", codec), 0, world.clock.now)


async def test_control_batch_of_a_client(world):
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        world.append(log, "a", is_control=True, is_transactional=True, producer_id=1, producer_epoch=0)


async def test_producer_without_sequence(world):
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        world.append(log, "a", producer_id=1, producer_epoch=0)


# --- timestamps -------------------------------------------------------------------------------------------------------


async def test_log_append_time(world, read_batches):
    log = await world.log(message_timestamp_type="LogAppendTime")
    result = world.append(log, "a", "b", timestamp=5)
    assert result.log_append_time_ms == world.clock.now
    (batch,) = read_batches(log)
    batch.check_crc()
    assert (batch.timestamp_type, batch.max_timestamp) == (LOG_APPEND_TIME, world.clock.now)
    assert [record.timestamp for record in batch.records()] == [world.clock.now] * 2


@pytest.mark.parametrize("codec", [NONE, GZIP])
async def test_log_append_time_of_the_producer_is_taken_back(world, read_batches, codec):
    log = await world.log()
    world.append(log, "a", timestamp=5, timestamp_type=LOG_APPEND_TIME, compression=codec)
    (batch,) = read_batches(log)
    batch.check_crc()
    assert (batch.timestamp_type, batch.max_timestamp) == (CREATE_TIME, 5)
    assert [record.timestamp for record in batch.records()] == [5]


async def test_log_append_time_is_the_brokers_to_say(world):
    log = await world.log(message_timestamp_type="LogAppendTime")
    with refused(ErrorCode.INVALID_TIMESTAMP):
        world.append(log, "a", timestamp_type=LOG_APPEND_TIME)


async def test_timestamp_too_far_ahead(world):
    log = await world.log(message_timestamp_after_max_ms=1000)
    world.append(log, "a", timestamp=world.clock.now + 1000)
    records = [Record(timestamp=world.clock.now), Record(timestamp=world.clock.now + 1001)]
    with pytest.raises(RecordsRefusedError) as caught:
        world.append(log, *records)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [1]


async def test_timestamp_too_far_behind(world):
    log = await world.log(message_timestamp_before_max_ms=1000)
    world.append(log, "a", timestamp=world.clock.now - 1000)
    world.append(log, Record(timestamp=-1))
    with refused(ErrorCode.INVALID_TIMESTAMP):
        world.append(log, Record(timestamp=world.clock.now), Record(timestamp=world.clock.now - 1001))


async def test_by_default_the_past_is_welcome(world):
    log = await world.log()
    world.append(log, "a", timestamp=0)
    assert log.log_end_offset == 1


@pytest.mark.parametrize("given", [-1, 0, 999])
async def test_unsound_max_timestamp_is_made_right(world, read_batches, given):
    log = await world.log()
    world.append(log, Record(timestamp=1000), Record(timestamp=3000), Record(timestamp=2000), max_timestamp=given)
    (batch,) = read_batches(log)
    batch.check_crc()
    assert (batch.timestamp_type, batch.max_timestamp) == (CREATE_TIME, 3000)


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("given", [-1, 0, 5, None])
async def test_records_without_timestamps(world, read_batches, given, codec):
    """librdkafka says 0 for the largest of them."""
    log = await world.log()
    world.append(log, Record(timestamp=-1), Record(timestamp=-1), max_timestamp=given, compression=codec)
    (batch,) = read_batches(log)
    batch.check_crc()
    assert (batch.max_timestamp, [record.timestamp for record in batch.records()]) == (-1, [-1, -1])


@pytest.mark.parametrize("given", [-1, 0, None])
async def test_timestamps_below_zero_are_none(world, read_batches, given):
    log = await world.log()
    world.append(log, Record(timestamp=-7), Record(timestamp=-5), max_timestamp=given)
    assert read_batches(log)[0].max_timestamp == -1


async def test_largest_timestamp_behind_a_first_record_without_one(world, read_batches):
    log = await world.log()
    world.append(log, Record(timestamp=-1), Record(timestamp=3000), max_timestamp=0)
    assert read_batches(log)[0].max_timestamp == 3000


@pytest.mark.parametrize("given", [1001, 1_700_000_000_000])
async def test_largest_timestamp_of_a_single_record(world, read_batches, given):
    log = await world.log()
    world.append(log, Record(timestamp=1000), max_timestamp=given)
    assert read_batches(log)[0].max_timestamp == 1000


async def test_header_does_not_make_a_batch_old_enough_to_be_deleted(world, read_batches):
    log = await world.log(retention_ms=10_000)
    now = world.clock.now
    world.append(log, Record(timestamp=1000), Record(timestamp=now), max_timestamp=now - 10_001)
    assert read_batches(log)[0].max_timestamp == now


# --- compression and keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
async def test_codec_of_the_producer_is_kept(world, read_batches, read_values, codec):
    log = await world.log()
    world.append(log, "a", "b", compression=codec)
    assert [batch.compression for batch in read_batches(log)] == [codec]
    assert read_values(log) == [(0, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("name", "codec"), [("uncompressed", NONE), ("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD)]
)
@pytest.mark.parametrize("given", [NONE, GZIP])
async def test_codec_of_the_topic(world, read_batches, name, codec, given):
    log = await world.log(compression_type=name)
    world.append(log, "x")
    records = [Record(timestamp=1, key=b"k", value=b"v", headers=[("h", b"1")]), Record(timestamp=9, value=None)]
    world.append(log, *records, compression=given, producer_id=8, producer_epoch=2, base_sequence=4)
    batch = read_batches(log)[1]
    batch.check_crc()
    assert batch.compression == codec
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1, 8, 2, 4)
    assert batch.max_timestamp == 9
    first, second = batch.records()
    assert (first.offset, first.timestamp, first.key, first.value, first.headers) == (1, 1, b"k", b"v", [("h", b"1")])
    assert (second.offset, second.timestamp, second.key, second.value) == (2, 9, None, None)


async def test_records_that_are_not_what_the_header_says(world):
    log = await world.log(compression_type="gzip")
    batch = with_header(world.batch(["a", "b"]), 57, ">i", 3)
    with_header(batch, 23, ">i", 2)
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(batch, 0, world.clock.now)


async def test_compacted_topic_wants_keys(world):
    log = await world.log(cleanup_policy=("compact",))
    world.append(log, ("k", "v"), ("k", None))
    with pytest.raises(RecordsRefusedError) as caught:
        world.append(log, ("k", "v"), (None, "v"), "w")
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    assert log.log_end_offset == 2


async def test_what_is_wrong_with_any_record_is_told_at_once(world):
    log = await world.log(cleanup_policy=("compact",))
    ahead = world.clock.now + (1 << 40)
    with pytest.raises(RecordsRefusedError) as caught:
        world.append(log, Record(key=b"k", timestamp=ahead), Record(key=b"k", timestamp=1), Record(timestamp=ahead))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    (first, timestamp), (second, key) = caught.value.record_errors
    assert (first, second) == (0, 2)
    assert timestamp.startswith("Timestamp")
    assert "without key" in key


# --- coordinators -----------------------------------------------------------------------------------------------------


def with_records(body: bytes, count: int, codec: int = NONE, timestamp: int = 1_700_000_000_000) -> bytearray:
    """A batch whose header says ``count`` records and whose bytes are ``body``, compressed, with a checksum that is right."""
    plain = RecordBatch(build_batch([Record(timestamp=timestamp)]))
    batch = with_body(plain, codec, compress(codec, body))
    batch = with_header(batch, 57, ">i", count)
    return with_header(batch, 23, ">i", count - 1)


def a_record(delta: int, *, length: int | None = None, key_length: int = -1) -> bytes:
    """A record without key, value and headers; ``length`` and ``key_length`` may be wrong. Numbers are below 64."""
    body = bytes([0, 0, delta << 1, (key_length << 1) ^ (key_length >> 63), 1, 0])
    return bytes([(len(body) if length is None else length) << 1]) + body


POISON = {
    "no data of the codec": (lambda: with_header(with_records(a_record(0), 1), 21, ">h", GZIP)),
    "two of three records": (lambda: with_records(a_record(0) + a_record(1), 3)),
    "two of three records, compressed": (lambda: with_records(a_record(0) + a_record(1), 3, LZ4)),
    "four of three records": (lambda: with_records(b"".join(map(a_record, range(4))), 3)),
    "four of three records, compressed": (lambda: with_records(b"".join(map(a_record, range(4))), 3, GZIP)),
    "all offsets 0, compressed": (lambda: with_records(a_record(0) * 3, 3, ZSTD)),
    "a length below 0": (lambda: with_records(b"\x0d" + a_record(0)[1:] + a_record(1), 2)),
    "a last record that is longer than the batch": (lambda: with_records(a_record(0) + a_record(1, length=20), 2)),
    "a last record with a key that is longer": (lambda: with_records(a_record(0) + a_record(1, key_length=9), 2)),
    "no records": (lambda: with_records(b"", 2)),
}


@pytest.mark.parametrize("kind", POISON)
async def test_bytes_that_are_no_records_are_refused(world, kind):
    """Stored, they would stop every consumer at this place. Kafka refuses them too (LogValidator)."""
    log = await world.log()
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(POISON[kind](), 0, world.clock.now)
    with refused(ErrorCode.INVALID_RECORD):
        await prepared(log, POISON[kind](), world.clock.now)
    assert log.log_end_offset == 0


async def test_fields_inside_a_record_are_checked_where_that_is_asked_for(world):
    batch = with_records(a_record(0, key_length=9) + a_record(1), 2)
    log = await world.log()
    log.append_as_leader(bytearray(batch), 0, world.clock.now)
    log.update_settings(LogSettings({"record_validation": "fields"}))
    with refused(ErrorCode.INVALID_RECORD):
        log.append_as_leader(batch, 0, world.clock.now)


@pytest.mark.parametrize("kind", ["two of three records", "two of three records, compressed"])
async def test_only_the_header_is_looked_at_where_that_is_asked_for(world, kind):
    log = await world.log(record_validation="header")
    log.append_as_leader(POISON[kind](), 0, world.clock.now)
    assert log.log_end_offset == 3
    log.update_settings(LogSettings({"record_validation": "header", "compression_type": "gzip"}))
    with refused(ErrorCode.INVALID_RECORD):  # what is compressed again is read
        log.append_as_leader(POISON[kind](), 0, world.clock.now)


async def test_poison_that_a_leader_stored_is_replicated(world):
    """Refusing it there would stop the follower for good."""
    log = await world.log()
    batch = RecordBatch(POISON["two of three records"]())
    batch.stamp(0, 0)
    append_as_follower(log, bytes(batch.view), 0)
    assert log.log_end_offset == 3


async def prepared(log: PartitionLog, batch: bytearray, now_ms: int) -> RecordBatch:
    """What a worker makes of a batch, large or not."""
    return await log.prepare(LargeBatchError(RecordBatch(batch)), now_ms)


def many_records(count: int, key: bytes | None = None, codec: int = ZSTD, **header: Any) -> bytearray:
    records = (Record(key=key, timestamp=1_700_000_000_000) for _ in range(count))
    return build_batch(records, compression=codec, **header)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cleanup_policy": ("compact",)},
        {"compression_type": "lz4"},
        {"message_timestamp_type": "LogAppendTime"},
        {"record_validation": "fields"},
    ],
    ids=lambda settings: next(iter(settings), "default"),
)
async def test_a_batch_with_many_records_is_prepared_in_a_worker(world, read_batches, settings):
    log = await world.log(max_message_bytes=10 << 20, **settings)
    batch = many_records(120_000, b"k")
    with pytest.raises(LargeBatchError) as large:
        log.append_as_leader(batch, 0, world.clock.now)
    log.append_prepared(await log.prepare(large.value, world.clock.now), 3, world.clock.now)
    (stored,) = read_batches(log)
    stored.check_crc()
    assert (stored.base_offset, stored.last_offset, stored.partition_leader_epoch) == (0, 119_999, 3)
    assert sum(1 for _ in stored.records()) == 120_000


async def test_others_append_while_a_large_batch_is_with_a_worker(world, held_workers, read_values):
    log = await world.log()
    workers = held_workers(log, before=True)
    log.folder.batch_preparation = BatchPreparation(workers)
    batches = []

    async def prepare() -> None:
        batches.append(await prepared(log, many_records(50_000), world.clock.now))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepare)
        await trio.testing.wait_all_tasks_blocked()
        world.append(log, "small")
        assert not batches
        workers.release.set()
    assert log.append_prepared(batches[0], 0, world.clock.now).first_offset == 1


BOMBS = {
    "no base timestamp": ({}, 0, a_record(0)),
    "compacted": ({"cleanup_policy": ("compact",)}, 1_700_000_000_000, a_record(0)),
    "another codec": ({"compression_type": "gzip"}, 1_700_000_000_000, a_record(0)),
    "no codec": ({"compression_type": "uncompressed"}, 1_700_000_000_000, a_record(0)),
    "early and late timestamps": ({"message_timestamp_before_max_ms": 1}, 1_700_000_000_000, a_record(0)),
    "one large record": ({}, 1_700_000_000_000, b"\x80\x80\x80\x40" + bytes(1 << 26)),
    "default": ({}, 1_700_000_000_000, a_record(0)),
}


@pytest.mark.cpython
@pytest.mark.parametrize("kind", BOMBS)
async def test_a_bomb_is_refused_without_being_in_memory(world, kind):
    import tracemalloc

    settings, timestamp, record = BOMBS[kind]
    log = await world.log(**settings)
    count = (4 << 20) // len(record) or 1
    batch = with_records(record * count, count, ZSTD, timestamp)
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError):
            await prepared(log, batch, world.clock.now)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


async def test_a_large_compressed_record_is_taken_where_the_topic_takes_large_batches(world):
    log = await world.log(max_message_bytes=40 << 20)
    batch = build_batch([Record(value=bytes(20 << 20), timestamp=world.clock.now)], compression=ZSTD)
    ready = await prepared(log, batch, world.clock.now)
    assert log.append_prepared(ready, 0, world.clock.now).last_offset == 0


async def test_internal_append_takes_several_batches_and_markers(world, read_batches):
    log = await world.log()
    records = world.batch(["a", "b"]) + world.batch(
        [("k", "\0\0\0\0\0\1")], is_control=True, is_transactional=True, producer_id=1, producer_epoch=0
    )
    result = log.append_as_leader(records, 2, world.clock.now, internal=True)
    assert (result.first_offset, result.last_offset) == (0, 2)
    assert [(b.base_offset, b.is_control, b.partition_leader_epoch) for b in read_batches(log)] == [
        (0, False, 2),
        (2, True, 2),
    ]
