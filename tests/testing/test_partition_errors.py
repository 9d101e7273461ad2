"""A fault for one topic leaves the others of the same request alone, on the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import Connection, connect
from ottla.testing.broker import Broker
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
FAULT: dict[str, Any] = {"topic": "bad", "error": "NOT_LEADER_OR_FOLLOWER"}


@pytest.fixture
def broker(ottla_broker_factory: Callable[..., Broker]) -> Broker:
    broker = ottla_broker_factory()
    for topic in ("bad", "good"):
        broker.create_topic(topic, partitions=2)
    return broker


@pytest.fixture
def client(broker: Broker) -> Iterator[Connection]:
    with connect(broker.bootstrap_servers) as client:
        yield client


def produce(client: Connection, *partitions: tuple[str, int]) -> dict[tuple[str, int], int]:
    """One batch to each; the error codes."""
    batch = bytes(build_batch([Record(value=b"v", timestamp=1)]))
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(PartitionProduceData(index=number, records=batch))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
    )
    answer = client.call(request, 9)
    return {
        (topic.name, part.index): part.error_code for topic in answer.responses for part in topic.partition_responses
    }


def test_produce_appends_what_is_not_at_fault(broker: Broker, client: Connection) -> None:
    broker.faults.add(api="Produce", **FAULT)
    answers = produce(client, ("bad", 0), ("good", 0), ("bad", 1))
    assert answers == {("bad", 0): NOT_LEADER, ("bad", 1): NOT_LEADER, ("good", 0): 0}
    assert len(broker.records("good")) == 1
    assert broker.records("bad") == []
    assert set(produce(client, ("bad", 0), ("good", 0)).values()) == {0}, "once is once"


def test_only_the_partition_that_moved_is_lost(broker: Broker, client: Connection) -> None:
    broker.move_leader("bad", 1)
    for _ in range(2):
        assert produce(client, ("bad", 0), ("bad", 1)) == {("bad", 0): 0, ("bad", 1): NOT_LEADER}
    found = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="bad")]), 9).topics[0].partitions
    assert {part.partition_index: part.leader_epoch for part in found} == {0: 0, 1: 1}
    assert produce(client, ("bad", 1)) == {("bad", 1): 0}


def test_an_older_leader_epoch_is_fenced_after_a_move(broker: Broker, client: Connection) -> None:
    broker.move_leader("good")
    client.call(MetadataRequest(topics=None), 9)
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=0)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="good", partitions=[asked])])
    assert client.call(request, 5).topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_list_offsets_by_partition(broker: Broker, client: Connection) -> None:
    broker.faults.add(api="ListOffsets", **FAULT)
    topics = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        for name in ("bad", "good")
    ]
    answer = client.call(ListOffsetsRequest(replica_id=-1, topics=topics), 5)
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"bad": NOT_LEADER, "good": 0}


def test_a_fetch_session_goes_on_after_a_fault(broker: Broker, client: Connection) -> None:
    """In a session's later requests no topic is named, and still the fault finds its own; the session survives it."""
    produce(client, ("bad", 0), ("good", 0))
    topics = [
        FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
        for name in ("bad", "good")
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000, session_epoch=0, topics=topics)
    first = client.call(request, 12)
    assert [len(topic.partitions[0].records) > 0 for topic in first.responses] == [True, True]

    fault = broker.faults.add(api="Fetch", **FAULT)
    following = FetchRequest(
        max_wait_ms=30_000, min_bytes=1_000_000, max_bytes=10_000, session_id=first.session_id, session_epoch=1
    )
    answer = client.call(following, 12)  # at once: an error does not wait for more bytes
    errors = {topic.topic: topic.partitions[0].error_code for topic in answer.responses}
    assert answer.error_code == 0
    assert errors["bad"] == NOT_LEADER
    assert errors.get("good", 0) == 0
    assert fault.hits == 1

    following.session_epoch, following.max_wait_ms = 2, 0
    again = client.call(following, 12)
    assert again.error_code == 0
    assert {topic.topic: topic.partitions[0].error_code for topic in again.responses} == {"bad": 0, "good": 0}


def test_metadata_still_names_the_brokers(broker: Broker, client: Connection) -> None:
    broker.faults.add(api="Metadata", topic="bad", error="LEADER_NOT_AVAILABLE")
    answer = client.call(MetadataRequest(topics=None), 9)
    assert len(answer.brokers) == 1
    errors = {topic.name: topic.error_code for topic in answer.topics}
    assert errors == {"bad": ErrorCode.LEADER_NOT_AVAILABLE, "good": 0}


def test_a_topic_named_by_its_id_is_found(broker: Broker, client: Connection) -> None:
    (topic,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="bad")]), 12).topics
    broker.faults.add(api="Fetch", **FAULT)
    asked = FetchTopic(topic_id=topic.topic_id, partitions=[FetchPartition(partition=1, partition_max_bytes=1000)])
    answer = client.call(FetchRequest(max_wait_ms=0, session_epoch=-1, max_bytes=1000, topics=[asked]), 13)
    (found,) = answer.responses
    assert (found.topic_id, found.partitions[0].error_code) == (topic.topic_id, NOT_LEADER)
