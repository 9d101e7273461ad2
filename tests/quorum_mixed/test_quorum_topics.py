"""Topics, elections and settings in a cluster of KRaft, changed through brokers of either kind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ottla.compat_tests.raw.requests import list_offset
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import describe
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from ..mixed.helpers.mixed import BOTH, PATIENCE_S
from ..mixed.test_mixed_topics import (
    BROKER,
    TOPIC,
    folders,
    test_a_topic_is_made_enlarged_deleted_and_made_again,
    test_leaders_are_elected,
    test_one_out_of_sync_leads_where_that_is_allowed,
    test_settings_of_a_topic_that_any_broker_changes_hold_at_all,
    test_settings_of_brokers_are_changed_through_any_for_all_and_through_each_for_itself,
    write_and_read,
)
from .helpers.on_quorum import QuorumMixed

__all__ = [
    "test_a_topic_is_made_enlarged_deleted_and_made_again",
    "test_leaders_are_elected",
    "test_one_out_of_sync_leads_where_that_is_allowed",
    "test_settings_of_a_topic_that_any_broker_changes_hold_at_all",
    "test_settings_of_brokers_are_changed_through_any_for_all_and_through_each_for_itself",
]

pytestmark = pytest.mark.slow


def make(mixed: QuorumMixed, through: int, topic: str, partitions: int) -> None:
    """Create a topic at one broker, and wait until all know it."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=3)
    with mixed.connect(through) as connection:
        (result,) = connection.call(CreateTopicsRequest(topics=[new], timeout_ms=30_000), 7).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, partitions, 3)
    wait_partitions(mixed, topic, partitions)


def wait_partitions(mixed: QuorumMixed, topic: str, count: int) -> None:
    eventually(lambda: all(len(mixed.leaders(topic, each)) == count for each in mixed.running()), PATIENCE_S)


