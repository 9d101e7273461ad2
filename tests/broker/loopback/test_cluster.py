"""Three brokers are one cluster: the controller tells the others over the network, and another one takes its place."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer, StartError
from ottla.tests.replication.told import apply_stop_replica
from ottla.wire.messages.api_versions import ApiVersionsRequest
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

from ...memory_cluster import MemoryCluster, running, until

ALL = (1, 2, 3)


async def leaders_everywhere(cluster: MemoryCluster, topic: str, leaders: list[int]) -> None:
    """Every broker comes to name these leaders of the topic's partitions."""
    for broker_id in cluster.servers:
        metadata = cluster.services(broker_id).metadata
        await until(
            lambda metadata=metadata: (
                (found := metadata.topic(topic)) is not None
                and [state.leader for state in found.partitions.values()] == leaders
            )
        )


async def test_a_topic_is_made_produced_to_and_read_on_each_broker(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("spread", [1], [2], [3])
        await leaders_everywhere(cluster, "spread", [1, 2, 3])
        answers = [await cluster.metadata(broker_id) for broker_id in ALL]
        assert answers[0] == answers[1] == answers[2]
        assert [broker.node_id for broker in answers[0].brokers] == [1, 2, 3]
        assert answers[0].controller_id == cluster.controller_id()
        for number, leader in enumerate(ALL):
            assert await cluster.produce(leader, "spread", number, b"to %d" % leader) == ErrorCode.NONE
            assert await cluster.values(leader, "spread", number) == [b"to %d" % leader]
        assert await cluster.produce(1, "spread", 1, b"astray") != ErrorCode.NONE


async def test_what_is_set_on_a_topic_holds_on_each_broker(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("short", [1], [2], [3], max_message_bytes="100")
        await leaders_everywhere(cluster, "short", [1, 2, 3])
        for number, leader in enumerate(ALL):
            assert await cluster.produce(leader, "short", number, bytes(200)) == ErrorCode.MESSAGE_TOO_LARGE


async def test_brokers_that_start_together_are_one_cluster(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        for ready in [cluster.start_soon(broker_id) for broker_id in ALL]:
            await ready.wait()
        await cluster.create("spread", [3], [2], [1])
        await leaders_everywhere(cluster, "spread", [3, 2, 1])


async def test_another_controller_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("before", [1], [2], [3])
        first = cluster.controller_id()
        others = [broker_id for broker_id in ALL if broker_id != first]
        await cluster.stop(first)
        await until(lambda: cluster.controller_id() in others)
        await leaders_everywhere(cluster, "before", [-1 if broker_id == first else broker_id for broker_id in ALL])
        await cluster.create("after", others[:1], others[1:])
        await leaders_everywhere(cluster, "after", others)
        for number, leader in enumerate(others):
            assert await cluster.produce(leader, "after", number, b"later") == ErrorCode.NONE
            assert await cluster.values(leader, "after", number) == [b"later"]
        await cluster.start(first)
        await leaders_everywhere(cluster, "before", list(ALL))
        assert await cluster.produce(first, "before", first - 1, b"back") == ErrorCode.NONE


async def test_a_broker_that_was_stopped_has_its_records_when_it_is_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(*ALL) as cluster:
        away = next(broker_id for broker_id in ALL if broker_id != cluster.controller_id())
        await cluster.create("kept", [away])
        assert await cluster.produce(away, "kept", 0, b"here") == ErrorCode.NONE
        await cluster.stop(away)
        await leaders_everywhere(cluster, "kept", [-1])
        await cluster.start(away)
        await leaders_everywhere(cluster, "kept", [away])
        assert await cluster.values(away, "kept", 0) == [b"here"]


async def test_a_name_that_no_listener_has_cannot_be_the_brokers_own() -> None:
    server = BrokerServer(load_config({"listeners": "PLAINTEXT://:0", "inter.broker.listener.name": "INSIDE"}))
    with pytest.raises(StartError, match=r"inter\.broker\.listener\.name"):
        await server.serve()


async def test_brokers_reach_one_another_by_the_listener_that_is_theirs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No broker listens at the addresses that the other listener advertises."""
    properties = {
        "listener_security_protocol_map": "OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT",
        "inter_broker_listener_name": "inside",
    }
    async with running(**properties) as cluster:
        for broker_id in ALL:
            listeners = f"OUTSIDE://broker{broker_id}:9093,INSIDE://broker{broker_id}:9092"
            advertised = f"OUTSIDE://outside{broker_id}:9093,INSIDE://broker{broker_id}:9092"
            await cluster.start(broker_id, listeners=listeners, advertised_listeners=advertised)
        await cluster.create("spread", [1], [2], [3])
        await leaders_everywhere(cluster, "spread", [1, 2, 3])


async def test_the_controller_reaches_brokers_by_a_listener_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    properties = {
        "listener_security_protocol_map": "INSIDE:PLAINTEXT,CONTROL:PLAINTEXT",
        "inter_broker_listener_name": "INSIDE",
        "control_plane_listener_name": "control",
    }
    async with running(**properties) as cluster:
        for broker_id in ALL:
            listeners = f"INSIDE://broker{broker_id}:9092,CONTROL://broker{broker_id}:9094"
            await cluster.start(broker_id, listeners=listeners)
        await cluster.create("spread", [1, 2], [2, 3], [3, 1])
        await leaders_everywhere(cluster, "spread", [1, 2, 3])
        controller = cluster.controller_id()
        opened = {broker_id: cluster.servers[broker_id].monitor.opened for broker_id in ALL}
        assert {i: by_name["CONTROL"] for i, by_name in opened.items()} == {i: int(i != controller) for i in ALL}
        assert all(by_name["INSIDE"] for by_name in opened.values())


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
        apply_stop_replica(_without_deleting("topic"), cluster.services(1).replicas, cluster.services(1).metadata)
        assert (await cluster.ask(1, lead(4, "topic", b"", 9), 4)).error_code == 0
        assert await cluster.values(1, "topic", 0) == [b"before"]


def _without_deleting(topic: str) -> StopReplicaRequest:
    request = stop(4, topic)
    request.topic_states[0].partition_states[0].delete_partition = False
    return request


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


async def test_what_only_brokers_ask_is_named_to_clients_too(autojump_clock: trio.testing.MockClock) -> None:
    """As Kafka 3.9 has it in ZooKeeper mode: an older controller looks there."""
    async with running(1) as cluster:
        answer = await cluster.ask(1, ApiVersionsRequest(), 0)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert [ranges[key] for key in (4, 5, 6)] == [(0, 7), (0, 4), (0, 8)]
