"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers, at every version.

Look-ups by time are in tests/log/test_timestamps.py and compat_tests/raw. Not here: that isolation level 1 finds less
than level 0, since there are no transactions yet.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

Send = Callable[..., Any]
MakeTopic = Callable[..., tuple[str, bytes]]
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@pytest.fixture
def topic(send: Send, make_topic: MakeTopic) -> str:
    """Two partitions; three batches of two records in partition 0: timestamps 100, 101; 300, 301; 200, 201."""
    name, _ = make_topic(2)
    for time_ms in (100, 300, 200):
        send(produce_request(name, {0: batch(b"a", b"b", timestamp_ms=time_ms)}), 9)
    return name


# --- ListOffsets ------------------------------------------------------------------------------------------------------


def list_offsets(send: Send, topic: str, *asked: tuple[int, ...], version: int, isolation_level: int = 0) -> Any:
    """``asked`` are (partition, timestamp[, current leader epoch])."""
    fields = ("partition_index", "timestamp", "current_leader_epoch")
    partitions = [ListOffsetsPartition(**dict(zip(fields, each, strict=False))) for each in asked]
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation_level, topics=[ListOffsetsTopic(name=topic, partitions=partitions)]
    )
    return send(request, version)


def listed(send: Send, topic: str, *asked: int, version: int, **how: Any) -> tuple[int, int, int, int]:
    """(error, offset, timestamp, leader epoch) of one partition."""
    (part,) = list_offsets(send, topic, asked, version=version, **how).topics[0].partitions
    assert isinstance(part, ListOffsetsPartitionResponse)
    return part.error_code, part.offset, part.timestamp, part.leader_epoch


@pytest.mark.parametrize("version", range(1, 12))
def test_special_times_of_every_version(send: Send, topic: str, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    expected = {
        LATEST: (0, 6, -1, epoch),
        EARLIEST: (0, 0, -1, epoch),
        MAX_TIMESTAMP: (0, 3, 301, epoch),
        EARLIEST_LOCAL: (0, 0, -1, epoch),
        LATEST_TIERED: (0, -1, -1, -1),
        EARLIEST_PENDING_UPLOAD: (0, -1, -1, -1),
        150: (0, 2, 300, epoch),
        302: (0, -1, -1, -1),
    }
    for timestamp, answer in expected.items():
        if version < FIRST_VERSION.get(timestamp, 1):
            answer = (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
        assert listed(send, topic, 0, timestamp, version=version) == answer, timestamp
    for unknown in (-7, -100):
        assert listed(send, topic, 0, unknown, version=version)[0] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", range(2, 12))
def test_isolation_levels(send: Send, topic: str, version: int) -> None:
    for timestamp, offset in ((LATEST, 6), (150, 2)):
        assert listed(send, topic, 0, timestamp, version=version, isolation_level=1)[:2] == (ErrorCode.NONE, offset)
    assert listed(send, topic, 0, LATEST, version=version, isolation_level=2)[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(4, 12))
@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 150])
def test_current_leader_epochs(send: Send, topic: str, version: int, timestamp: int) -> None:
    codes = [listed(send, topic, 0, timestamp, epoch, version=version)[0] for epoch in (-1, 0, 1, -2)]
    fenced, unknown = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, unknown, fenced]


def test_a_partition_named_twice_is_answered_once(send: Send, topic: str) -> None:
    (answer,) = list_offsets(send, topic, (0, LATEST), (1, LATEST), (0, EARLIEST), version=7).topics
    assert [(part.partition_index, part.error_code) for part in answer.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]


def test_a_topic_without_partitions_is_not_answered(send: Send, topic: str) -> None:
    assert list_offsets(send, topic, version=7).topics == []


@pytest.mark.parametrize("version", [1, 4, 11])
def test_unknown_partitions(send: Send, topic: str, version: int) -> None:
    (answer,) = list_offsets(send, topic, (9, LATEST), (-1, LATEST), (1, LATEST), version=version).topics
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [part.error_code for part in answer.partitions] == [unknown, unknown, ErrorCode.NONE]
    for name in ("missing", "", "no name!"):
        assert listed(send, name, 0, LATEST, version=version)[0] == unknown


def test_the_start_that_delete_records_made(send: Send, topic: str) -> None:
    assert deleted(send, topic, (0, 3)) == [(ErrorCode.NONE, 3)]
    assert listed(send, topic, 0, EARLIEST, version=11)[1] == 3
    assert listed(send, topic, 0, EARLIEST_LOCAL, version=11)[1] == 3
    # What is deleted is not found by its time any more, although it lies in the same batch.
    assert listed(send, topic, 0, 0, version=11)[1:3] == (3, 301)


