"""A broker that stops hands its leaderships over first, and leaves the cluster last."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers
from ottla.broker.controlled_shutdown import run_controlled_shutdown
from ottla.broker.settings import BrokerSettings
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import WatchEvent
from ottla.metadata.delta import ClusterDelta, TopicDelta
from ottla.replication.broker_client import NoAnswerError
from ottla.replication.controller_channel import ControllerChannel
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.peers import Peers
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from ottla.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest

from ...helpers.memory_cluster import MemoryCluster, running, until, until_true
from ...helpers.told import alive, reached_at, registration, tell

T = TypeVar("T")

ALL = (1, 2, 3)
PATIENCE = 2.0
"""More than a stop may take that nothing holds up."""


def leader(cluster: MemoryCluster, asked: int, topic: str = "topic") -> int:
    state = cluster.services(asked).metadata.partition(topic, 0)
    return -1 if state is None else state.leader


@pytest.mark.parametrize("stops", ["the controller", "another broker"])
async def test_another_broker_leads_before_the_first_one_is_gone(
    stops: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(*ALL) as cluster:
        controller = cluster.controller_id()
        one, other = (broker_id for broker_id in ALL if broker_id != controller)
        stopping, heir, witness = (controller, one, other) if stops == "the controller" else (one, other, controller)
        await cluster.create("topic", [stopping, heir])
        metadata = cluster.services(witness).metadata
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.stop, stopping)
            with trio.fail_after(PATIENCE):
                await metadata.wait_until(lambda: leader(cluster, witness) == heir)
            assert metadata.is_alive(stopping)
        await until_true(lambda: alone_in_sync_at(cluster, heir))


async def test_nobody_waits_for_a_broker_that_has_handed_over(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1, 2, 3], [2, 1, 3], min_insync_replicas="2")
        for number in range(2):
            assert await cluster.produce(number + 1, "topic", number, b"before") == ErrorCode.NONE
        await cluster.assembly(1).run_controlled_shutdown()
        await cluster.services(2).metadata.wait_until(lambda: leader(cluster, 2) == 2)
        for number in range(2):
            assert await cluster.produce(2, "topic", number, b"after") == ErrorCode.NONE
        # It is in the cluster, but gets nothing more: what it has not is not waited for.
        assert cluster.services(2).metadata.is_alive(1)
        ends = [cluster.services(1).replicas.partition("topic", number).log.log_end_offset for number in range(2)]
        assert ends == [1, 1]


async def test_a_rolling_restart_has_producers_wait_for_no_timer(autojump_clock: trio.testing.MockClock) -> None:
    """Nor do the elections of preferred leaders. What brokers compute and send takes no time here."""
    async with running(*ALL, auto_leader_rebalance_enable="false") as cluster:
        await cluster.create("topic", [1, 2, 3], [2, 1, 3], min_insync_replicas="2")
        producers = [Producer(cluster, partition) for partition in range(2)]
        async with trio.open_nursery() as nursery:
            for producer in producers:
                nursery.start_soon(producer.run)
            for broker_id in ALL:
                await cluster.stop(broker_id)
                await cluster.start(broker_id)
                await until(functools.partial(all_in_sync, cluster, at=broker_id % len(ALL) + 1))
                await cluster.ask(cluster.controller_id(), ElectLeadersRequest(topic_partitions=None), 2)
                await trio.sleep(0.2)
            nursery.cancel_scope.cancel()
        for producer in producers:
            assert max(later - earlier for earlier, later in itertools.pairwise(producer.acknowledged)) < 0.1


def all_in_sync(cluster: MemoryCluster, at: int) -> bool:
    """Whether a broker tells clients that every replica is in sync."""
    topic = cluster.services(at).metadata.topic("topic")
    return topic is not None and all(len(state.isr) == len(ALL) for state in topic.partitions.values())


class Producer:
    """Writes to a partition of "topic" every 10 ms, with acks=all, and looks for its leader when it is refused."""

    def __init__(self, cluster: MemoryCluster, partition: int) -> None:
        self.acknowledged: list[float] = []
        self._cluster = cluster
        self._partition = partition
        self._leader = partition + 1

    async def run(self) -> None:
        while True:
            try:
                code = await self._cluster.produce(self._leader, "topic", self._partition, b"x")
            except NoAnswerError:
                code = ErrorCode.NETWORK_EXCEPTION
            if code == ErrorCode.NONE:
                self.acknowledged.append(trio.current_time())
            else:
                self._find_leader()
            await trio.sleep(0.01)

    def _find_leader(self) -> None:
        for server in self._cluster.servers.values():
            if server.assembly is not None:
                state = server.assembly.services.metadata.partition("topic", self._partition)
                if state is not None and state.leader in self._cluster.servers:
                    self._leader = state.leader


async def alone_in_sync_at(cluster: MemoryCluster, leader_id: int) -> bool:
    isr = (await cluster.metadata(leader_id, "topic")).topics[0].partitions[0].isr_nodes
    return list(isr) == [leader_id]


class Reluctant:
    """A controller that takes over nothing, the first ``times`` that it is asked."""

    def __init__(self, times: int) -> None:
        self.asked = 0
        self._times = times

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        self.asked += 1
        if self.asked > self._times:
            return ControlledShutdownResponse()
        return ControlledShutdownResponse(remaining_partitions=[RemainingPartition(topic_name="topic")])

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        raise AssertionError("that is not asked for")

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        raise AssertionError("that is not asked for")


class Waiting(Reluctant):
    """A controller that has something to wait for."""

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("replicas", "reluctant", "asked", "seconds"),
    [([1, 2], 0, 1, 0), ([1, 2], 1, 2, 5), ([1, 2], 9, 3, 10), ([1, 3], 9, 1, 0)],
    ids=["at once", "the second time", "never", "to no live broker"],
)
async def test_the_controller_is_asked_three_times_with_5_s_between(
    replicas: list[int], reluctant: int, asked: int, seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    metadata = MetadataCache("cluster")
    topic = TopicDelta("topic", bytes(16), {0: registration(1, replicas=replicas)})
    tell(metadata, topic, brokers=alive(1, 2), controller_id=1)
    controller = Reluctant(reluctant)
    channel = ControllerChannel(1, metadata, Peers(MemoryNetwork(), 1, "PLAINTEXT", metadata), controller, "test")
    began = trio.current_time()
    await run_controlled_shutdown(channel, metadata, 1, 7, BrokerSettings())
    assert (controller.asked, trio.current_time() - began) == (asked, pytest.approx(seconds))


async def test_a_broker_stops_though_nobody_is_the_controller(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        stopping = next(broker_id for broker_id in ALL if broker_id != cluster.controller_id())
        cluster.services(stopping).metadata.publish(ClusterDelta(controller_id=-1))
        began = trio.current_time()
        await cluster.stop(stopping)
        assert trio.current_time() - began < PATIENCE


async def test_a_broker_can_be_told_to_hand_nothing_over(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, controlled_shutdown_enable="false") as cluster:
        controller = cluster.controller_id()
        stopping, other = (broker_id for broker_id in ALL if broker_id != controller)
        await cluster.create("topic", [stopping, other])
        metadata = cluster.services(controller).metadata
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.stop, stopping)
            with trio.fail_after(PATIENCE):
                await metadata.wait_until(lambda: leader(cluster, controller) != stopping)
            assert not metadata.is_alive(stopping)


@pytest.mark.parametrize("at_once", [False, True])
async def test_the_last_brokers_do_not_wait_for_one_another(
    at_once: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(*ALL) as cluster:
        await cluster.create("topic", [1, 2], [2, 3], [3, 1])
        began = trio.current_time()
        if at_once:
            async with trio.open_nursery() as nursery:
                for broker_id in ALL:
                    nursery.start_soon(cluster.stop, broker_id)
        else:
            await cluster.stop(*ALL)
        assert trio.current_time() - began < PATIENCE


async def test_brokers_that_stop_at_once_do_not_take_one_another_for_heirs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each is alone in sync for what the other has a replica of, too."""
    async with running(*ALL) as cluster:
        controller = cluster.controller_id()
        first, second = (broker_id for broker_id in ALL if broker_id != controller)
        await cluster.create("one", [first, second])
        await cluster.create("two", [second, first])
        await alone_in_sync(cluster, controller, {"one": first, "two": second})
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for broker_id in (first, second):
                nursery.start_soon(cluster.stop, broker_id)
        assert trio.current_time() - began < PATIENCE


