"""Fetch: every version, errors of one partition, limits that make no sense, diverging epochs, life and end of a session.

Limits that do make sense, sessions that go on and long polls are in compat_tests/raw, the session cache in
tests/replication. Not here: aborted transactions, of which there are none yet (read_committed reads what
read_uncommitted reads).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from ottla.wire.records import iter_batches

Send = Callable[..., Any]
Topic = tuple[str, bytes]
MakeTopic = Callable[..., Topic]
VERSIONS = range(4, 19)
FIRST_TOPIC_ID_VERSION = 13


def asked(partition: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, **{"partition_max_bytes": 1 << 20, **fields})


def fetch(
    send: Send,
    topic: Topic,
    *partitions: FetchPartition,
    version: int = 12,
    forget: tuple[int, ...] = (),
    **fields: Any,
) -> FetchResponse:
    """A fetch that does not wait unless ``fields`` say so; without a session unless they name one."""
    request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 25, **fields})
    if partitions:
        request.topics = [FetchTopic(topic=topic[0], topic_id=topic[1], partitions=list(partitions))]
    if forget:
        request.forgotten_topics_data = [ForgottenTopic(topic=topic[0], topic_id=topic[1], partitions=list(forget))]
    response = send(request, version)
    assert isinstance(response, FetchResponse)
    for answered in response.responses:
        assert (answered.topic_id, answered.topic) == ((topic[1], "") if version >= 13 else (bytes(16), topic[0]))
    return response


def parts(response: FetchResponse) -> list[PartitionData]:
    return [part for topic in response.responses for part in topic.partitions]


def codes(response: FetchResponse) -> list[int]:
    return [part.error_code for part in parts(response)]


@pytest.fixture
def topic(send: Send, make_topic: MakeTopic) -> Topic:
    """Three partitions; two batches of two records in partition 0, offsets 0 to 3."""
    made = make_topic(3)
    for values in ((b"a", b"b"), (b"c", b"d")):
        send(produce_request(made[0], {0: batch(*values)}), 9)
    return made


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_every_version(send: Send, topic: Topic, version: int, isolation_level: int) -> None:
    response = fetch(send, topic, asked(0, 3), asked(1), version=version, isolation_level=isolation_level)
    assert (response.error_code, response.session_id, response.throttle_time_ms) == (ErrorCode.NONE, 0, 0)
    full, empty = parts(response)
    assert [each.base_offset for each in iter_batches(full.records)] == [2]
    assert (full.error_code, full.high_watermark, full.last_stable_offset) == (ErrorCode.NONE, 4, 4)
    assert full.log_start_offset == (0 if version >= 5 else -1)
    # Which transactions were aborted is told to those who asked for committed records only.
    assert full.aborted_transactions == ([] if isolation_level else None)
    # Empty is an empty field, not null.
    assert (empty.high_watermark, bytes(empty.records)) == (0, b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_errors_of_every_version(send: Send, topic: Topic, version: int) -> None:
    response = fetch(send, topic, asked(0, 5), asked(0, -1), asked(0, 4), version=version)
    # Of a partition that is named twice the last word counts.
    assert codes(response) == [ErrorCode.NONE]
    response = fetch(send, topic, asked(0, 5), asked(1, -1), asked(9), asked(-1), asked(2), version=version)
    out_of_range, negative, missing, no_number, fine = parts(response)
    assert [out_of_range.error_code, negative.error_code] == [ErrorCode.OFFSET_OUT_OF_RANGE] * 2
    assert [missing.error_code, no_number.error_code] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert fine.error_code == ErrorCode.NONE
    for failed in (out_of_range, negative, missing, no_number):
        assert (failed.high_watermark, failed.last_stable_offset, failed.log_start_offset) == (-1, -1, -1)
        assert bytes(failed.records) == b""
    by_id = version >= FIRST_TOPIC_ID_VERSION
    for nothing in (("missing", b"\2" * 16), ("", bytes(16))):
        expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes(fetch(send, nothing, asked(), version=version)) == [expected]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 9])
def test_leader_epochs(send: Send, topic: Topic, version: int) -> None:
    response = fetch(send, topic, *(asked(n, current_leader_epoch=n - 1) for n in range(3)), version=version)
    assert codes(response) == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_LEADER_EPOCH]
    assert codes(fetch(send, topic, asked(current_leader_epoch=-2), version=version)) == [ErrorCode.FENCED_LEADER_EPOCH]


def test_an_error_ends_the_wait(send: Send, topic: Topic) -> None:
    response = fetch(send, topic, asked(0, 9), asked(1), max_wait_ms=3_600_000, min_bytes=1 << 20)
    assert codes(response) == [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE]


def test_more_than_the_limit_is_not_waited_for(send: Send, topic: Topic) -> None:
    response = fetch(send, topic, asked(0), asked(1), max_wait_ms=3_600_000, min_bytes=1 << 20, max_bytes=50)
    assert [len(part.records) > 0 for part in parts(response)] == [True, False]


def test_a_full_partition_ends_the_wait_of_the_others(send: Send, topic: Topic) -> None:
    # Kafka would wait for the hour: the client said how much it takes of partition 0, and it is there.
    partitions = asked(0, partition_max_bytes=1), asked(1)
    response = fetch(send, topic, *partitions, max_wait_ms=3_600_000, min_bytes=1 << 20)
    assert [len(part.records) > 0 for part in parts(response)] == [True, False]


def test_a_diverging_partition_ends_the_wait(send: Send, topic: Topic) -> None:
    partitions = asked(0, 9, last_fetched_epoch=0), asked(1)
    response = fetch(send, topic, *partitions, max_wait_ms=3_600_000, min_bytes=1 << 20)
    assert parts(response)[0].diverging_epoch == EpochEndOffset(epoch=0, end_offset=4)


def test_unknown_partitions_are_answered_at_once_only_when_there_are_no_others(
    send: Send, broker: ottla.Broker, topic: Topic
) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(fetch(send, topic, asked(8), asked(9), max_wait_ms=3_600_000, min_bytes=1)) == [unknown] * 2
    with connect(broker.bootstrap_servers) as connection:
        topics = [FetchTopic(topic=topic[0], partitions=[asked(9), asked(1)])]
        connection.send(FetchRequest(max_wait_ms=3_600_000, min_bytes=1, max_bytes=1 << 20, topics=topics), 12)
        # A consumer of a deleted topic would ask again and again without a pause.
        assert connection.is_silent(0.1)
        send(produce_request(topic[0], {1: batch(b"e")}), 9)
        missing, woken = parts(connection.receive())
    assert (missing.error_code, woken.error_code, len(woken.records) > 0) == (unknown, ErrorCode.NONE, True)


@pytest.mark.parametrize("limits", [{"max_bytes": -1}, {"max_bytes": 0}])
@pytest.mark.parametrize("partition_max_bytes", [-1, 0, 1])
def test_without_room_there_is_one_batch(
    send: Send, topic: Topic, limits: dict[str, int], partition_max_bytes: int
) -> None:
    send(produce_request(topic[0], {1: batch(b"e")}), 9)
    wanted = [asked(n, partition_max_bytes=partition_max_bytes) for n in (2, 0, 1)]
    response = fetch(send, topic, *wanted, **limits)
    assert codes(response) == [ErrorCode.NONE] * 3
    assert [len(list(iter_batches(part.records))) for part in parts(response)] == [0, 1, 0]


def test_an_offset_out_of_range_is_told_without_room_too(send: Send, topic: Topic) -> None:
    response = fetch(send, topic, asked(0), asked(1, 7), asked(2, 0), max_bytes=1)
    assert codes(response) == [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE]


def test_only_whole_batches_are_sent_and_counted(send: Send, topic: Topic) -> None:
    # Kafka cuts the last batch where the limit is, which is of no use to a client, and has no bytes left for the others.
    send(produce_request(topic[0], {1: batch(b"e")}), 9)
    size = len(batch(b"a", b"b"))
    full, rest = parts(fetch(send, topic, asked(0), asked(1), max_bytes=2 * size - 1))
    assert (len(full.records), len(rest.records)) == (size, len(batch(b"e")))


@pytest.mark.parametrize("version", [4, 12, 13])
def test_an_isolation_level_that_does_not_exist(send: Send, topic: Topic, version: int) -> None:
    response = fetch(send, topic, asked(), version=version, isolation_level=2)
    assert codes(response) == [ErrorCode.INVALID_REQUEST]
    assert response.error_code == (ErrorCode.INVALID_REQUEST if version >= 7 else 0)


@pytest.mark.parametrize("replica_id", [0, 1, 99])
def test_no_broker_replicates_from_here(send: Send, topic: Topic, replica_id: int) -> None:
    state = ReplicaState(replica_id=replica_id, replica_epoch=5)
    for version, who in (
        (11, {"replica_id": replica_id}),
        (13, {"replica_id": replica_id}),
        (15, {"replica_state": state}),
    ):
        assert codes(fetch(send, topic, asked(), version=version, **who)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_diverging_epochs(send: Send, topic: Topic) -> None:
    def answer(offset: int, last_fetched_epoch: int) -> tuple[int, Any]:
        (part,) = parts(fetch(send, topic, asked(0, offset, last_fetched_epoch=last_fetched_epoch)))
        return part.error_code, part.diverging_epoch

    nothing = None
    assert [answer(offset, 0) for offset in (0, 4)] == [(ErrorCode.NONE, nothing)] * 2
    assert answer(9, 0) == (ErrorCode.NONE, EpochEndOffset(epoch=0, end_offset=4))
    assert answer(4, 3) == (ErrorCode.OFFSET_OUT_OF_RANGE, nothing)
    assert answer(4, -1) == (ErrorCode.NONE, nothing)


@pytest.mark.parametrize("version", [7, 12, 13, 17])
class TestSessions:
    def test_one_that_has_forgotten_everything_is_over(self, send: Send, topic: Topic, version: int) -> None:
        session_id = fetch(send, topic, asked(0), asked(1), version=version, session_epoch=0).session_id
        assert session_id > 0

        def go_on(epoch: int, *forget: int) -> tuple[int, int, int]:
            response = fetch(send, topic, version=version, session_id=session_id, session_epoch=epoch, forget=forget)
            return response.error_code, response.session_id, len(response.responses)

        assert go_on(1, 0) == (ErrorCode.NONE, session_id, 0)
        assert go_on(2, 1) == (ErrorCode.NONE, 0, 0)
        assert go_on(3) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, 0)

    def test_one_may_begin_with_nothing(self, send: Send, topic: Topic, version: int) -> None:
        session_id = fetch(send, topic, version=version, session_epoch=0).session_id
        assert session_id > 0
        response = fetch(send, topic, asked(0), version=version, session_id=session_id, session_epoch=1)
        assert (response.session_id, codes(response)) == (session_id, [ErrorCode.NONE])

    def test_a_partition_that_is_asked_for_again_is_news_only_with_data(
        self, send: Send, topic: Topic, version: int
    ) -> None:
        session_id = fetch(send, topic, asked(0, 4), asked(1), version=version, session_epoch=0).session_id
        response = fetch(send, topic, asked(1), version=version, session_id=session_id, session_epoch=1)
        assert parts(response) == []
        response = fetch(send, topic, asked(0, 2), version=version, session_id=session_id, session_epoch=2)
        assert [part.partition_index for part in parts(response)] == [0]

    def test_a_deleted_topic(self, send: Send, topic: Topic, version: int) -> None:
        session_id = fetch(send, topic, asked(0), version=version, session_epoch=0).session_id
        send(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic[0])], timeout_ms=10_000), 6)
        by_id = version >= FIRST_TOPIC_ID_VERSION
        for epoch in (1, 2):
            response = fetch(send, topic, version=version, session_id=session_id, session_epoch=epoch)
            expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert codes(response) == [expected]


def test_a_session_keeps_to_names_or_ids(send: Send, topic: Topic) -> None:
    session_id = fetch(send, topic, asked(0), version=12, session_epoch=0).session_id
    response = fetch(send, topic, asked(0), version=13, session_id=session_id, session_epoch=1)
    assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, [])
    assert fetch(send, topic, version=12, session_id=session_id, session_epoch=1).error_code == ErrorCode.NONE
