"""CreateTopics, DeleteTopics, CreatePartitions and DescribeTopicPartitions, at every version.

Of the list of what other brokers got wrong, here are: -1 for the broker's defaults, validate_only that sees existing
topics, a replication factor above the number of brokers (even ones are legal, see the assignment's tests), one result per
topic of CreatePartitions with partitions numbered without gaps. A topic made again with a new id is in the Metadata tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.wire.schema import ZERO_UUID

from ..helpers.zookeeper_broker import QUORUM, NewBroker, on_both_kinds

__all__ = ["on_both_kinds"]

Send = Callable[..., Any]


def new(name: str, partitions: int = -1, factor: int = -1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()],
    )


def by_hand(name: str, *replicas: list[int], partitions: int = -1) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=r) for i, r in enumerate(replicas)]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=assignments)


def create(send: Send, *topics: CreatableTopic, version: int = 7, **arguments: Any) -> list[CreatableTopicResult]:
    response = send(CreateTopicsRequest(topics=list(topics), **{"timeout_ms": 10_000, **arguments}), version)
    return list(response.topics)


def seen(send: Send, name: str) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = send(request, 12).topics
    assert isinstance(topic, MetadataResponseTopic)
    return topic


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_ready_when_it_is_answered(send: Send, version: int) -> None:
    name = f"ready-{version}"
    (result,) = create(send, new(name, 3, 1), version=version)
    topic = seen(send, name)
    assert (result.name, result.error_code, result.error_message) == (name, 0, None)
    assert [p.leader_id for p in topic.partitions] == [1, 1, 1]
    assert result.topic_id == (topic.topic_id if version >= 7 else ZERO_UUID)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert len(result.configs or []) > 30


def test_defaults_stand_for_minus_one(send: Send) -> None:
    (result,) = create(send, new("defaults", retention_ms="5"), version=5)
    assert (result.num_partitions, result.replication_factor) == (1, 1)
    configs = {c.name: (c.value, c.config_source) for c in result.configs or []}
    assert configs["retention.ms"] == ("5", 1)
    assert configs["cleanup.policy"] == ("delete", 5)


def test_replicas_named_by_hand(send: Send) -> None:
    (result,) = create(send, by_hand("by-hand", [1], [1]))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (new("t", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (new("t", partitions=20_000), ErrorCode.POLICY_VIOLATION),
        (new("t", factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", nope="1"), ErrorCode.INVALID_CONFIG),
        (new("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new("t", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (new("t", min_insync_replicas="0"), ErrorCode.INVALID_CONFIG),
        (by_hand("t", [2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [1], []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [1], partitions=1), ErrorCode.INVALID_REQUEST),
        (new("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_topics_that_are_refused(send: Send, topic: CreatableTopic, code: ErrorCode) -> None:
    for validate_only in (True, False):
        (result,) = create(send, topic, validate_only=validate_only)
        assert result.error_code == code
        assert result.error_message
    assert seen(send, "t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_assigned_by_hand_have_no_gaps_or_repeats(send: Send) -> None:
    for indexes in ([1], [0, 2], [0, 0]):
        assignments = [CreatableReplicaAssignment(partition_index=i, broker_ids=[1]) for i in indexes]
        topic = CreatableTopic(name="gaps", num_partitions=-1, replication_factor=-1, assignments=assignments)
        assert create(send, topic)[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_names_that_collide(send: Send, cluster_kind: str) -> None:
    """Kafka's quorum compares a name with topics that there are, and its ZooKeeper mode with those of the request as well."""
    create(send, new("co.lli_de"))
    codes = [r.error_code for r in create(send, new("co_lli.de"), new("fresh.er"), new("fresh_er"))]
    second = ErrorCode.NONE if cluster_kind == QUORUM else ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE, second]


@pytest.mark.parametrize("version", range(2, 8))
def test_validation_alone_makes_nothing_and_sees_what_exists(send: Send, version: int) -> None:
    create(send, new("existing"))
    exists, fine = create(send, new("existing", 1, 1), new("imagined", 1, 1), version=version, validate_only=True)
    assert (exists.error_code, exists.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'existing' already exists.",
    )
    assert fine.error_code == ErrorCode.NONE
    assert seen(send, "imagined").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_name_given_twice_is_refused_once(send: Send) -> None:
    results = create(send, new("twice"), new("once"), new("twice"))
    assert sorted((r.name, r.error_code) for r in results) == [("once", 0), ("twice", ErrorCode.INVALID_REQUEST)]
    assert seen(send, "twice").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_no_time_is_no_topic(send: Send) -> None:
    for timeout_ms in (0, -1):
        (result,) = create(send, new("hurry"), timeout_ms=timeout_ms)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert seen(send, "hurry").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_request_without_topics(send: Send) -> None:
    assert create(send) == []


def delete(send: Send, version: int, *names: str, **arguments: Any) -> list[DeletableTopicResult]:
    arguments = {"timeout_ms": 10_000, **arguments}
    if version >= 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], **arguments)
    else:
        request = DeleteTopicsRequest(topic_names=list(names), **arguments)
    return list(send(request, version).responses)


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name(send: Send, version: int) -> None:
    create(send, new("doomed", 4))
    doomed, missing = sorted(delete(send, version, "doomed", "missing"), key=lambda result: result.name)
    assert (doomed.name, doomed.error_code) == ("doomed", 0)
    assert (missing.name, missing.error_code) == ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert seen(send, "doomed").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert create(send, new("doomed"))[0].error_code == ErrorCode.NONE
    delete(send, version, "doomed")


