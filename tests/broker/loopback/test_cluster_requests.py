"""What each broker of a cluster does for its clients, and what it leaves to the controller; what brokers ask the controller."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.metadata.delta import ClusterDelta
from ottla.replication.broker_client import PeerUnavailableError
from ottla.replication.controller_channel import ControllerChannel
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_partition import AlterPartitionRequest
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

from ...helpers.memory_cluster import SECONDS, MemoryCluster, running, until_true

ALL = (1, 2, 3)
TOPIC_RESOURCE = 2


def others(cluster: MemoryCluster) -> list[int]:
    """The brokers that are not the controller."""
    return [broker_id for broker_id in cluster.servers if broker_id != cluster.controller_id()]


async def known_everywhere(cluster: MemoryCluster, topic: str) -> None:
    for broker_id in cluster.servers:
        metadata = cluster.services(broker_id).metadata
        with trio.fail_after(SECONDS):
            await metadata.wait_until(lambda metadata=metadata: topic in metadata.topics)


async def test_any_broker_describes_what_a_topic_was_made_with(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1], retention_ms="77")
        await known_everywhere(cluster, "topic")
        wanted = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name="topic", configuration_keys=["retention.ms"]
        )
        for broker_id in ALL:
            answer = await cluster.ask(broker_id, DescribeConfigsRequest(resources=[wanted]), 4)
            assert [entry.value for entry in answer.results[0].configs] == ["77"]


# What only the controller does


async def test_what_only_the_controller_does_is_refused_elsewhere(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1], [2])
        await known_everywhere(cluster, "topic")
        refused = ErrorCode.NOT_CONTROLLER
        for broker_id in others(cluster):

            async def ask(request: Any, version: int, broker_id: int = broker_id) -> Any:
                return await cluster.ask(broker_id, request, version)

            new = CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)])
            assert codes((await ask(new, 7)).topics) == [refused]
            gone = DeleteTopicsRequest(topic_names=["topic"])
            assert codes((await ask(gone, 5)).responses) == [refused]
            more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="topic", count=5)])
            assert codes((await ask(more, 3)).results) == [refused]
            moved = ReassignableTopic(name="topic", partitions=[ReassignablePartition(replicas=[2])])
            assert (await ask(AlterPartitionReassignmentsRequest(topics=[moved]), 0)).error_code == refused
            assert (await ask(ListPartitionReassignmentsRequest(), 0)).error_code == refused
            assert (await ask(AlterPartitionRequest(broker_id=1), 3)).error_code == refused
            assert (await ask(ControlledShutdownRequest(broker_id=1), 3)).error_code == refused
            assert (await ask(AllocateProducerIdsRequest(broker_id=1), 0)).error_code == refused
        assert [len(topic.partitions) for topic in (await cluster.metadata(1)).topics] == [2]


async def test_a_topic_whose_deletion_waits_for_a_broker_does_not_exist(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1, 2, 3])
        await cluster.stop(others(cluster)[0])
        request = DeleteTopicsRequest(topic_names=["topic"], timeout_ms=100)
        controller = cluster.controller_id()
        await cluster.ask(controller, request, 5)
        metadata = cluster.services(controller).metadata
        await metadata.wait_until(lambda: "topic" not in metadata.topics)
        (answer,) = (await cluster.ask(controller, request, 5)).responses
        assert (answer.name, answer.error_code) == ("topic", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def codes(results: Iterable[Any]) -> list[int]:
    return [result.error_code for result in results]


# What any broker does


async def test_each_broker_tells_of_the_whole_cluster(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        for broker_id in ALL:
            answer = await cluster.ask(broker_id, DescribeClusterRequest(), 1)
            assert answer.controller_id == cluster.controller_id()
            assert [(each.broker_id, each.host) for each in answer.brokers] == [(i, f"broker{i}") for i in ALL]
        away = others(cluster)[0]
        await cluster.create("replicated", [away, cluster.controller_id()])
        await cluster.stop(away)
        for broker_id in cluster.servers:
            await until_true(lambda broker_id=broker_id: _misses(cluster, broker_id, away))


async def _misses(cluster: MemoryCluster, broker_id: int, away: int) -> bool:
    answer = await cluster.metadata(broker_id, "replicated")
    described = (await cluster.ask(broker_id, DescribeClusterRequest(), 1)).brokers
    (partition,) = answer.topics[0].partitions
    return (
        partition.offline_replicas == [away]
        and away not in [node.node_id for node in answer.brokers]
        and away not in [node.broker_id for node in described]
    )


async def test_each_broker_changes_the_configs_of_topics(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1], [2], [3])
        await known_everywhere(cluster, "topic")
        for asked, most in zip(ALL, (300, 200, 100), strict=True):
            config = AlterableConfig(name="max.message.bytes", value=str(most))
            resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="topic", configs=[config])
            answer = await cluster.ask(asked, IncrementalAlterConfigsRequest(resources=[resource]), 1)
            assert codes(answer.responses) == [ErrorCode.NONE]
            for leader in ALL:
                await until_true(
                    lambda leader=leader, most=most: _refuses(cluster, leader, most)  # type: ignore[misc]
                )


async def _refuses(cluster: MemoryCluster, leader: int, size: int) -> bool:
    return await cluster.produce(leader, "topic", leader - 1, bytes(size)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_each_broker_makes_a_topic_that_is_named_for_the_first_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(*ALL, num_partitions="6") as cluster:
        for broker_id in ALL:
            name = f"by-{broker_id}"
            answer = await cluster.metadata(broker_id, name, create=True)
            (topic,) = answer.topics
            assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 6)
            assert sorted(partition.leader_id for partition in topic.partitions) == [1, 1, 2, 2, 3, 3]
            await known_everywhere(cluster, name)
            assert len({(await cluster.metadata(i, name)).topics[0].topic_id for i in ALL}) == 1
            for partition in topic.partitions:
                number = partition.partition_index
                assert await cluster.produce(partition.leader_id, name, number, b"first") == ErrorCode.NONE


async def test_a_topic_that_two_brokers_make_at_once_is_one(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        answers: dict[int, Any] = {}

        async def name_it(broker_id: int) -> None:
            answers[broker_id] = (await cluster.metadata(broker_id, "named", create=True)).topics[0]

        async with trio.open_nursery() as nursery:
            for broker_id in ALL:
                nursery.start_soon(name_it, broker_id)
        assert {answer.error_code for answer in answers.values()} <= {
            ErrorCode.NONE,
            ErrorCode.LEADER_NOT_AVAILABLE,
        }
        await known_everywhere(cluster, "named")
        assert len({(await cluster.metadata(i, "named")).topics[0].topic_id for i in ALL}) == 1


@pytest.mark.parametrize("name", ["no/name", "two..dots" * 40])
async def test_a_name_that_cannot_be_is_made_nowhere(name: str, autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        for broker_id in (1, 2):
            answer = await cluster.metadata(broker_id, name, create=True)
            assert codes(answer.topics) == [ErrorCode.INVALID_TOPIC_EXCEPTION]


# Coordinators


async def coordinator(cluster: MemoryCluster, broker_id: int, key: str = "key", key_type: int = 0) -> tuple[int, int]:
    """The error code and the broker that one names as the coordinator."""
    answer = await cluster.ask(broker_id, FindCoordinatorRequest(key=key, key_type=key_type), 3)
    return answer.error_code, answer.node_id


@pytest.mark.parametrize("key_type", [0, 1])
async def test_each_broker_makes_the_coordinators_topic_and_all_name_the_same_coordinator(
    key_type: int, autojump_clock: trio.testing.MockClock
) -> None:
    factors = {
        "offsets_topic_replication_factor": "1",
        "transaction_state_log_replication_factor": "1",
    }
    async with running(*ALL, **factors) as cluster:
        first = others(cluster)[0]
        code, named = await coordinator(cluster, first, key_type=key_type)
        assert code == ErrorCode.NONE
        for broker_id in ALL:
            await until_true(
                lambda broker_id=broker_id: _names(cluster, broker_id, key_type, named)  # type: ignore[misc]
            )


async def _names(cluster: MemoryCluster, broker_id: int, key_type: int, named: int) -> bool:
    return await coordinator(cluster, broker_id, key_type=key_type) == (ErrorCode.NONE, named)


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
async def test_there_is_no_coordinator_before_there_are_brokers_enough(
    key_type: int, topic: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Made too early, its topic would have one replica for ever."""
    async with running(1) as cluster:
        for broker_id in ALL:
            if broker_id not in cluster.servers:
                await cluster.start(broker_id)
            for asked in cluster.servers:
                code, _ = await coordinator(cluster, asked, key_type=key_type)
                if broker_id < 3:
                    assert code == ErrorCode.COORDINATOR_NOT_AVAILABLE
                    assert cluster.services(asked).metadata.topic(topic) is None
        await known_everywhere(cluster, topic)
        for partition in (await cluster.metadata(1, topic)).topics[0].partitions:
            assert sorted(partition.replica_nodes) == [1, 2, 3]


