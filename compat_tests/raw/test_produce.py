"""What a leader accepts, what it changes in a batch, and what it remembers of an idempotent producer.

Not here: everything about transactions; state of a producer that expires when idle (the tests of the log move the clock).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, fetch, new_producer, produce, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, describe
from ottla.wire.compression import GZIP, LZ4, SNAPPY, ZSTD
from ottla.wire.records import Record, RecordBatch, build_batch, iter_batches

pytestmark = pytest.mark.client("wire")
CRC_POSITION, ATTRIBUTES_POSITION, LAST_DELTA_POSITION = 17, 21, 23
MAX_TIMESTAMP_POSITION, COUNT_POSITION = 35, 57
HOUR_MS = 3_600_000


def stored(connection: Connection, topic: str, offset: int = 0) -> list[RecordBatch]:
    """The batches of partition 0 from ``offset``, their CRCs checked."""
    batches = list(iter_batches(fetch(connection, topic, {0: offset})[0].records))
    for each in batches:
        each.check_crc()
    return batches


def with_crc(content: bytearray) -> bytearray:
    """The batch with a CRC that fits."""
    struct.pack_into(">I", content, CRC_POSITION, RecordBatch(content).compute_crc())
    return content


def patched(position: int, layout: str, value: int) -> bytearray:
    """A batch of three records with one header field changed."""
    content = batch(b"a", b"b", b"c")
    struct.pack_into(layout, content, position, value)
    return with_crc(content)


@pytest.mark.capability("batch header: what the broker writes")
def test_offset_and_leader_epoch_are_overwritten(leader: Connection, topic: str) -> None:
    content = batch(b"a", b"b", leader_epoch=77)
    assert produce(leader, topic, content, content).base_offset == 2
    epoch = describe(leader, topic).topics[0].partitions[0].leader_epoch
    assert [(each.base_offset, each.partition_leader_epoch) for each in stored(leader, topic)] == [
        (0, epoch),
        (2, epoch),
    ]


@pytest.mark.capability("batch header: what the broker writes")
@pytest.mark.parametrize("codec", [0, GZIP])
def test_missing_max_timestamp_is_computed(leader: Connection, topic: str, codec: int) -> None:
    answer = produce(leader, topic, batch(b"a", b"b", b"c", max_timestamp=-1, compression=codec))
    assert (answer.error_code, answer.log_append_time_ms) == (ErrorCode.NONE, -1)
    (found,) = stored(leader, topic)
    assert (found.base_timestamp, found.max_timestamp) == (1_600_000_000_000, 1_600_000_000_002)
    assert found.timestamp_type == 0


@pytest.mark.capability("batch header: what the broker writes")
@pytest.mark.parametrize("given", [-1, 0, 5])
def test_records_without_a_timestamp_have_no_largest_one(leader: Connection, topic: str, given: int) -> None:
    """librdkafka gives 0, which would make them records of 1970, for retention to delete."""
    records = [Record(value=b"a", timestamp=-1), Record(value=b"b", timestamp=-1)]
    assert produce(leader, topic, build_batch(records, max_timestamp=given)).error_code == ErrorCode.NONE
    (found,) = stored(leader, topic)
    assert (found.base_timestamp, found.max_timestamp) == (-1, -1)


@pytest.mark.capability("batch header: what the broker writes")
@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_log_append_time(leader: Connection, make_topic: Callable[..., str], codec: int) -> None:
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    answer = produce(leader, topic, batch(b"a", b"b", compression=codec))
    assert answer.log_append_time_ms > 1_600_000_000_000 + HOUR_MS
    (found,) = stored(leader, topic)
    assert (found.timestamp_type, found.max_timestamp) == (1, answer.log_append_time_ms)
    assert found.compression == codec


@pytest.mark.capability("batch header: what the broker writes")
def test_a_compressed_batch_stays_as_it_is(leader: Connection, topic: str) -> None:
    content = batch(*[b"%d" % number for number in range(100)], compression=ZSTD)
    produce(leader, topic, content)
    (found,) = stored(leader, topic)
    # From the attributes on, which is what the CRC covers, nothing changes.
    assert bytes(found.view[ATTRIBUTES_POSITION:]) == bytes(content[ATTRIBUTES_POSITION:])


@pytest.mark.capability("produce: refused batches")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (patched(LAST_DELTA_POSITION, ">i", 7), ErrorCode.INVALID_RECORD),
        (patched(COUNT_POSITION, ">i", 2), ErrorCode.INVALID_RECORD),
        (patched(COUNT_POSITION, ">i", 0), ErrorCode.INVALID_RECORD),
        (batch(b"a", is_control=True), ErrorCode.INVALID_RECORD),
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (batch(b"a", b"b", base_offset=500), ErrorCode.INVALID_RECORD),
        (bytearray(batch(b"abc")[:-2] + b"XY"), ErrorCode.CORRUPT_MESSAGE),
        (batch(b"abc", timestamp_ms=9_999_999_999_999), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=["last-delta", "count", "no-count", "control", "two-batches", "empty", "base-offset", "crc", "future"],
)
def test_refused(leader: Connection, topic: str, content: bytes | None, code: ErrorCode) -> None:
    answer = produce(leader, topic, content)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert fetch(leader, topic, {0: 0})[0].high_watermark == 0
    assert produce(leader, topic, batch(b"fine")).base_offset == 0


@pytest.mark.capability("produce: refused batches")
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(leader: Connection, topic: str, magic: int) -> None:
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1) if magic else b"") + struct.pack(">ii", -1, 1) + b"x"
    message = struct.pack(">qi", 0, len(body) + 4) + struct.pack(">I", 0) + body
    answer = produce(leader, topic, bytearray(message))
    assert answer.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert fetch(leader, topic, {0: 0})[0].high_watermark == 0


@pytest.mark.capability("produce: refused batches")
def test_zstd_needs_version_7(leader: Connection, topic: str) -> None:
    content = batch(b"x" * 100, compression=ZSTD)
    assert produce(leader, topic, content, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(leader, topic, content, version=7).base_offset == 0


@pytest.mark.capability("produce: refused batches")
def test_too_large(leader: Connection, make_topic: Callable[..., str]) -> None:
    limit = len(batch(b"x" * 1000))
    topic = make_topic(**{"max.message.bytes": str(limit)})
    assert produce(leader, topic, batch(b"x" * 1000)).base_offset == 0
    assert produce(leader, topic, batch(b"x" * 1001)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    # Each batch is measured on its own, not the request.
    assert produce(leader, topic, batch(b"x" * 1000)).base_offset == 1


@pytest.mark.capability("produce: refused batches")
def test_keyless_records_of_a_compacted_topic_are_named(leader: Connection, make_topic: Callable[..., str]) -> None:
    topic = make_topic(**{"cleanup.policy": "compact"})
    content = build_batch([Record(key=key, value=b"v", timestamp=1) for key in (b"k", None, b"k", None)])
    answer = produce(leader, topic, content)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.error_message


@pytest.mark.capability("produce: refused batches")
def test_one_bad_partition_does_not_fail_the_others(leader: Connection, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    request = produce_request(topic, {0: batch(b"a", is_control=True), 1: batch(b"a"), 9: batch(b"a")})
    answers = {each.index: each for each in leader.call(request, 9).responses[0].partition_responses}
    assert answers[0].error_code == ErrorCode.INVALID_RECORD
    assert (answers[1].error_code, answers[1].base_offset) == (ErrorCode.NONE, 0)
    assert answers[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.capability("idempotent producer")
def test_a_repeated_batch_is_answered_with_its_old_offset(leader: Connection, topic: str) -> None:
    producer_id, epoch = new_producer(leader)

    def send(sequence: int, count: int = 2) -> tuple[int, int]:
        values = [b"%d" % (sequence + number) for number in range(count)]
        content = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        answer = produce(leader, topic, content)
        return answer.error_code, answer.base_offset

    assert [send(sequence) for sequence in range(0, 14, 2)] == [(0, sequence) for sequence in range(0, 14, 2)]
    # The last five batches are remembered; one before them is out of order, or a duplicate without an offset.
    assert [send(sequence) for sequence in range(4, 14, 2)] == [(0, sequence) for sequence in range(4, 14, 2)]
    assert send(2)[0] in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert send(16)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(14) == (0, 14)
    assert fetch(leader, topic, {0: 0})[0].high_watermark == 16


@pytest.mark.capability("idempotent producer")
def test_sequence_numbers_wrap(leader: Connection, topic: str) -> None:
    producer_id, epoch = new_producer(leader)
    # A leader that knows nothing of the producer takes any first sequence: its state may have expired.
    for number, sequence in enumerate((0x7FFFFFFE, 0x7FFFFFFF, 0, 1)):
        content = batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        answer = produce(leader, topic, content)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)


@pytest.mark.capability("idempotent producer")
def test_a_batch_across_the_wrap(leader: Connection, topic: str) -> None:
    producer_id, epoch = new_producer(leader)
    for sequence, count in ((0x7FFFFFFE, 4), (2, 1)):
        content = batch(*[b"x"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        assert produce(leader, topic, content).error_code == ErrorCode.NONE
    assert fetch(leader, topic, {0: 0})[0].high_watermark == 5


@pytest.mark.capability("idempotent producer")
def test_epochs(leader: Connection, topic: str) -> None:
    producer_id, _ = new_producer(leader)

    def send(epoch: int, sequence: int) -> int:
        content = batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return int(produce(leader, topic, content).error_code)

    assert send(3, 0) == ErrorCode.NONE
    assert send(2, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(4, 1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(4, 0) == ErrorCode.NONE


@pytest.mark.capability("idempotent producer")
def test_ids_are_different(leader: Connection, connections: Callable[[], Connection]) -> None:
    ids = [new_producer(connection) for connection in (leader, connections(), leader)]
    assert len({producer_id for producer_id, _ in ids}) == 3
    assert {epoch for _, epoch in ids} == {0}


@pytest.mark.capability("idempotent producer")
def test_recreated_topic_starts_afresh(
    leader: Connection, operator: Operator, fresh_name: Callable[[str], str]
) -> None:
    producer_id, epoch = new_producer(leader)
    name = fresh_name("recreated")
    for _ in range(2):
        operator.create_topic(name, 1, {})
        content = batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        assert produce(leader, name, content).base_offset == 0
        operator.delete_topic(name)
        eventually(lambda: describe(leader, name).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