def test_topics_are_deleted_by_id(send: Send) -> None:
    (made,) = create(send, new("by-id"))
    asked = [DeleteTopicState(topic_id=made.topic_id), DeleteTopicState(topic_id=b"x" * 16)]
    responses = send(DeleteTopicsRequest(topics=asked, timeout_ms=5000), 6).responses
    unknown, deleted = sorted(responses, key=lambda result: result.name or "")
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("by-id", made.topic_id, 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_topic_needs_a_name_or_an_id_and_stands_once(send: Send) -> None:
    (made,) = create(send, new("kept"))
    asked = [
        DeleteTopicState(),
        DeleteTopicState(name="kept", topic_id=made.topic_id),
        DeleteTopicState(name="kept"),
        DeleteTopicState(topic_id=made.topic_id),
    ]
    responses = send(DeleteTopicsRequest(topics=asked, timeout_ms=5000), 6).responses
    assert [(r.name, r.error_code) for r in responses] == [
        (None, ErrorCode.INVALID_REQUEST),
        ("kept", ErrorCode.INVALID_REQUEST),
        ("kept", ErrorCode.INVALID_REQUEST),
    ]
    assert [r.error_code for r in delete(send, 5, "kept", "kept")] == [ErrorCode.INVALID_REQUEST]
    assert delete(send, 5, "kept", timeout_ms=0)[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert seen(send, "kept").error_code == ErrorCode.NONE


def test_deletion_can_be_switched_off(new_broker: NewBroker, connect: Callable[[str], Send]) -> None:
    with new_broker(properties={"delete.topic.enable": "false"}) as broker:
        send = connect(broker.bootstrap_servers)
        create(send, new("kept"))
        assert delete(send, 2, "kept")[0].error_code == ErrorCode.INVALID_REQUEST
        for version in range(3, 7):
            assert delete(send, version, "kept")[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert seen(send, "kept").error_code == ErrorCode.NONE


def enlarge(
    send: Send, *topics: tuple[str, int, list[list[int]] | None], version: int = 3, **arguments: Any
) -> list[tuple[str, int]]:
    asked = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if replicas is None else [CreatePartitionsAssignment(broker_ids=r) for r in replicas],
        )
        for name, count, replicas in topics
    ]
    response = send(CreatePartitionsRequest(topics=asked, **{"timeout_ms": 10_000, **arguments}), version)
    for result in response.results:
        assert (result.error_message is None) or result.error_code != 0
    return [(result.name, result.error_code) for result in response.results]


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_take_the_next_numbers(send: Send, version: int) -> None:
    name = f"growing-{version}"
    create(send, new(name, 2))
    assert enlarge(send, (name, 4, None), version=version) == [(name, 0)]
    assert enlarge(send, (name, 6, [[1], [1]]), version=version) == [(name, 0)]
    assert [p.partition_index for p in seen(send, name).partitions] == [0, 1, 2, 3, 4, 5]
    assert all(p.leader_id == 1 for p in seen(send, name).partitions)


def test_every_topic_has_its_result(send: Send) -> None:
    create(send, new("small"), new("large", 3))
    assert sorted(enlarge(send, ("small", 2, None), ("large", 3, None), ("none", 2, None))) == [
        ("large", ErrorCode.INVALID_PARTITIONS),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("small", 0),
    ]
    assert enlarge(send, ("large", 4, None), ("large", 5, None)) == [("large", ErrorCode.INVALID_REQUEST)]
    assert enlarge(send) == []


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (5, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (100_000, None, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_partitions_that_are_refused(
    send: Send, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    create(send, new("fixed", 3))
    assert enlarge(send, ("fixed", count, assignments)) == [("fixed", code)]
    assert enlarge(send, ("fixed", 4, None), validate_only=True) == [("fixed", 0)]
    assert enlarge(send, ("fixed", 4, None), timeout_ms=0) == [("fixed", ErrorCode.REQUEST_TIMED_OUT)]
    assert len(seen(send, "fixed").partitions) == 3


def pages(send: Send, topics: list[str], limit: int, cursor: Cursor | None = None) -> list[tuple[str, int]]:
    """Every (topic, partition), collected page by page."""
    found = []
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics], response_partition_limit=limit, cursor=cursor
        )
        response = send(request, 0)
        page = [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]
        assert len(page) <= max(limit, 1)
        found += page
        cursor = response.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 2000, 0, -1])
def test_pages_of_partitions_miss_and_repeat_nothing(send: Send, limit: int) -> None:
    create(send, new("page-b", 3), new("page-a", 2), new("page-c", 1))
    everything = [("page-a", 0), ("page-a", 1), ("page-b", 0), ("page-b", 1), ("page-b", 2), ("page-c", 0)]
    assert pages(send, ["page-c", "page-b", "page-a"], limit) == everything
    cursor = Cursor(topic_name="page-b", partition_index=1)
    assert pages(send, ["page-c", "page-b", "page-a"], limit, cursor) == everything[3:]
    assert set(everything) <= set(pages(send, [], limit))


def test_described_partitions_hold_what_metadata_holds(send: Send) -> None:
    create(send, new("described", 2))
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=n) for n in ("described", "none", "a b")])
    bad_name, topic, missing = send(request, 0).topics
    assert (bad_name.error_code, missing.error_code) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert (topic.topic_id, topic.is_internal) == (seen(send, "described").topic_id, False)
    assert topic.topic_authorized_operations == 0b1101_1111_1000
    for number, partition in enumerate(topic.partitions):
        assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (number, 1, 0)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize("cursor", [Cursor(topic_name="elsewhere"), Cursor(topic_name="cursor", partition_index=-1)])
def test_cursors_that_make_no_sense(send: Send, cursor: Cursor) -> None:
    create(send, new("cursor"))
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="cursor")], cursor=cursor)
    (topic,) = send(request, 0).topics
    assert (topic.name, topic.error_code) == ("cursor", ErrorCode.INVALID_REQUEST)