async def alone_in_sync(cluster: MemoryCluster, controller: int, leaders: dict[str, int]) -> None:
    """Have these leaders of partition 0 alone in sync, and their followers stay out."""
    for topic, leader_id in leaders.items():
        for follower in leaders.values():
            if follower != leader_id:
                replica = cluster.services(follower).replicas.partition(topic, 0)
                cluster.services(follower).replicas.fetchers.unfollow(replica)
        partition = cluster.services(leader_id).replicas.partition(topic, 0)
        data = PartitionData(
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=leader_id)],
        )
        request = AlterPartitionRequest(
            broker_id=leader_id,
            broker_epoch=cluster.services(leader_id).cluster.broker_epoch,
            topics=[TopicData(topic_id=partition.topic_id, partitions=[data])],
        )
        answer = await cluster.services(controller).commands.alter_partition(request, 3)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


async def test_a_stop_is_not_held_up_by_a_controller_that_does_not_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    network, metadata = MemoryNetwork(), MetadataCache("cluster")
    await network.listen("silent", 9092, 1)
    tell(metadata, brokers=[*alive(1), reached_at("silent", 2)], controller_id=2)
    channel = ControllerChannel(1, metadata, Peers(network, 1, "PLAINTEXT", metadata), Reluctant(0), "test")
    began = trio.current_time()
    await run_controlled_shutdown(channel, metadata, 1, 7, BrokerSettings())
    assert trio.current_time() - began < PATIENCE


