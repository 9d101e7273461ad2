"""Metadata, topic ids, CreateTopics and CreatePartitions.

Not here: validate_only, invalid counts and configs (tests of the admin clients do them), writable broker configs (they are
described only), Confluent's REST proxy and other tools that want Metadata 2 (its layout is in the framing tests), more than
one replica, filters of ACLs (without an authorizer they are not even looked at).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import NO_V2, batch, produce
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect, describe
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import ZERO_UUID

pytestmark = pytest.mark.client("wire")
NOT_ASKED = -0x80000000


@pytest.mark.capability("Metadata")
def test_cluster(wire: Connection, connections: Callable[[], Connection]) -> None:
    answer = wire.call(MetadataRequest(topics=[]), 9)
    assert answer.controller_id in {broker.node_id for broker in answer.brokers}
    assert answer.cluster_id
    assert connections().call(MetadataRequest(topics=[]), 9).cluster_id == answer.cluster_id


@pytest.mark.capability("Metadata")
def test_empty_and_null_lists(wire: Connection, topic: str) -> None:
    def names(topics: list[MetadataRequestTopic] | None, version: int) -> set[str]:
        return {each.name for each in wire.call(MetadataRequest(topics=topics), version).topics}

    assert topic in names([], 0)
    assert topic in names(None, 1)
    assert names([], 1) == set()
    assert topic in names(None, 12)
    assert names([], 12) == set()


@pytest.mark.capability("Metadata")
def test_authorized_operations_when_not_asked(wire: Connection, topic: str) -> None:
    asked = [MetadataRequestTopic(name=topic)]
    answer = wire.call(MetadataRequest(topics=asked), 9)
    assert answer.cluster_authorized_operations == NOT_ASKED
    assert answer.topics[0].topic_authorized_operations == NOT_ASKED
    request = MetadataRequest(
        topics=asked, include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    answer = wire.call(request, 9)
    assert answer.cluster_authorized_operations != NOT_ASKED
    assert answer.topics[0].topic_authorized_operations != NOT_ASKED


@pytest.mark.capability("Metadata")
def test_unknown_topic(wire: Connection, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("missing")
    for _ in range(2):
        (answer,) = describe(wire, name).topics
        assert (answer.error_code, answer.name, answer.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, [])


@pytest.mark.capability("Metadata")
@pytest.mark.parametrize("name", ["a/b", "with space", "x" * 250, ".."])
@pytest.mark.parametrize("create", [False, True])
def test_invalid_names(wire: Connection, name: str, create: bool) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    (answer,) = wire.call(request, 9).topics
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert name not in {each.name for each in wire.call(MetadataRequest(topics=None), 9).topics}


@pytest.mark.capability("Metadata")
def test_by_topic_id(wire: Connection, topic: str) -> None:
    topic_id = describe(wire, topic).topics[0].topic_id
    assert topic_id != ZERO_UUID
    (answer,) = wire.call(MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id)]), 12).topics
    assert (answer.error_code, answer.name) == (ErrorCode.NONE, topic)
    (answer,) = wire.call(MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"n" * 16)]), 12).topics
    assert (answer.error_code, answer.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, b"n" * 16)


@pytest.mark.capability("topic auto-creation")
def test_metadata_creates(wire: Connection, operator: Operator, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("auto")
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)

    def leader() -> int:
        (answer,) = wire.call(request, 9).topics
        known = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
        assert answer.error_code in known
        return bool(answer.partitions) and answer.partitions[0].leader_id

    assert eventually(leader) > 0
    # A young partition may have no leader for a moment; clients ask again, and the produce after that works.
    with connect(operator.leader(name)) as connection:
        eventually(lambda: produce(connection, name, batch(b"x")).error_code == ErrorCode.NONE)
    wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=20_000), 6)


@pytest.mark.capability("topic ids")
def test_recreated_topic_has_a_new_id(
    wire: Connection, controller: tuple[int, str], fresh_name: Callable[[str], str]
) -> None:
    name, ids = fresh_name("again"), []
    here = [CreatableReplicaAssignment(partition_index=0, broker_ids=[controller[0]])]
    for _ in range(2):
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=here)
        (created,) = wire.call(CreateTopicsRequest(topics=[topic]), 7).topics
        assert created.error_code == ErrorCode.NONE
        ids.append(created.topic_id)
        eventually(lambda: describe(wire, name).topics[0].topic_id == ids[-1])
        eventually(lambda: produce(wire, name, batch(b"x")).base_offset == 0)
        wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=created.topic_id)], timeout_ms=20_000), 6)
        eventually(lambda: describe(wire, name).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert ids[0] != ids[1]
    assert ZERO_UUID not in ids


@pytest.mark.capability("topic ids")
@pytest.mark.one_broker(NO_V2)
def test_unknown_ids_in_fetch_and_produce(leader: Connection, topic: str) -> None:
    known, unknown = describe(leader, topic).topics[0].topic_id, b"u" * 16
    data = [
        TopicProduceData(topic_id=each, partition_data=[PartitionProduceData(records=batch(b"x"))])
        for each in (unknown, known)
    ]
    answers = {
        each.topic_id: each.partition_responses[0]
        for each in leader.call(ProduceRequest(acks=-1, timeout_ms=9000, topic_data=data), 13).responses
    }
    assert answers[unknown].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (answers[known].error_code, answers[known].base_offset) == (ErrorCode.NONE, 0)
    wanted = [
        FetchTopic(topic_id=each, partitions=[FetchPartition(partition_max_bytes=1000)]) for each in (unknown, known)
    ]
    found = {
        each.topic_id: each.partitions[0]
        for each in leader.call(FetchRequest(session_epoch=-1, max_wait_ms=0, min_bytes=0, topics=wanted), 17).responses
    }
    assert found[unknown].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (found[known].error_code, found[known].high_watermark) == (ErrorCode.NONE, 1)


@pytest.mark.capability("CreateTopics, CreatePartitions")
def test_broker_defaults(wire: Connection, fresh_name: Callable[[str], str]) -> None:
    name = fresh_name("defaults")
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    (created,) = wire.call(CreateTopicsRequest(topics=[topic]), 7).topics
    assert (created.error_code, created.name) == (ErrorCode.NONE, name)
    assert created.num_partitions >= 1
    assert created.replication_factor >= 1
    assert {each.name for each in created.configs} >= {"cleanup.policy", "retention.ms"}
    wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=20_000), 6)


@pytest.mark.capability("CreateTopics, CreatePartitions")
def test_one_result_for_each_topic(wire: Connection, topic: str, fresh_name: Callable[[str], str]) -> None:
    new, same = fresh_name("new"), fresh_name("twice")
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (new, topic, same, same)]
    results = {each.name: each.error_code for each in wire.call(CreateTopicsRequest(topics=topics), 5).topics}
    assert results == {
        new: ErrorCode.NONE,
        topic: ErrorCode.TOPIC_ALREADY_EXISTS,
        same: ErrorCode.INVALID_REQUEST,
    }
    wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=new)], timeout_ms=20_000), 6)


@pytest.mark.capability("CreateTopics, CreatePartitions")
def test_assignments(wire: Connection, fresh_name: Callable[[str], str]) -> None:
    broker_id = wire.call(MetadataRequest(topics=[]), 9).brokers[0].node_id

    def create(name: str, assignments: dict[int, list[int]]) -> int:
        replicas = [
            CreatableReplicaAssignment(partition_index=part, broker_ids=ids) for part, ids in assignments.items()
        ]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=replicas)
        return int(wire.call(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code)

    name = fresh_name("assigned")
    assert create(name, {0: [broker_id], 1: [broker_id]}) == ErrorCode.NONE
    eventually(lambda: len(describe(wire, name).topics[0].partitions) == 2)
    assert create(fresh_name("gap"), {0: [broker_id], 2: [broker_id]}) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert create(fresh_name("unplaced"), {0: [12345]}) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    wire.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=20_000), 6)


@pytest.mark.capability("CreateTopics, CreatePartitions")
def test_partitions_grow_contiguously(wire: Connection, topic: str, fresh_name: Callable[[str], str]) -> None:
    missing = fresh_name("missing")
    wanted = [
        CreatePartitionsTopic(name=topic, count=4, assignments=None),
        CreatePartitionsTopic(name=missing, count=4, assignments=None),
    ]
    results = wire.call(CreatePartitionsRequest(topics=wanted, timeout_ms=20_000), 3).results
    assert {each.name: each.error_code for each in results} == {
        topic: ErrorCode.NONE,
        missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    eventually(
        lambda: sorted(part.partition_index for part in describe(wire, topic).topics[0].partitions) == [0, 1, 2, 3]
    )


@pytest.mark.capability("ACLs without an authorizer")
def test_acls(wire: Connection) -> None:
    any_thing = DescribeAclsRequest(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, operation=1, permission_type=1
    )
    assert wire.call(any_thing, 3).error_code == ErrorCode.SECURITY_DISABLED
