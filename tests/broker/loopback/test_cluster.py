"""Three brokers are one cluster: the controller tells the others over the network, and another one takes its place."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer, StartError
from ottla.wire.messages.api_versions import ApiVersionsRequest

from ...helpers.memory_cluster import MemoryCluster, running, until

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


async def test_what_only_brokers_ask_is_named_to_clients_too(autojump_clock: trio.testing.MockClock) -> None:
    """As Kafka 3.9 has it in ZooKeeper mode: an older controller looks there."""
    async with running(1) as cluster:
        answer = await cluster.ask(1, ApiVersionsRequest(), 0)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        assert [ranges[key] for key in (4, 5, 6)] == [(0, 7), (0, 4), (0, 8)]
