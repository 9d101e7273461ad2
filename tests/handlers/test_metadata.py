"""Metadata: brokers, controller, topics by name and id, auto-creation.

Of the list of what other brokers got wrong, here are: a live controller id, a stable cluster id, version 2 and up, the
meaning of an empty list, auto-creation followed by a leader at once (never -1 for a young partition), invalid names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import ZERO_UUID, uuid_from_text

Send = Callable[..., Any]

VERSIONS = range(14)
NOT_ASKED = -(1 << 31)


def names(*topics: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=topic) for topic in topics]


def ids(*topic_ids: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topic_ids]


def create(send: Send, name: str, partitions: int = 1) -> None:
    response = send(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]), 4
    )
    assert response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def listed(response: MetadataResponse) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_brokers_and_controller(send: Send, broker: ottla.Broker, version: int) -> None:
    response = send(MetadataRequest(topics=[] if version else names("known")), version)
    host, port = broker.bootstrap_servers.split(":")
    assert [(b.node_id, b.host, b.port, b.rack) for b in response.brokers] == [(1, host, int(port), None)]
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id == broker.cluster_id
        assert len(uuid_from_text(response.cluster_id)) == 16
    assert response.error_code == ErrorCode.NONE
    assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic(send: Send, version: int) -> None:
    create(send, "three", 3)
    (topic,) = send(MetadataRequest(topics=names("three")), version).topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("three", 0, False)
    assert [p.partition_index for p in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    assert (topic.topic_id != ZERO_UUID) == (version >= 10)
    assert topic.topic_authorized_operations == NOT_ASKED


def test_an_empty_list_is_all_topics_at_version_0_and_none_later(send: Send) -> None:
    create(send, "known")
    assert ("known", 0) in listed(send(MetadataRequest(topics=[]), 0))
    assert ("known", 0) in listed(send(MetadataRequest(topics=None), 1))
    assert ("known", 0) in listed(send(MetadataRequest(topics=None), 13))
    assert listed(send(MetadataRequest(topics=[]), 1)) == []
    assert listed(send(MetadataRequest(topics=[]), 13)) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_topic_is_made_and_has_its_leader_at_once(send: Send, version: int) -> None:
    (topic,) = send(MetadataRequest(topics=names(f"made-at-{version}")), version).topics
    assert topic.error_code == ErrorCode.NONE
    assert [p.leader_id for p in topic.partitions] == [1]


def test_the_first_produce_after_auto_creation_works(send: Send) -> None:
    (topic,) = send(MetadataRequest(topics=names("written-at-once")), 12).topics
    batch = bytes(build_batch([Record(0, 1, None, b"value", [])]))
    data = TopicProduceData(
        name=topic.name, partition_data=[PartitionProduceData(index=topic.partitions[0].partition_index, records=batch)]
    )
    (answer,) = send(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]), 9).responses
    assert [(p.error_code, p.base_offset) for p in answer.partition_responses] == [(ErrorCode.NONE, 0)]


@pytest.mark.parametrize("version", range(4, 14))
def test_nothing_is_made_when_the_client_forbids_it(send: Send, version: int) -> None:
    request = MetadataRequest(topics=names("unwanted", "un wanted"), allow_auto_topic_creation=False)
    assert listed(send(request, version)) == [
        ("unwanted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("un wanted", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert "unwanted" not in dict(listed(send(MetadataRequest(topics=None), 4)))


def test_names_that_cannot_be_are_not_made(send: Send) -> None:
    create(send, "dotted.name")
    response = send(MetadataRequest(topics=names("a b", "", "x" * 250, "dotted_name")), 9)
    assert [code for _, code in listed(response)] == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 4


def test_a_name_given_twice_is_answered_once(send: Send) -> None:
    create(send, "known")
    assert listed(send(MetadataRequest(topics=names("known", "known")), 9)) == [("known", 0)]


def test_the_offsets_topic_is_made_as_the_coordinator_needs_it(send: Send) -> None:
    (topic,) = send(MetadataRequest(topics=names("__consumer_offsets")), 9).topics
    assert topic.is_internal
    assert len(topic.partitions) == 50


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(send: Send, version: int) -> None:
    create(send, "known")
    (known,) = send(MetadataRequest(topics=names("known")), version).topics
    found, unknown = send(MetadataRequest(topics=ids(known.topic_id, b"x" * 16)), version).topics
    assert sorted(
        [(found.name, found.error_code, found.topic_id), (unknown.name or "", unknown.error_code, unknown.topic_id)]
    ) == [
        ("", ErrorCode.UNKNOWN_TOPIC_ID, b"x" * 16),
        ("known", 0, known.topic_id),
    ]
    assert unknown.name is None


def test_a_recreated_topic_is_not_found_by_its_old_id(send: Send) -> None:
    create(send, "again")
    (old,) = send(MetadataRequest(topics=names("again")), 12).topics
    send(DeleteTopicsRequest(topic_names=["again"], timeout_ms=5000), 5)
    create(send, "again")
    (new,) = send(MetadataRequest(topics=names("again")), 12).topics
    assert new.topic_id != old.topic_id
    (gone,) = send(MetadataRequest(topics=ids(old.topic_id)), 12).topics
    assert (gone.error_code, gone.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, old.topic_id)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_version_12(send: Send, version: int) -> None:
    for topics in (ids(b"x" * 16), ids(ZERO_UUID), [MetadataRequestTopic(name="known", topic_id=b"x" * 16)]):
        (topic,) = send(MetadataRequest(topics=topics), version).topics
        assert topic.error_code == ErrorCode.INVALID_REQUEST


def test_neither_name_nor_id_is_refused(send: Send) -> None:
    response = send(MetadataRequest(topics=ids(ZERO_UUID)), 13)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.topics[0].error_code == ErrorCode.INVALID_REQUEST


def test_authorized_operations_when_asked_for(send: Send) -> None:
    create(send, "known")
    request = MetadataRequest(
        topics=names("known"), include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    response = send(request, 8)
    assert response.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert response.cluster_authorized_operations == 0b1_1111_1010_0000
    request.include_cluster_authorized_operations = False
    assert send(request, 8).cluster_authorized_operations == NOT_ASKED
    request.include_topic_authorized_operations = False
    assert send(request, 8).topics[0].topic_authorized_operations == NOT_ASKED


def test_an_answer_that_was_kept_follows_changes(send: Send) -> None:
    create(send, "growing")
    assert len(send(MetadataRequest(topics=names("growing")), 9).topics[0].partitions) == 1
    send(DeleteTopicsRequest(topic_names=["growing"], timeout_ms=5000), 5)
    request = MetadataRequest(topics=names("growing"), allow_auto_topic_creation=False)
    assert listed(send(request, 9)) == [("growing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    create(send, "growing", 4)
    assert len(send(request, 9).topics[0].partitions) == 4


def test_nothing_is_made_when_the_broker_forbids_it(connect: Callable[[str], Send]) -> None:
    with ottla.Broker(properties={"auto.create.topics.enable": "false"}) as broker:
        send = connect(broker.bootstrap_servers)
        for version in VERSIONS:
            assert listed(send(MetadataRequest(topics=names("t")), version)) == [
                ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            ]


def test_each_listener_has_its_own_addresses(connect: Callable[[str], Send]) -> None:
    properties = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "advertised.listeners": "IN://127.0.0.1:0,OUT://outside.example:1234",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        "broker.rack": "r1",
        "node.id": "7",
        "num.partitions": "5",
    }
    with ottla.Broker(properties=properties) as broker:
        response = connect(broker.bootstrap_servers)(MetadataRequest(topics=names("t")), 12)
    assert [(b.node_id, b.host, b.rack) for b in response.brokers] == [(7, "127.0.0.1", "r1")]
    assert response.controller_id == 7
    assert len(response.topics[0].partitions) == 5


def test_the_cluster_and_its_topics_outlive_a_restart(connect: Callable[[str], Send], tmp_path: Path) -> None:
    with ottla.Broker(data_dir=tmp_path) as broker:
        first = connect(broker.bootstrap_servers)(MetadataRequest(topics=names("t")), 12)
    with ottla.Broker(data_dir=tmp_path) as broker:
        second = connect(broker.bootstrap_servers)(MetadataRequest(topics=None), 12)
    assert second.cluster_id == first.cluster_id
    assert [topic.topic_id for topic in second.topics] == [topic.topic_id for topic in first.topics]
    # Once for the leader that went, and once for the one that came.
    assert second.topics[0].partitions[0].leader_epoch == first.topics[0].partitions[0].leader_epoch + 2
