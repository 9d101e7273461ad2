"""Plans made of what brokers answer, and carried out by them: several brokers in one loop, on disks and a network in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import trio

from ottla.balance.answers import BrokerLogDirs, ReportedPartition, cluster_of, on_disk
from ottla.balance.goals import CHOICE, Goal
from ottla.balance.model import ClusterModel
from ottla.balance.proposal import Proposal, propose
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

from ..helpers.memory_cluster import MemoryCluster, running, until_true

SIZE = 1000
QUIET = {"auto_leader_rebalance_enable": "false", "log_segment_bytes": "1000000"}
GOALS = [goal for goal in CHOICE if goal not in (Goal.NETWORK_IN, Goal.NETWORK_OUT)]


async def disks(cluster: MemoryCluster) -> dict[int, BrokerLogDirs]:
    return {
        broker: on_disk(await cluster.ask(broker, DescribeLogDirsRequest(topics=None), 4)) for broker in cluster.servers
    }


async def look(cluster: MemoryCluster, leaving: Collection[int] = ()) -> ClusterModel:
    """As its brokers tell it."""
    told = await cluster.metadata(1)
    partitions = {
        (topic.name or "", each.partition_index): ReportedPartition(
            tuple(each.replica_nodes), tuple(each.replica_nodes), each.leader_id, each.isr_nodes
        )
        for topic in told.topics
        for each in topic.partitions
    }
    return cluster_of(
        {broker.node_id: broker.rack for broker in told.brokers}, partitions, await disks(cluster), leaving
    )


async def at_controller(cluster: MemoryCluster, request: Any, version: int) -> Any:
    return await cluster.ask((await cluster.metadata(1)).controller_id, request, version)


async def carry_out(cluster: MemoryCluster, found: Proposal) -> None:
    """The steps, each once the one before has ended; then the first replicas lead."""
    assert not found.steps.without_room
    for step in found.steps.steps:
        topics: dict[str, list[ReassignablePartition]] = {}
        for move in step:
            one = ReassignablePartition(partition_index=move.key[1], replicas=list(move.after))
            topics.setdefault(move.key[0], []).append(one)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=parts) for name, parts in topics.items()]
        )
        answer = await at_controller(cluster, request, 0)
        assert not any(each.error_code for topic in answer.responses for each in topic.partitions)

        async def has_ended() -> bool:
            request = ListPartitionReassignmentsRequest(topics=None)
            return not (await at_controller(cluster, request, 0)).topics

        await until_true(has_ended)
    await at_controller(cluster, ElectLeadersRequest(election_type=0, topic_partitions=None), 2)
    wanted = {move.key: move.after for move in found.plan.moves}

    async def is_told() -> bool:
        now = {p.key: p for p in (await look(cluster)).partitions}
        return all(now[key].replicas == after and now[key].leader == after[0] for key, after in wanted.items())

    await until_true(is_told)


async def fill(cluster: MemoryCluster, topic: str, replicas: Sequence[Sequence[int]], records: Sequence[int]) -> None:
    """A topic with so many records of ``SIZE`` in each partition."""
    await cluster.create(topic, *replicas)
    for number, (brokers, count) in enumerate(zip(replicas, records, strict=True)):

        async def leads(broker: int = brokers[0], number: int = number) -> bool:
            return await cluster.produce(broker, topic, number, b"first") == 0

        await until_true(leads)
        assert await cluster.produce(brokers[0], topic, number, *[bytes(SIZE)] * count) == 0


def is_even(loads: Sequence[int]) -> bool:
    mean = sum(loads) / len(loads)
    return all(abs(load - mean) <= 0.1 * mean for load in loads)


async def check_reached(cluster: MemoryCluster, found: Proposal, leaving: Collection[int] = ()) -> Proposal:
    """What brokers say in the end is what was planned, and there is nothing more to do."""
    again = propose(await look(cluster, leaving), GOALS)
    for broker, load in found.plan.after.items():
        now = again.plan.before[broker]
        assert (now.replicas, now.leaders) == (load.replicas, load.leaders)
    assert not again.plan.moves
    return again


async def test_an_empty_broker_gets_its_share(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, 4, **QUIET) as cluster:
        pairs = [[1, 2], [2, 3], [3, 1]]
        await fill(cluster, "t", [pairs[n % 3] for n in range(24)], [20 + 10 * (n % 3) for n in range(24)])
        found = propose(await look(cluster), GOALS)
        assert found.plan.before[4].replicas == 0
        assert all(move.adding in ((4,), ()) for move in found.plan.moves)
        await carry_out(cluster, found)
        again = await check_reached(cluster, found)
        assert is_even([load.bytes for load in again.plan.before.values()])
        assert is_even([load.leaders for load in again.plan.before.values()])
        (moved,) = {move.after[0] for move in found.plan.moves if move.key == ("t", found.plan.moves[0].key[1])}
        assert len(await cluster.values(moved, "t", found.plan.moves[0].key[1])) > 20


async def test_a_broker_is_drained(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3, 4, **QUIET) as cluster:
        await fill(cluster, "t", [[1, 2], [2, 3], [3, 4], [4, 1]] * 4, [20] * 16)
        found = propose(await look(cluster, [3]), GOALS)
        await carry_out(cluster, found)
        again = await check_reached(cluster, found, [3])
        assert again.plan.before[3].replicas == again.plan.before[3].leaders == 0
        assert is_even([again.plan.before[broker].bytes for broker in (1, 2, 4)])
        assert not (await disks(cluster))[3].replicas, "nor is anything left on its disk"


async def test_a_broker_that_is_about_to_stop_gets_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """``ottla cluster drain``; a restart ends it."""
    async with running(1, 2, 3, **QUIET) as cluster:
        await fill(cluster, "t", [[1, 2]] * 12 + [[2, 3], [3, 2]], [20] * 14)
        before = propose(await look(cluster), GOALS)
        assert any(3 in move.adding for move in before.plan.moves)
        await at_controller(cluster, ControlledShutdownRequest(broker_id=3, broker_epoch=-1), 3)

        async def is_drained() -> bool:
            return not any(3 in partition.isr for partition in (await look(cluster)).partitions)

        await until_true(is_drained)
        found = propose(await look(cluster), GOALS)
        assert not [move for move in found.plan.moves if 3 in move.after]
        why = "broker 3 is in sync nowhere: it was drained, or has just started"
        assert found.plan.left == {"t-12": why, "t-13": why}
        await cluster.stop(3)
        await cluster.start(3)

        async def is_back() -> bool:
            return all(3 in each.isr for each in (await look(cluster)).partitions if 3 in each.replicas)

        await until_true(is_back)
        assert any(3 in move.adding for move in propose(await look(cluster), GOALS).plan.moves)


def test_a_broker_whose_first_replicas_are_on_their_way_gets_more() -> None:
    moving = ReportedPartition((1, 3), (1, 3, 2), 1, (1, 2))
    cluster = cluster_of(
        dict.fromkeys((1, 2, 3)), {("t", 0): moving, ("t", 1): ReportedPartition((1, 2), (1, 2), 1, (1, 2))}, {}
    )
    assert [broker.receives for broker in cluster.brokers] == [True, True, True]


async def test_a_disk_that_fills_up_is_relieved(autojump_clock: trio.testing.MockClock) -> None:
    """Broker 1's disk is full to 95 %; the others' have room, of which nothing but capacity asks to make use."""
    async with running(1, 2, 3, **QUIET) as cluster:
        await fill(cluster, "t", [[1, 2]] * 12 + [[2, 3]] * 2, [20] * 14)
        disk = cluster.disk(1)
        disk.capacity = 1 << 40
        disk.capacity = (disk.capacity - disk.free_bytes()) * 100 // 95
        found = propose(await look(cluster), [Goal.CAPACITY])
        assert all("capacity" in move.why and move.adding == (3,) and 1 in move.removing for move in found.plan.moves)
        await carry_out(cluster, found)
        await trio.sleep(61)  # file.delete.delay.ms
        assert found.plan.moves and disk.free_bytes() >= 0.2 * disk.capacity
        assert len(found.plan.moves) <= 3, "and hardly more than it takes"
        assert not propose(await look(cluster), [Goal.CAPACITY]).plan.moves


async def test_racks_of_unequal_size_keep_each_partition_in_both(autojump_clock: trio.testing.MockClock) -> None:
    """Rack b is broker 4 alone, which has a replica of each; three in rack a share the others, of which one is new."""
    async with running(**QUIET) as cluster:
        racks = {1: "a", 2: "a", 3: "a", 4: "b"}
        for broker, rack in racks.items():
            await cluster.start(broker, broker_rack=rack)
        await fill(cluster, "t", [[1, 4], [4, 2]] * 6 + [[1, 2]] * 3, [10] * 15)
        found = propose(await look(cluster), GOALS)
        assert sum("racks" in move.why for move in found.plan.moves) == 3
        await carry_out(cluster, found)
        again = await check_reached(cluster, found)
        now = (await look(cluster)).partitions
        assert all({racks[broker] for broker in partition.replicas} == {"a", "b"} for partition in now)
        assert [again.plan.before[broker].replicas for broker in (1, 2, 3, 4)] == [5, 5, 5, 15]
        assert Goal.REPLICAS in again.plan.missed and Goal.RACKS not in again.plan.missed


async def test_three_thousand_partitions(autojump_clock: trio.testing.MockClock) -> None:
    """A third of them goes to the broker that is new, in one step."""
    async with running(1, 2, 3, **QUIET) as cluster:
        await cluster.create("many", *[[1 + number % 2] for number in range(3_000)])
        found = propose(await look(cluster), GOALS, at_once=1_000)
        assert len(found.plan.moves) == 910 and not found.plan.missed, "within 9 %, and no more"
        await carry_out(cluster, found)
        again = await check_reached(cluster, found)
        assert [load.replicas for load in again.plan.before.values()] == [1045, 1045, 910]
