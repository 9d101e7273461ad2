"""Share sessions: their epochs, their end, member ids, partitions that come into them and leave them, what a loss releases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import OwnBrokers, TopicMaker
from ottla.compat_tests.raw.share_groups.conftest import Fill, MakeConsumer
from ottla.compat_tests.raw.share_groups.wire_share import (
    BRIEFLY_MS,
    FINAL_EPOCH,
    NOTHING,
    Fetched,
    ShareGroup,
    accept,
)
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.wire.messages import share_acknowledge, share_fetch

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: sessions"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
INVALID, NO_SESSION = ErrorCode.INVALID_REQUEST, ErrorCode.SHARE_SESSION_NOT_FOUND
OTHER_EPOCH = ErrorCode.INVALID_SHARE_SESSION_EPOCH
LAST_EPOCH = 0x7FFFFFFF
NO_SUCH_TOPIC = b"n" * 16


def test_epochs(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.take(epoch=0) == [(0, 9, 1)]
    assert a.fetch(epoch=2) == OTHER_EPOCH
    assert a.look(epoch=1) == []
    assert a.fetch(epoch=1) == OTHER_EPOCH  # the session lives on
    assert a.acknowledge(accept(0), epoch=3) == OTHER_EPOCH
    assert a.acknowledge(accept(0), epoch=0) == OTHER_EPOCH
    assert a.acknowledge(accept(0), epoch=2) == ErrorCode.NONE
    assert a.acknowledge(accept(1), epoch=2) == OTHER_EPOCH
    assert a.look(accept(1), epoch=3) == []


def test_a_request_counts_though_its_partitions_fail(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take(epoch=0)
    assert a.acknowledge(accept(9, 0), epoch=1) == INVALID
    assert a.fetch(accept(9, 0), epoch=2, max_wait_ms=0) == Fetched([], acknowledged=INVALID)
    assert a.acknowledge(accept(0, 9), epoch=3) == ErrorCode.NONE


def test_no_session(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    for epoch in (1, LAST_EPOCH, FINAL_EPOCH):
        assert a.fetch(epoch=epoch) == NO_SESSION
        assert a.acknowledge(accept(0), epoch=epoch) == NO_SESSION
    assert a.acknowledge(accept(0), epoch=0) == OTHER_EPOCH


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"group_id": None}, id="no group id"),
        pytest.param({"member_id": ""}, id="an empty member id"),
        pytest.param({"member_id": None}, id="no member id"),
        pytest.param({"member_id": "A" * 37}, id="a long member id"),
    ],
)
def test_ids(make_consumer: MakeConsumer, ten: str, fields: dict[str, str | None]) -> None:
    a = make_consumer(ten)
    assert a.fetch(**fields) == INVALID
    assert a.acknowledge(accept(0), **fields) == INVALID


def test_a_longest_member_id(make_consumer: MakeConsumer, ten: str) -> None:
    assert make_consumer(ten, "A" * 36).take() == [(0, 9, 1)]


def test_sessions_are_of_a_group_and_a_member(make_consumer: MakeConsumer, ten: str) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert b.fetch(epoch=1) == NO_SESSION
    assert a.look() == []


def test_a_new_session_in_place_of_an_old_one(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.look(epoch=0) == []  # what was acquired stays so
    assert a.fetch(epoch=2) == OTHER_EPOCH
    assert a.acknowledge(accept(0, 9), epoch=1) == ErrorCode.NONE


def test_a_first_fetch_has_no_acknowledgements(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.fetch(accept(0), epoch=0) == INVALID
    assert a.take(epoch=0) == [(0, 9, 1)]
    assert a.fetch(accept(0), epoch=0) == INVALID
    assert a.look(accept(0), epoch=1) == []


def test_the_end_by_a_fetch(make_consumer: MakeConsumer, ten: str) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.fetch(accept(0, 3), epoch=FINAL_EPOCH) == NOTHING
    assert a.fetch(epoch=2) == NO_SESSION
    assert b.take() == [(4, 9, 2)]


def test_the_end_by_an_acknowledgement(make_consumer: MakeConsumer, ten: str) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.acknowledge(accept(0, 3), epoch=FINAL_EPOCH) == ErrorCode.NONE
    assert a.acknowledge(accept(4), epoch=2) == NO_SESSION
    assert b.take() == [(4, 9, 2)]
    assert a.close() == NO_SESSION


def test_a_session_begins_again_after_its_end(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert a.close() == ErrorCode.NONE
    assert a.take() == [(0, 9, 2)]


def test_a_lost_connection_releases_at_once(make_consumer: MakeConsumer, ten: str) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    a.connection.close()
    assert b.gather(10) == dict.fromkeys(range(10), 2)  # long before the locks would have run out


def test_a_session_is_its_connections(
    make_consumer: MakeConsumer, ten: str, connections: Callable[[], Connection]
) -> None:
    a, b = make_consumer(ten), make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    old, a.connection = a.connection, connections()
    assert a.look() == []  # another connection may go on with it
    old.close()
    assert b.take() == [(0, 9, 2)]
    assert a.fetch() == NO_SESSION


def test_partitions_stay_until_they_are_forgotten(
    make_consumer: MakeConsumer, make_topic: TopicMaker, fill: Fill, wire: Connection
) -> None:
    topic = make_topic(3)
    a = make_consumer(topic)
    for partition in (0, 1):
        fill(topic, 2, partition=partition)
    found: dict[int, Fetched | ErrorCode] = {}
    while len(found) < 2:
        found |= a.fetch_all(add=[0, 1])
    assert found == {0: Fetched([(0, 1, 1)]), 1: Fetched([(0, 1, 1)])}
    fill(topic, 1, partition=1)
    assert a.fetch_all() == {1: Fetched([(2, 2, 1)])}
    fill(topic, 1, partition=0)
    fill(topic, 1, partition=2)
    assert a.fetch_all(add=[2], forget=[0, 1]) == {2: Fetched([(0, 0, 1)])}
    assert a.fetch_all(max_wait_ms=BRIEFLY_MS) == {}
    # What was acquired of a forgotten partition can be acknowledged.
    assert a.acknowledge(accept(0, 1)) == ErrorCode.NONE
    assert a.fetch_all(add=[0]) == {0: Fetched([(2, 2, 1)])}


def test_a_partition_that_is_not_there(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert a.fetch_all(add=[7], max_wait_ms=BRIEFLY_MS) == {7: Fetched([], unknown)}
    assert a.fetch_all(max_wait_ms=BRIEFLY_MS) == {7: Fetched([], unknown)}
    assert a.fetch_all(add=[0], forget=[7]) == {0: Fetched([(0, 9, 1)])}


def test_what_was_never_fetched_cannot_be_acknowledged(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.fetch_all(add=[], max_wait_ms=0)
    assert a.acknowledge(accept(0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_acknowledgements_in_an_unknown_topic(make_consumer: MakeConsumer, ten: str) -> None:
    a = make_consumer(ten)
    a.take()
    batches = [share_acknowledge.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])]
    partition = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topic = share_acknowledge.AcknowledgeTopic(topic_id=NO_SUCH_TOPIC, partitions=[partition])
    response = a.raw_acknowledge(topics=[topic])
    (part,) = response.responses[0].partitions
    assert (response.error_code, part.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)
    assert a.acknowledge(accept(0, 9)) == ErrorCode.NONE


def test_an_unknown_topic(make_consumer: MakeConsumer, ten: str) -> None:
    # Kafka 4.3.1 fails the whole request, with an error that says nothing.
    a = make_consumer(ten)
    partition = share_fetch.FetchPartition(partition_index=0, acknowledgement_batches=[])
    topics = [
        share_fetch.FetchTopic(topic_id=topic_id, partitions=[partition]) for topic_id in (NO_SUCH_TOPIC, a.topic_id)
    ]
    response = a.raw_fetch(topics=topics)
    assert response.error_code in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)
    errors = {topic.topic_id: topic.partitions[0].error_code for topic in response.responses}
    assert errors in ({}, {NO_SUCH_TOPIC: ErrorCode.UNKNOWN_TOPIC_ID, a.topic_id: ErrorCode.NONE})


def test_a_topic_is_deleted(make_consumer: MakeConsumer, ten: str, operator: Operator) -> None:
    a = make_consumer(ten)
    a.take()
    operator.delete_topic(ten)
    eventually(lambda: a.acknowledge(accept(0)) == ErrorCode.UNKNOWN_TOPIC_ID)
    assert a.acknowledge(accept(0, 9)) == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_limit_of_sessions(own_brokers: OwnBrokers, group_id: str) -> None:
    properties = {
        "group.share.max.share.sessions": "2",
        "group.share.max.size": "2",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    with own_brokers(**properties) as broker, connect(broker.bootstrap) as wire:
        find_coordinator(wire, GROUP, group_id)
        Operator(broker.bootstrap).create_topic("topic", 1, {})
        group = ShareGroup(wire, group_id, "topic")
        with connect(broker.bootstrap) as first, connect(broker.bootstrap) as second:
            a, b, c = (
                group.consumer(name, "topic", each) for name, each in zip("ABC", (first, second, second), strict=True)
            )
            a.fetch(max_wait_ms=0)
            b.fetch(max_wait_ms=0)
            assert c.fetch(max_wait_ms=BRIEFLY_MS) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
            assert a.close() == ErrorCode.NONE
            assert c.fetch(max_wait_ms=0) == NOTHING