async def test_a_stop_is_held_up_for_10_s_by_a_controller_that_waits_for_its_store(
    autojump_clock: trio.testing.MockClock,
) -> None:
    metadata = MetadataCache("cluster")
    tell(metadata, brokers=alive(1, 2), controller_id=1)
    channel = ControllerChannel(1, metadata, Peers(MemoryNetwork(), 1, "PLAINTEXT", metadata), Waiting(0), "test")
    began = trio.current_time()
    await run_controlled_shutdown(channel, metadata, 1, 7, BrokerSettings())
    assert trio.current_time() - began == pytest.approx(10)


async def test_a_broker_leaves_the_cluster_once_its_logs_are_marked_clean(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("topic", [2])
        assert await cluster.produce(2, "topic", 0, b"kept") == ErrorCode.NONE
        marked: list[bool] = []

        def left(event: WatchEvent) -> None:
            marked.append(cluster.disk(2).exists("/data/.kafka_cleanshutdown"))

        session = cluster.store.session()
        await session.exists(znodes.broker_path(2), left)
        await cluster.stop(2)
        assert marked == [True]


class SlowWorkers(InlineWorkers):
    """Threads of a machine whose disk takes a minute for everything, once it ``is_slow``."""

    is_slow = False

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        if self.is_slow:
            await trio.sleep(60)
        return await super().run(function, *arguments)


async def test_another_broker_is_the_controller_before_the_logs_of_the_first_are_flushed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as cluster:
        workers = cluster.workers[1] = SlowWorkers()
        await cluster.start(1, 2)
        await cluster.create("topic", [1, 2])
        assert await cluster.produce(1, "topic", 0, b"x") == ErrorCode.NONE
        assert cluster.controller_id() == 1
        workers.is_slow = True
        cluster.servers[1].stop()
        await until(lambda: cluster.services(2).cluster.is_controller)
        assert sorted(await cluster.store.session().children(znodes.BROKER_IDS)) == ["1", "2"], "it has not left yet"
        await cluster.stop(1)


async def test_a_stop_ends_a_start_that_waits(autojump_clock: trio.testing.MockClock) -> None:
    """For a broker that has the same id, until its session ends."""
    async with running(1) as cluster:
        server = cluster.make_server(2, broker_id="1", listeners="PLAINTEXT://broker2:9092")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve)
            await trio.sleep(5)
            assert cluster.disk(2).locks == {"/data/.lock"}
            began = trio.current_time()
            server.stop()
        assert trio.current_time() - began < PATIENCE
        assert cluster.disk(2).locks == set()