def delete(mixed: QuorumMixed, through: int, topic: str) -> None:
    """Delete a topic at one broker."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000)
    with mixed.connect(through) as connection:
        (result,) = connection.call(request, 6).responses
    assert result.error_code == 0, result


def test_what_any_broker_is_asked_for_all_of_them_know(mixed: QuorumMixed, topic: str) -> None:
    for through in mixed.ids:
        name = f"{topic}-{through}"
        make(mixed, through, name, 2)
        added = CreatePartitionsTopic(name=name, count=5, assignments=None)
        more = CreatePartitionsRequest(topics=[added], timeout_ms=30_000)
        with mixed.connect(through) as connection:
            (result,) = connection.call(more, 3).results
        assert result.error_code == 0, result
        wait_partitions(mixed, name, 5)
        told = {tuple(sorted(mixed.leaders(name, each).items())) for each in mixed.ids}
        assert len(told) == 1
        write_and_read(mixed, name, 5)
        delete(mixed, through, name)
        wait_partitions(mixed, name, 0)
        eventually(lambda name=name: not any(folders(mixed, each, name) for each in mixed.ids), PATIENCE_S)


@pytest.mark.parametrize("kind", BOTH)
def test_a_topic_that_was_made_again_while_a_replica_was_away_begins_anew(
    mixed: QuorumMixed, controller: int, kind: str, topic: str
) -> None:
    """A controller of KRaft deletes a topic at once; the broker that comes back finds a log of the topic that is gone."""
    away = mixed.one(kind, but=[controller])
    mixed.create(topic, [away, *(each for each in mixed.ids if each != away)])
    mixed.produce(topic, [b"gone"])
    mixed.cluster.broker(away).stop()
    delete(mixed, controller, topic)
    wait_partitions(mixed, topic, 0)
    order = [*(each for each in mixed.ids if each != away), away]
    mixed.create(topic, order)
    mixed.produce(topic, [b"new"])
    mixed.cluster.start_broker(away)
    mixed.wait_isr(topic, mixed.ids)
    assert mixed.read(topic, 1) == [b"new"]
    mixed.wait_same(topic)


@pytest.mark.parametrize("kind", BOTH)
def test_a_topic_is_made_when_a_client_asks_a_broker_for_it(mixed: QuorumMixed, kind: str, topic: str) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    with mixed.connect(mixed.one(kind)) as connection:
        eventually(lambda: connection.call(request, 12).topics[0].error_code == 0, PATIENCE_S)
    wait_partitions(mixed, topic, 1)
    assert {len(mixed.isr(topic, each)) for each in mixed.ids} == {3}
    write_and_read(mixed, topic, 1)


def test_an_idempotent_producer_makes_the_topic_that_it_writes_to(mixed: QuorumMixed, topic: str) -> None:
    values = [b"%d" % number for number in range(100)]
    mixed.produce(topic, values, **{"enable.idempotence": True})
    assert mixed.read(topic, len(values)) == values


@pytest.mark.parametrize("leading", BOTH)
def test_records_are_deleted_at_a_leader_and_at_its_followers(mixed: QuorumMixed, leading: str, topic: str) -> None:
    leader = mixed.one(leading)
    mixed.create(topic, mixed.replicas_from(leader))
    mixed.produce(topic, [b"%d" % number for number in range(50)])
    partition = DeleteRecordsPartition(partition_index=0, offset=20)
    wanted = [DeleteRecordsTopic(name=topic, partitions=[partition])]
    with mixed.connect(leader) as connection:
        answer = connection.call(DeleteRecordsRequest(topics=wanted, timeout_ms=30_000), 2)
    (result,) = answer.topics[0].partitions
    assert (result.error_code, result.low_watermark) == (0, 20)
    follower = mixed.one(*[kind for kind in BOTH if kind != leading])
    mixed.cluster.broker(leader).stop()
    eventually(lambda: mixed.leaders(topic, follower)[0] not in (leader, -1), PATIENCE_S)
    with mixed.connect(mixed.leaders(topic, follower)[0]) as connection:
        assert list_offset(connection, topic, -2, 5).offset == 20


def test_either_kind_describes_a_topic_and_the_cluster_alike(mixed: QuorumMixed, topic: str) -> None:
    make(mixed, mixed.one("ottla"), topic, 3)
    described = []
    for each in mixed.ids:
        with mixed.connect(each) as connection:
            answer = describe(connection, topic)
        brokers = sorted((broker.node_id, broker.host, broker.port, broker.rack) for broker in answer.brokers)
        partitions = sorted(
            (p.partition_index, p.leader_id, p.leader_epoch, *p.replica_nodes, -1, *sorted(p.isr_nodes))
            for p in answer.topics[0].partitions
        )
        described.append((answer.cluster_id, brokers, bytes(answer.topics[0].topic_id), partitions))
        assert answer.controller_id in mixed.ids
    assert described.count(described[0]) == len(described)


def test_settings_are_described_by_either_kind_with_the_same_names_and_values(mixed: QuorumMixed, topic: str) -> None:
    """Of a topic. Of a broker, Ottla knows those that it has."""
    make(mixed, mixed.one("kafka"), topic, 1)
    told = {kind: configs(mixed, mixed.one(kind), TOPIC, topic) for kind in BOTH}
    known = told["ottla"].keys() & told["kafka"].keys()
    assert len(known) > 20
    assert {name: told["ottla"][name] for name in known} == {name: told["kafka"][name] for name in known}
    for kind in BOTH:
        own = configs(mixed, mixed.one(kind), BROKER, str(mixed.one(kind)))
        assert (own["node.id"], own["broker.heartbeat.interval.ms"]) == (str(mixed.one(kind)), "1000")


WRONG_SETTINGS = (
    (BROKER, "", {"log.cleaner.threads": "some"}),
    (BROKER, "", {"log.dirs": "/elsewhere"}),
    (BROKER, "", {"listeners": "PLAINTEXT://:1"}),
    (BROKER, "9", {"log.cleaner.threads": "2"}),
    (BROKER, "one", {"log.cleaner.threads": "2"}),
    (TOPIC, "no-such-topic", {"retention.ms": "1"}),
    (99, "", {"retention.ms": "1"}),
)


def test_either_kind_refuses_the_same_settings(mixed: QuorumMixed) -> None:
    """Of brokers, which a controller does not check, and of topics."""
    refused = {kind: [refusal(mixed, mixed.one(kind), *each) for each in WRONG_SETTINGS] for kind in BOTH}
    assert refused["ottla"] == refused["kafka"]
    assert all(refused["kafka"])


def refusal(mixed: QuorumMixed, through: int, kind: int, name: str, changes: Mapping[str, str]) -> int:
    """The error of a change of settings at a broker."""
    wanted = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in changes.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=wanted)
    with mixed.connect(through) as connection:
        (answer,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    error: int = answer.error_code
    return error


def configs(mixed: QuorumMixed, broker_id: int, kind: int, name: str) -> dict[str, str | None]:
    """All settings, as a broker tells them."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    with mixed.connect(broker_id) as connection:
        (result,) = connection.call(DescribeConfigsRequest(resources=[resource]), 4).results
    assert result.error_code == 0, result
    return {config.name: config.value for config in result.configs}