async def test_asking_again_and_again_for_a_coordinator_does_not_flood_the_log(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ottla")
    async with running(1) as cluster:
        for _ in range(150):  # a consumer asks about once a second
            assert await coordinator(cluster, 1) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
            await trio.sleep(1)
        await coordinator(cluster, 1, key_type=1)
    said = [record.getMessage() for record in caplog.records if "could not be created" in record.getMessage()]
    why = "INVALID_REPLICATION_FACTOR: Replication factor: 3 larger than available brokers: 1."
    assert said.pop(0) == f"__consumer_offsets could not be created: {why}"
    said.remove(f"__transaction_state could not be created: {why}")
    assert 2 <= len(said) <= 3
    count = re.compile(rf"__consumer_offsets could not be created for \d+ more requests: {re.escape(why)}")
    assert all(count.fullmatch(line) for line in said)
    assert sum(int(line.split()[6]) for line in said) == 149


# What brokers ask the controller


def channel(cluster: MemoryCluster, broker_id: int) -> ControllerChannel:
    services = cluster.services(broker_id)
    peers = cluster.assembly(broker_id).peers
    assert peers is not None
    return ControllerChannel(broker_id, services.metadata, peers, services.cluster, "test")


def block_for(cluster: MemoryCluster, broker_id: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(
        broker_id=broker_id, broker_epoch=cluster.services(broker_id).cluster.broker_epoch
    )


async def test_the_controller_answers_itself_and_others(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        starts = set()
        for broker_id in ALL:
            answer = await channel(cluster, broker_id).send(block_for(cluster, broker_id), timeout=5)
            assert (answer.error_code, answer.producer_id_len) == (ErrorCode.NONE, 1000)
            starts.add(answer.producer_id_start)
        assert len(starts) == 3


async def test_a_request_finds_the_next_controller(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        first = cluster.controller_id()
        asking = others(cluster)
        await cluster.stop(first)  # of which they may not have heard
        for broker_id in asking:
            answer = await channel(cluster, broker_id).send(block_for(cluster, broker_id), timeout=30)
            assert answer.error_code == ErrorCode.NONE


async def test_a_request_to_a_cluster_without_a_controller_ends(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        asking = others(cluster)[0]
        way, request = channel(cluster, asking), block_for(cluster, asking)
        cluster.services(asking).metadata.publish(ClusterDelta(controller_id=-1))
        began = trio.current_time()
        with pytest.raises(PeerUnavailableError, match="no controller has answered within 3 s"):
            await way.send(request, timeout=3)
        assert trio.current_time() - began == pytest.approx(3)
        with pytest.raises(PeerUnavailableError, match="no controller was found"):
            await way.send(request, timeout=60, patience=1)
        assert trio.current_time() - began < 5


async def test_producer_ids_are_unique_in_the_cluster(autojump_clock: trio.testing.MockClock) -> None:
    """More than a block of each broker, and through a change of the controller."""
    async with running(*ALL) as cluster:
        given: list[int] = []

        async def take(broker_id: int, count: int) -> None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            taken = 0
            while taken < count:
                answer = await cluster.ask(broker_id, request, 4)
                if answer.error_code == ErrorCode.NONE:
                    given.append(answer.producer_id)
                    taken += 1
                else:
                    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                    await trio.sleep(0.1)

        async with trio.open_nursery() as nursery:
            for broker_id in ALL:
                nursery.start_soon(take, broker_id, 1100)
        await cluster.stop(cluster.controller_id())
        async with trio.open_nursery() as nursery:
            for broker_id in cluster.servers:
                nursery.start_soon(take, broker_id, 1100)
        assert len(set(given)) == len(given) == 5500


async def test_the_next_producer_ids_are_there_before_the_last_are_given(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        ids = cluster.services(2).cluster.producer_ids
        await trio.sleep(1)  # of the mock clock, for the block that is asked for at the start
        first = await ids.next_producer_id()
        for _ in range(950):
            await ids.next_producer_id()
        await trio.sleep(1)
        await cluster.stop(1)
        taken = [await ids.next_producer_id() for _ in range(1049)]
        assert len({first, *taken}) == 1050
