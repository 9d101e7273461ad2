"""The three requests by which a controller of ZooKeeper mode tells a broker: every version of each, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from ottla.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

from ..helpers.memory_cluster import running


async def test_what_was_meant_for_an_earlier_registration_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        own = cluster.services(1).cluster.broker_epoch
        assert own > 0
        requests = [
            (LeaderAndIsrRequest(controller_id=1, controller_epoch=9), 7),
            (StopReplicaRequest(controller_id=1, controller_epoch=9), 4),
            (UpdateMetadataRequest(controller_id=1, controller_epoch=9), 8),
        ]
        for request, version in requests:
            for epoch, code in ((own - 1, ErrorCode.STALE_BROKER_EPOCH), (own, 0), (own + 1, 0), (-1, 0)):
                request.broker_epoch = epoch
                assert (await cluster.ask(1, request, version)).error_code == code


async def test_an_earlier_controller_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        stale = ErrorCode.STALE_CONTROLLER_EPOCH
        await cluster.create("topic", [1])
        assert (await cluster.ask(1, LeaderAndIsrRequest(controller_epoch=0), 7)).error_code == stale
        assert (await cluster.ask(1, StopReplicaRequest(controller_epoch=0), 4)).error_code == stale
        assert (await cluster.ask(1, UpdateMetadataRequest(controller_epoch=0), 8)).error_code == stale


async def test_the_epoch_of_a_controller_is_one_for_all_requests(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        topic_id = await cluster.create("topic", [1])
        assert (await cluster.ask(1, UpdateMetadataRequest(controller_epoch=10, controller_id=7), 8)).error_code == 0
        answer = await cluster.ask(1, lead(7, "topic", topic_id, 5), 7)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert (await cluster.ask(1, stop(4, "topic"), 4)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert cluster.services(1).replicas.partition("topic", 0).leader_epoch == 0


def lead(version: int, topic: str, topic_id: bytes, epoch: int) -> LeaderAndIsrRequest:
    """Broker 1 is to lead partition 0, in the layout of a version."""
    state = LeaderAndIsrPartitionState(
        topic_name=topic if version < 2 else "",
        leader=1,
        leader_epoch=epoch,
        partition_epoch=epoch,
        isr=[1],
        replicas=[1],
        is_new=True,
    )
    if version < 2:
        return LeaderAndIsrRequest(controller_epoch=9, ungrouped_partition_states=[state])
    topic_state = LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=[state])
    return LeaderAndIsrRequest(controller_epoch=9, topic_states=[topic_state])


def stop(version: int, topic: str) -> StopReplicaRequest:
    """Partition 0 is to be deleted."""
    if version == 0:
        partition = StopReplicaPartitionV0(topic_name=topic)
        return StopReplicaRequest(controller_epoch=9, delete_partitions=True, ungrouped_partitions=[partition])
    if version < 3:
        named = StopReplicaTopicV1(name=topic, partition_indexes=[0])
        return StopReplicaRequest(controller_epoch=9, delete_partitions=True, topics=[named])
    states = [StopReplicaPartitionState(leader_epoch=-2, delete_partition=True)]
    return StopReplicaRequest(
        controller_epoch=9, topic_states=[StopReplicaTopicState(topic_name=topic, partition_states=states)]
    )


@pytest.mark.parametrize("version", range(8))
async def test_every_version_of_leader_and_isr(version: int, autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        topic_id = await cluster.create("topic", [1])
        assert await cluster.produce(1, "topic", 0, b"before") == ErrorCode.NONE
        answer = await cluster.ask(1, lead(version, "topic", topic_id, 5), version)
        assert answer.error_code == 0
        if version < 5:
            (error,) = answer.partition_errors
            assert (error.topic_name, error.partition_index, error.error_code) == ("topic", 0, 0)
        else:
            assert answer.topics[0].topic_id == topic_id
            assert answer.topics[0].partition_errors[0].error_code == 0
        assert cluster.services(1).replicas.partition("topic", 0).leader_epoch == 5
        assert await cluster.values(1, "topic", 0) == [b"before"]


async def test_a_topic_without_an_id_keeps_the_log_that_has_one(autojump_clock: trio.testing.MockClock) -> None:
    """A controller that does not know topic ids (before Kafka 2.8) deletes nothing by not naming one."""
    async with running(1) as cluster:
        await cluster.create("topic", [1])
        assert await cluster.produce(1, "topic", 0, b"before") == ErrorCode.NONE
        await cluster.stop(1)
        await cluster.start(1)
        cluster.services(1).replicas.stop("topic", 0, None, deletes=False)
        assert (await cluster.ask(1, lead(4, "topic", b"", 9), 4)).error_code == 0
        assert await cluster.values(1, "topic", 0) == [b"before"]


@pytest.mark.parametrize("version", range(5))
async def test_every_version_of_stop_replica(version: int, autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("topic", [1])
        answer = await cluster.ask(1, stop(version, "topic"), version)
        (error,) = answer.partition_errors
        assert (answer.error_code, error.topic_name, error.partition_index, error.error_code) == (0, "topic", 0, 0)
        assert cluster.services(1).replicas.offline_count == 0
        assert not list(cluster.services(1).replicas.partitions())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("number", [-1, 4, 77])
async def test_a_security_protocol_that_there_is_not(
    version: int, number: int, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = UpdateMetadataEndpoint(host="seven", port=9092, security_protocol=number)
    broker = UpdateMetadataBroker(id=7, endpoints=[endpoint])
    request = UpdateMetadataRequest(controller_id=7, controller_epoch=9, live_brokers=[broker])
    async with running(1) as cluster:
        assert (await cluster.ask(1, request, version)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_leader_epoch_before_the_first_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        broker = cluster.services(1)
        state = LeaderAndIsrPartitionState(leader=1, leader_epoch=-2, isr=[1], replicas=[1], is_new=True)
        topic = LeaderAndIsrTopicState(topic_name="early", topic_id=b"e" * 16, partition_states=[state])
        request = LeaderAndIsrRequest(
            controller_epoch=9, broker_epoch=broker.cluster.broker_epoch, topic_states=[topic]
        )
        answer = await cluster.ask(1, request, 7)
        (error,) = answer.topics[0].partition_errors
        assert error.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert not list(broker.replicas.partitions())


@pytest.mark.parametrize("version", range(9))
async def test_every_version_of_update_metadata(version: int, autojump_clock: trio.testing.MockClock) -> None:
    state = UpdateMetadataPartitionState(leader=7, topic_name="told" if version < 5 else "", replicas=[7], isr=[7])
    broker = UpdateMetadataBroker(id=7)
    if version == 0:
        broker.v0_host, broker.v0_port = "seven", 9092
    else:
        listener = "PLAINTEXT" if version >= 3 else ""
        broker.endpoints = [UpdateMetadataEndpoint(host="seven", port=9092, listener=listener)]
    request = UpdateMetadataRequest(controller_id=7, controller_epoch=9, live_brokers=[broker])
    topic_id = b"t" * 16 if version >= 7 else bytes(16)
    if version < 5:
        request.ungrouped_partition_states = [state]
    else:
        topic = UpdateMetadataTopicState(topic_name="told", topic_id=topic_id, partition_states=[state])
        request.topic_states = [topic]
    async with running(1) as cluster:
        assert (await cluster.ask(1, request, version)).error_code == 0
        answer = await cluster.metadata(1, "told")
        assert [(node.node_id, node.host, node.port) for node in answer.brokers] == [(7, "seven", 9092)]
        (found,) = answer.topics
        assert (found.topic_id, found.partitions[0].leader_id, answer.controller_id) == (topic_id, 7, 7)


async def test_a_replica_is_not_made_for_an_earlier_registration(autojump_clock: trio.testing.MockClock) -> None:
    """The broker is registered again while it reads what was set on a topic that was then deleted."""
    async with running(1, 2) as cluster:
        broker = cluster.services(2)
        reading, may_go_on = trio.Event(), trio.Event()

        async def load(topics: Any) -> None:
            reading.set()
            await may_go_on.wait()

        broker.cluster.configs.load = load  # type: ignore[method-assign]
        state = LeaderAndIsrPartitionState(leader=2, isr=[2], replicas=[2], is_new=True)
        topic = LeaderAndIsrTopicState(topic_name="gone", topic_id=b"g" * 16, partition_states=[state])
        request = LeaderAndIsrRequest(
            controller_epoch=1, broker_epoch=broker.cluster.broker_epoch, topic_states=[topic]
        )
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await cluster.ask(2, request, 7))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await reading.wait()
            member = broker.cluster._membership
            assert member is not None
            member.broker_epoch += 1
            may_go_on.set()
        assert answers[0].error_code == ErrorCode.STALE_BROKER_EPOCH
        assert list(broker.replicas.partitions()) == []
