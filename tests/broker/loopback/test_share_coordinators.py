"""Share coordinators in a cluster of KRaft: found, asked by every broker, and moved with the leadership."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.features import SHARE_VERSION
from ottla.controller.quorum.supported_features import SUPPORTED
from ottla.handlers.services import Services
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.types import VersionRange
from ottla.share_coordinator.settings import TOPIC
from ottla.share_coordinator.state import SharePartitionKey, StateBatch
from ottla.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

from ..helpers.controller_world import ControllerWorld, until

BOTH = "broker,controller"
SMALL = {"share_coordinator_state_topic_num_partitions": "3"}
READ = (StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1))


@pytest.fixture(autouse=True)
def supported(monkeypatch: pytest.MonkeyPatch) -> None:
    """New clusters have share groups."""
    monkeypatch.setitem(SUPPORTED, SHARE_VERSION, VersionRange(0, 1))  # type: ignore[arg-type]


@asynccontextmanager
async def cluster(*node_ids: int) -> AsyncIterator[ControllerWorld]:
    """Nodes that run, with a topic t of 6 partitions."""
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, dict.fromkeys(node_ids, BOTH))
        world.format()
        await start(world, *node_ids)
        await world.active()
        await world.create(node_ids[0], "t", replicas=len(node_ids), partitions=6)
        for node_id in node_ids:
            await until(lambda node_id=node_id: "t" in world.services(node_id).metadata.image.topics)
        yield world
        nursery.cancel_scope.cancel()


async def start(world: ControllerWorld, *node_ids: int) -> None:
    replicas = str(len(world.roles))
    await world.start(*node_ids, **SMALL, share_coordinator_state_topic_replication_factor=replicas)


def keys(world: ControllerWorld, group: str = "g", topic: str = "t") -> list[SharePartitionKey]:
    """The share partitions of the topic."""
    image = next(world.services(each).metadata.image for each in world.lives)
    return [SharePartitionKey(group, image.topics[topic].topic_id, number) for number in range(6)]


def coordinator(world: ControllerWorld, at: int, key: SharePartitionKey) -> int:
    """The node that coordinates a share partition, as another one knows it; -1 where there is none."""
    services = world.services(at)
    state = services.metadata.partition(TOPIC, services.share_coordinator.partition_for(key.coordinator_key()))
    return -1 if state is None else state.leader


async def test_every_broker_reaches_every_coordinator(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        async with trio.open_nursery() as nursery:
            for number, key in enumerate(keys(world)):
                at = world.services(1 + number % 3)
                nursery.start_soon(
                    at.share_state.initialize, key, 4, 0
                )  # the first ones make the topic, at three brokers
        assert {coordinator(world, 1, key) for key in keys(world)} == {1, 2, 3}
        topic = world.services(1).metadata.image.topics[TOPIC]
        assert [len(partition.replicas) for partition in topic.partitions.values()] == [3, 3, 3]
        for number, key in enumerate(keys(world)):
            at, other = world.services(1 + number % 3), world.services(1 + (number + 1) % 3)
            assert (await at.share_state.read(key, 7)).state_epoch == 4
            await at.share_state.write(key, 4, 7, 0, 5, READ)
            assert (await other.share_state.read(key, -1)).batches == READ
            assert await other.share_state.summary(key, -1) == (4, 7, 0, 5)
            began = trio.current_time()
            with pytest.raises(KafkaError, match="FENCED_LEADER_EPOCH"):
                await other.share_state.read(key, 6)
            assert trio.current_time() == began, "it is not asked for again"
            await other.share_state.delete(key)
            assert await at.share_state.summary(key, -1) == (0, 0, -1, -1)


async def test_share_partitions_of_a_group_share_requests(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        services = world.services(1)
        states = [key for group in ("g", "h") for key in keys(world, group)]
        async with trio.open_nursery() as nursery:
            for key in states:
                nursery.start_soon(services.share_state.initialize, key, 1, 0)
        asked = [writes_to(world.services(each)) for each in (2, 3)]
        async with trio.open_nursery() as nursery:
            for key in states:
                for offset in range(3):  # of one share partition, after one another
                    batch = StateBatch(offset, offset, 2, 1)
                    nursery.start_soon(services.share_state.write, key, 1, 0, 0, offset + 1, [batch])
        for key in states:
            assert (await services.share_state.read(key, -1)).batches == (StateBatch(0, 2, 2, 1),)
        written = sum(3 for key in states if coordinator(world, 1, key) != 1)
        named = [[data.partition for data in request.topics[0].partitions] for request in (*asked[0], *asked[1])]
        assert sum(map(len, named)) == written > len(named)
        assert all(len(set(partitions)) == len(partitions) for partitions in named), "each once in a request"


def writes_to(services: Services) -> list[Any]:
    """The writes that a broker is asked for from now on."""
    requests: list[Any] = []
    served, key = services.served, write_share_group_state.WriteShareGroupStateRequest.api_key
    handler = dataclasses.replace(served.by_key[key])
    handler.load()
    handle = handler.handle
    assert handle is not None

    async def note(call: Any, request: Any) -> Any:
        requests.append(request)
        return await handle(call, request)

    handler.handle = note
    services.served = dataclasses.replace(served, by_key={**served.by_key, key: handler})
    return requests


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_another_broker_goes_on_where_the_coordinator_was(how: str, autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        states = keys(world)
        for key in states:
            await world.services(1).share_state.initialize(key, 1, 0)
            await world.services(1).share_state.write(key, 1, 2, 0, 5, READ)
        gone = coordinator(world, 1, states[0])
        one, other = (each for each in (1, 2, 3) if each != gone)
        await getattr(world, how)(gone)
        for number, key in enumerate(states):
            at = world.services((one, other)[number % 2])
            assert (await at.share_state.read(key, 3)).batches == READ
            await at.share_state.write(key, 1, 3, 5, 0, [StateBatch(5, 9, 2, 1)])
            assert coordinator(world, one, key) in (one, other)
        await start(world, gone)
        for key in states:
            assert (await world.services(gone).share_state.read(key, 3)).batches == (StateBatch(5, 9, 2, 1),)
            assert (await world.services(gone).share_state.summary(key, -1))[1:] == (3, 5, 0)


async def test_a_broker_alone_knows_its_states_again(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        states = keys(world)
        for key in states:
            await world.services(1).share_state.initialize(key, 1, 0)
            await world.services(1).share_state.write(key, 1, 2, 0, 5, READ)
        for end in (world.stop, world.kill):
            await end(1)
            await start(world, 1)
            for key in states:
                assert (await world.services(1).share_state.read(key, 2)).batches == READ


async def test_a_coordinator_that_hears_later_of_the_feature_is_asked_again(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        await world.services(1).share_state.initialize(keys(world)[0], 1, 0)
        other = next(key for key in keys(world) if coordinator(world, 1, key) == 2)
        metadata = world.services(2).metadata
        known = metadata.image.features
        assert known is not None
        metadata.publish(ClusterDelta(features=known._replace(levels={**known.levels, SHARE_VERSION: 0})))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.services(1).share_state.initialize, other, 1, 0)
            await trio.sleep(0.3)
            metadata.publish(ClusterDelta(features=known))
        assert (await world.services(1).share_state.read(other, -1)).state_epoch == 1


async def test_a_stop_ends_the_waits_for_a_coordinator(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        services = world.services(1)
        key = keys(world)[0]
        await services.share_state.initialize(key, 1, 0)
        services.share_coordinator.unload(services.share_coordinator.partition_for(key.coordinator_key()))
        refused = trio.Event()

        async def read() -> None:
            with pytest.raises(KafkaError, match="COORDINATOR"):
                await services.share_state.read(key, -1)
            refused.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.sleep(8)
            await world.stop(1)
            assert refused.is_set()


async def test_the_topic_has_kafkas_configs_and_its_old_records_go(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        services = world.services(1)
        key = keys(world)[0]
        for epoch in range(3):
            await services.share_state.initialize(key, epoch, 0)
        image = services.metadata.image
        assert image.topic_config(TOPIC) == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            "segment.bytes": str(100 << 20),
        }
        number = services.share_coordinator.partition_for(key.coordinator_key())
        earliest, latest = -2, -1

        async def offset(timestamp: int) -> int:
            partition = ListOffsetsPartition(partition_index=number, timestamp=timestamp)
            asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[partition])])
            found: int = (await world.ask(1, asked, 7)).topics[0].partitions[0].offset
            return found

        assert (await offset(earliest), await offset(latest)) == (0, 3)
        await trio.sleep(601)
        assert await offset(latest) - await offset(earliest) == 1, "the newest snapshot"


async def find(world: ControllerWorld, key: str, version: int = 6) -> Any:
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    (found,) = (await world.ask(1, request, version)).coordinators
    return found


async def test_clients_find_a_share_coordinator(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        for key in keys(world):
            found = await find(world, key.coordinator_key())
            assert (found.error_code, found.node_id) == (0, coordinator(world, 1, key))
            services = world.services(found.node_id)
            services.share_coordinator.initialize(key, 1, 0)  # it is there
        text = keys(world)[0].coordinator_key()
        assert (await find(world, text, 5)).error_code == ErrorCode.INVALID_REQUEST
        for wrong in ("g", "g:t:0", text + "x", ":" + text.partition(":")[2]):
            assert (await find(world, wrong)).error_code == ErrorCode.INVALID_REQUEST


async def test_each_share_partition_of_a_request_has_its_own_result(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        topic_id = keys(world)[0].topic_id
        await find(world, keys(world)[0].coordinator_key())

        async def ask(messages: Any, name: str, version: int, *partitions: Any) -> list[Any]:
            topic_data = getattr(messages, f"{name}Data")
            request_class = getattr(messages, f"{name.replace('State', 'ShareGroupState')}Request")
            request = request_class(group_id="g", topics=[topic_data(topic_id=topic_id, partitions=list(partitions))])
            (topic,) = (await world.ask(1, request, version)).results
            assert topic.topic_id == topic_id
            found: list[Any] = topic.partitions
            return found

        begin = initialize_share_group_state.PartitionData
        results = await ask(
            initialize_share_group_state, "InitializeState", 0, *(begin(partition=n, state_epoch=1) for n in (0, 9, 1))
        )
        assert [(each.partition, each.error_code) for each in results] == [(0, 0), (9, 3), (1, 0)]
        change = write_share_group_state.PartitionData
        batch = write_share_group_state.StateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)
        results = await ask(
            write_share_group_state,
            "WriteState",
            1,
            change(partition=0, state_epoch=1, delivery_complete_count=5, state_batches=[batch]),
            change(partition=1, state_epoch=0),
            change(partition=2, state_epoch=1),
        )
        assert [each.error_code for each in results] == [0, ErrorCode.FENCED_STATE_EPOCH, ErrorCode.INVALID_REQUEST]
        assert all(each.error_message for each in results[1:])
        look = read_share_group_state.PartitionData
        (state, unknown) = await ask(
            read_share_group_state, "ReadState", 0, *(look(partition=n, leader_epoch=-1) for n in (0, 2))
        )
        assert (state.state_epoch, state.start_offset, unknown.error_code) == (1, 0, ErrorCode.INVALID_REQUEST)
        (known,) = state.state_batches
        assert (known.first_offset, known.last_offset, known.delivery_state, known.delivery_count) == (0, 4, 2, 1)
        data = read_share_group_state_summary.PartitionData
        for version, count in ((0, -1), (1, 5)):
            (summary,) = await ask(read_share_group_state_summary, "ReadStateSummary", version, data(partition=0))
            assert (summary.state_epoch, summary.start_offset, summary.delivery_complete_count) == (1, 0, count)
        (deleted,) = await ask(
            delete_share_group_state, "DeleteState", 0, delete_share_group_state.PartitionData(partition=0)
        )
        assert deleted.error_code == 0
        (summary,) = await ask(read_share_group_state_summary, "ReadStateSummary", 1, data(partition=0))
        assert summary.start_offset == -1


async def test_nothing_is_served_without_the_feature(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(SUPPORTED, SHARE_VERSION)  # type: ignore[arg-type]
    async with cluster(1) as world:
        key = keys(world)[0]
        assert (await find(world, key.coordinator_key())).error_code == ErrorCode.INVALID_REQUEST
        data = read_share_group_state.ReadStateData(
            topic_id=key.topic_id, partitions=[read_share_group_state.PartitionData()]
        )
        request = read_share_group_state.ReadShareGroupStateRequest(group_id="g", topics=[data])
        (topic,) = (await world.ask(1, request, 0)).results
        assert topic.partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION
