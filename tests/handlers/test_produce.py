"""Produce: every version, what is refused and with which code, which partitions and topics an answer names.

Offsets, batch headers, codecs and idempotence are in tests/log and, from a client's side, in compat_tests/raw.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.compat_tests.wire_client import connect
from ottla.wire.compression import GZIP, ZSTD
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.records import LOG_APPEND_TIME, Record, RecordBatch, build_batch, iter_batches

Send = Callable[..., Any]
VERSIONS = range(3, 14)
FIRST_TOPIC_ID_VERSION = 13


@pytest.fixture
def topic(make_topic: Callable[..., tuple[str, bytes]], request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """(name, id) of a topic of two partitions; a parameter gives its configs."""
    return make_topic(2, **getattr(request, "param", {}))


def produce(
    send: Send, topic: tuple[str, bytes], records: Any, version: int = 9, index: int = 0, acks: int = -1
) -> Any:
    request = produce_request(topic[0], {index: records}, acks)
    request.topic_data[0].topic_id = topic[1]
    response = send(request, version)
    (answered,) = response.responses
    if version >= FIRST_TOPIC_ID_VERSION:
        assert answered.topic_id == topic[1]
    else:
        assert answered.name == topic[0]
    (partition,) = answered.partition_responses
    assert isinstance(partition, PartitionProduceResponse)
    assert partition.index == index
    assert partition.current_leader is None
    return partition


def stored(send: Send, topic: tuple[str, bytes]) -> list[RecordBatch]:
    (answered,) = send(fetch_request(topic[0], {0: 0}), 12).responses
    batches = list(iter_batches(answered.partitions[0].records))
    for each in batches:
        each.check_crc()
    return batches


def with_attributes(content: bytearray, attributes: int) -> bytearray:
    struct.pack_into(">h", content, 21, attributes)
    struct.pack_into(">I", content, 17, RecordBatch(content).compute_crc())
    return content


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version(send: Send, topic: tuple[str, bytes], version: int) -> None:
    for offset in (0, 2):
        answer = produce(send, topic, batch(b"a", b"b"), version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (ErrorCode.NONE, offset, -1)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
        assert (answer.record_errors, answer.error_message) == ([], None)


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_of_every_version(send: Send, topic: tuple[str, bytes], version: int) -> None:
    answer = produce(send, topic, batch(b"a", is_control=True), version)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    # An error of the log says where the log starts: producers tell deleted from lost records by it.
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert bool(answer.error_message) == (version >= 8)
    for index in (2, -1):
        answer = produce(send, topic, batch(b"a"), version, index)
        assert (answer.error_code, answer.log_start_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    by_id = version >= FIRST_TOPIC_ID_VERSION
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for nothing in (("missing", b"\1" * 16), ("", bytes(16)), ("no name!", b"\2" * 16)):
        assert produce(send, nothing, batch(b"a"), version).error_code == unknown


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_that_do_not_exist(send: Send, topic: tuple[str, bytes], acks: int) -> None:
    assert produce(send, topic, batch(b"a"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert produce(send, topic, batch(b"a"), index=7, acks=acks).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stored(send, topic) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_id", [None, "me"])
def test_without_acks_there_is_no_answer(
    send: Send, broker: ottla.Broker, topic: tuple[str, bytes], version: int, client_id: str | None
) -> None:
    request = produce_request(topic[0], {0: batch(b"a")}, acks=0)
    request.topic_data[0].topic_id = topic[1]
    with connect(broker.bootstrap_servers) as connection:
        for _ in range(3):
            connection.send(request, version, client_id=client_id, answered=False)
        # The next answer is that of the next request.
        assert connection.call(fetch_request(topic[0], {0: 0}), 12).responses[0].partitions[0].high_watermark == 3


@pytest.mark.parametrize("fault", ["topic", "partition", "batch"])
def test_without_acks_a_failure_closes_the_connection(
    broker: ottla.Broker, topic: tuple[str, bytes], fault: str
) -> None:
    name = "missing" if fault == "topic" else topic[0]
    request = produce_request(
        name, {9 if fault == "partition" else 0: batch(b"a", is_control=fault == "batch")}, acks=0
    )
    with connect(broker.bootstrap_servers) as connection:
        connection.send(request, 9, answered=False)
        with pytest.raises(EOFError):
            connection.receive_frame()


def test_a_topic_without_partitions_is_not_answered(send: Send, topic: tuple[str, bytes]) -> None:
    assert send(ProduceRequest(acks=1, topic_data=[TopicProduceData(name=topic[0])]), 9).responses == []


def test_a_partition_named_twice_is_appended_to_twice(send: Send, topic: tuple[str, bytes]) -> None:
    data = [PartitionProduceData(index=0, records=batch(value)) for value in (b"a", b"b")]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name=topic[0], partition_data=data)])
    answers = send(request, 9).responses[0].partition_responses
    assert [(answer.index, answer.base_offset) for answer in answers] == [(0, 0), (0, 1)]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:12]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:16]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:60]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:-1]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")) + b"\0", ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")) + bytes(batch(b"abc")[:-1]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:8]) + struct.pack(">i", -1) + bytes(batch(b"abc")[12:]), ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(b"abc")[:8]) + struct.pack(">i", 13) + bytes(batch(b"abc")[12:]), ErrorCode.CORRUPT_MESSAGE),
        (bytes(batch(b"abc")[:16]) + b"\1" + bytes(batch(b"abc")[17:]), ErrorCode.INVALID_RECORD),
        (bytes(batch(b"abc")[:16]) + b"\3" + bytes(batch(b"abc")[17:]), ErrorCode.CORRUPT_MESSAGE),
        (with_attributes(batch(b"abc"), 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (with_attributes(batch(b"abc"), 7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
    ids=[
        "null",
        "empty",
        "12",
        "16",
        "60",
        "cut",
        "byte-more",
        "second-cut",
        "negative",
        "13",
        "magic-1",
        "magic-3",
        "5",
        "7",
    ],
)
def test_what_is_no_batch(send: Send, topic: tuple[str, bytes], records: bytes | None, code: ErrorCode) -> None:
    answer = produce(send, topic, records)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert answer.error_message
    assert stored(send, topic) == []


def test_a_coordinators_topic_is_not_for_clients(send: Send, broker: ottla.Broker) -> None:
    assert send(FindCoordinatorRequest(key="g"), 2).error_code == ErrorCode.NONE  # has the topic made
    request = produce_request("__consumer_offsets", {0: build_batch([Record(key=b"k", value=b"v", timestamp=1)])})
    for client_id, code in (("me", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)):
        with connect(broker.bootstrap_servers) as connection:
            response = connection.call(request, 9, client_id=client_id)
        assert response.responses[0].partition_responses[0].error_code == code
    partition = DeleteRecordsPartition(partition_index=0, offset=-1)
    asked = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="__consumer_offsets", partitions=[partition])])
    assert send(asked, 2).topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [3, 6, 7])
def test_zstd_from_version_7_on(send: Send, topic: tuple[str, bytes], version: int) -> None:
    code = produce(send, topic, batch(b"x" * 100, compression=ZSTD), version).error_code
    assert code == (ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize("topic", [{"min.insync.replicas": "2"}], indirect=True)
@pytest.mark.parametrize("acks", [-1, 1])
def test_no_more_replicas_can_be_in_sync_than_there_are(send: Send, topic: tuple[str, bytes], acks: int) -> None:
    assert produce(send, topic, batch(b"a"), acks=acks).error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", [0, GZIP])
def test_log_append_time_of_a_producer_is_taken_back(send: Send, topic: tuple[str, bytes], codec: int) -> None:
    content = batch(b"a", b"b", timestamp_ms=1000, timestamp_type=LOG_APPEND_TIME, compression=codec)
    answer = produce(send, topic, content)
    assert (answer.error_code, answer.log_append_time_ms) == (ErrorCode.NONE, -1)
    (found,) = stored(send, topic)
    assert [record.timestamp for record in found.records()] == [1000, 1001]


@pytest.mark.parametrize("topic", [{"message.timestamp.type": "LogAppendTime"}], indirect=True)
def test_a_duplicate_has_the_append_time_of_the_first(send: Send, topic: tuple[str, bytes]) -> None:
    first, again = (
        produce(send, topic, batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)) for _ in range(2)
    )
    assert first.log_append_time_ms > 1_600_000_000_000
    assert (again.base_offset, again.log_append_time_ms) == (0, first.log_append_time_ms)


@pytest.mark.parametrize("topic", [{"cleanup.policy": "compact"}], indirect=True)
@pytest.mark.parametrize("version", [7, 8])
def test_records_at_fault_are_named_from_version_8_on(send: Send, topic: tuple[str, bytes], version: int) -> None:
    answer = produce(send, topic, batch(b"a", b"b"), version)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == ([0, 1] if version >= 8 else [])


def test_transactional_batches_outside_of_a_transaction_are_refused(send: Send, topic: tuple[str, bytes]) -> None:
    content = batch(b"a", is_transactional=True, producer_id=8, producer_epoch=0, base_sequence=0)
    refused_with = {
        None: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "tx": ErrorCode.NOT_ENOUGH_REPLICAS,  # its coordinator is not known yet: the producer is to try again
    }
    for transactional_id, code in refused_with.items():
        request = produce_request(topic[0], {0: content}, transactional_id=transactional_id)
        (answer,) = send(request, 9).responses[0].partition_responses
        assert answer.error_code == code
    # The id alone means nothing: it is the batch that says whether it belongs to a transaction.
    (answer,) = (
        send(produce_request(topic[0], {0: batch(b"a")}, transactional_id="tx"), 9).responses[0].partition_responses
    )
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