# --- OffsetForLeaderEpoch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3, 4])
def test_where_an_epoch_ends(send: Send, topic: str, version: int) -> None:
    def answer(epoch: int, current: int = -1, partition: int = 0, name: str = topic) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=[asked])])
        (part,) = send(request, version).topics[0].partitions
        assert part.partition == partition
        return part.error_code, part.leader_epoch, part.end_offset

    # The current epoch ends where the log ends; of an unknown epoch there is nothing to say.
    assert [answer(epoch) for epoch in (0, 1, 5, -1)] == [(0, 0, 6), (0, -1, -1), (0, -1, -1), (0, -1, -1)]
    assert answer(0, current=0) == (0, 0, 6)
    assert answer(0, current=1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert answer(0, current=-2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert answer(0, partition=7) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert answer(0, name="missing") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def test_epochs_that_have_passed(tmp_path: Path, connect: Callable[[str], Send]) -> None:
    name = "t"
    for epoch in (0, 2, 4):  # a stop begins one without a leader, and a start the next
        with ottla.Broker(data_dir=tmp_path) as broker:
            send = connect(broker.bootstrap_servers)
            if epoch == 0:
                topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                assert send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code == 0
            send(produce_request(name, {0: batch(b"a", b"b", timestamp_ms=100 * (epoch + 1))}), 9)
            # The epoch of a new leader begins where the log ended; one that has no records is taken for the one before.
            asked = [OffsetForLeaderPartition(partition=0, leader_epoch=each) for each in range(6)]
            request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=name, partitions=asked)])
            answers = [(each.leader_epoch, each.end_offset) for each in send(request, 4).topics[0].partitions]
            ends = [(0, 2), (0, 2), (2, 4), (2, 4), (4, 6)]
            assert answers == ends[: epoch + 1] + [(-1, -1)] * (5 - epoch)
            # A record is found with the epoch it was written under; the end has the current one.
            assert listed(send, name, 0, 100, version=7) == (0, 0, 100, 0)
            assert listed(send, name, 0, MAX_TIMESTAMP, version=7)[3] == epoch
            assert [listed(send, name, 0, end, version=7)[3] for end in (LATEST, EARLIEST)] == [epoch, 0]
            codes = [listed(send, name, 0, LATEST, current, version=7)[0] for current in range(epoch + 2)]
            fenced, unknown = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
            assert codes == [fenced] * epoch + [ErrorCode.NONE, unknown]


# --- DeleteRecords ----------------------------------------------------------------------------------------------------


def deleted(send: Send, topic: str, *asked: tuple[int, int], version: int = 2) -> list[tuple[int, int]]:
    """(error, low watermark) of each (partition, offset)."""
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in asked]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=10_000)
    (answer,) = send(request, version).topics
    return [(part.error_code, part.low_watermark) for part in answer.partitions]


@pytest.mark.parametrize("version", range(3))
def test_delete_records(send: Send, topic: str, version: int) -> None:
    out_of_range = (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    for offset, answer in (
        (-2, out_of_range),
        (0, (0, 0)),
        (3, (0, 3)),
        (3, (0, 3)),
        (1, (0, 3)),
        (7, out_of_range),
        (-1, (0, 6)),
        (-1, (0, 6)),
    ):
        assert deleted(send, topic, (0, offset), version=version) == [answer]
    assert deleted(send, topic, (1, -1), (1, 1), (9, 0), (-1, 0), version=version) == [
        (0, 0),
        out_of_range,
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert deleted(send, "missing", (0, 0)) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    (part,) = send(fetch_request(topic, {0: 6}), 12).responses[0].partitions
    assert (part.error_code, part.log_start_offset, part.high_watermark) == (ErrorCode.NONE, 6, 6)


@pytest.mark.parametrize(
    ("policy", "code"), [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE)]
)
def test_delete_records_of_a_compacted_topic(send: Send, make_topic: MakeTopic, policy: str, code: ErrorCode) -> None:
    name, _ = make_topic(cleanup_policy=policy)
    assert deleted(send, name, (0, -1)) == [(code, -1 if code else 0)]


# --- DescribeProducers ------------------------------------------------------------------------------------------------


def test_describe_producers(send: Send, topic: str) -> None:
    for producer_id, sequence in ((71, 0), (72, 5), (71, 1)):
        content = batch(
            b"x", timestamp_ms=1000 + sequence, producer_id=producer_id, producer_epoch=3, base_sequence=sequence
        )
        send(produce_request(topic, {1: content}), 9)
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name=topic, partition_indexes=[1, 0, 9]),
            TopicRequest(name="missing", partition_indexes=[0]),
            TopicRequest(name="no name!", partition_indexes=[0]),
        ]
    )
    (known, none, no_partition), (missing,), (no_name,) = (each.partitions for each in send(request, 0).topics)
    assert {
        each.producer_id: (each.producer_epoch, each.last_sequence, each.last_timestamp, each.current_txn_start_offset)
        for each in known.active_producers
    } == {71: (3, 1, 1001, -1), 72: (3, 5, 1005, -1)}
    assert (none.error_code, none.active_producers) == (ErrorCode.NONE, [])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in (no_partition, missing)] == [unknown, unknown]
    assert no_name.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
