"""In a cluster an action is done by the broker that has to do it, whichever broker's console it was asked of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import KafkaError
from ottla.base.partitions import TopicPartition
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.console.actions import Action
from ottla.console.asked_cluster import RemoteKafkaRequests
from ottla.console.group_actions import DeleteGroup, ResetOffsets
from ottla.console.kafka_requests import KafkaRequests, LeaderTarget, To
from ottla.console.own_broker import OwnBroker
from ottla.console.topic_actions import AddPartitions, CreateTopic, DeleteRecords, DeleteTopic
from ottla.console.visitor import Visitor, visited_by
from ottla.handlers.connection_context import ConnectionContext
from ottla.view.remote.cluster_client import ClusterClient
from ottla.view.remote.cluster_view import ClusterView
from ottla.view.remote.topic_requests import cluster_state
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.schema import Message

from ..helpers.memory_cluster import MemoryCluster, running

VISITOR = Visitor(ConnectionContext("CONSOLE", "127.0.0.1:1"), "")


def server() -> str:
    return "broker1:9092"


async def do(action: Action, **given: str) -> str:
    """Look at the plan, and do just that."""
    plan = await action.plan(given)
    assert plan is not None
    return (await action.carry_out({**given, **plan.hidden, "typed": plan.typed or ""})).what


async def known(cluster: MemoryCluster, broker_id: int, topic: str, partitions: int) -> dict[int, int]:
    """The leaders of a topic, once a broker knows so many: what the controller has done reaches others a little later."""
    with trio.fail_after(30):
        while True:
            found = cluster.services(broker_id).metadata.topic(topic)
            leaders = {} if found is None else {number: state.leader for number, state in found.partitions.items()}
            if len(leaders) == partitions and min(leaders.values()) > 0:
                return leaders
            await trio.sleep(0.05)


async def test_by_the_controller_a_leader_or_a_coordinator(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, offsets_topic_replication_factor="1", offsets_topic_num_partitions="4") as cluster:
        with visited_by(VISITOR):
            for asked in (1, 2):
                kafka, topic = OwnBroker(cluster.servers[asked]), f"orders-{asked}"
                await do(CreateTopic(kafka, server), name=topic, partitions="4", replicas="1")
                await known(cluster, asked, topic, 4)
                await do(AddPartitions(kafka, server), topic=topic, count="6")
                leaders = await known(cluster, asked, topic, 6)
                assert set(leaders.values()) == {1, 2}
                for number, leader in leaders.items():
                    assert await cluster.produce(leader, topic, number, b"a", b"b", b"c") == 0
                    await do(DeleteRecords(kafka, server), topic=topic, partition=str(number), offset="2")
                    assert cluster.services(leader).replicas.partition(topic, number).log.log_start_offset == 2
                for group in ("a", "b", "c", "d"):
                    await do(ResetOffsets(kafka, server), id=group, topics=topic, to="latest")
                    found = [cluster.services(each).groups.find(group) for each in (1, 2)]
                    committed = [each.offsets[topic] for each in found if each is not None and topic in each.offsets]
                    assert [{n: c.value.offset for n, c in each.items()} for each in committed] == [
                        dict.fromkeys(leaders, 3)
                    ]
                    await do(DeleteGroup(kafka, server), id=group)
                await do(DeleteTopic(kafka, server), topic=topic)
                with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                    await kafka.ask(ProduceRequest(), LeaderTarget("nothing", 0))


class Counted:
    """A ``KafkaRequests``, and how often it was asked what."""

    def __init__(self, kafka: KafkaRequests) -> None:
        self._kafka = kafka
        self.counts: Counter[type[Message]] = Counter()

    async def ask(self, request: Message, to: To) -> Any:
        self.counts[type(request)] += 1
        return await self._kafka.ask(request, to)

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> Sequence[Sequence[TopicPartition]]:
        return await self._kafka.by_leader(partitions)


class CountingClient(ClusterClient):
    """One that counts what goes to any broker: questions about the cluster, that is."""

    to_any = 0

    async def ask_any(self, request: Message, *, lowest: int = 0, highest: int | None = None) -> Any:
        self.to_any += 1
        return await super().ask_any(request, lowest=lowest, highest=highest)


async def test_offsets_of_many_partitions_are_asked_of_each_leader_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, 2, offsets_topic_replication_factor="1", offsets_topic_num_partitions="4") as cluster:
        await cluster.create("orders", *[(1,), (2,)] * 20)
        await known(cluster, 1, "orders", 40)
        assert await cluster.produce(2, "orders", 39, b"a", b"b") == 0
        client = CountingClient(cluster.network, [("broker1", 9092)])
        await cluster_state(client)
        view = ClusterView(client, server(), SystemClock(), InlineWorkers())
        with visited_by(VISITOR):
            for kafka in (OwnBroker(cluster.servers[1]), RemoteKafkaRequests(client, view)):
                counted = Counted(kafka)
                before = client.to_any
                plan = await ResetOffsets(counted, server).plan({"id": "g", "topics": "orders", "to": "latest"})
                assert plan is not None
                assert len(plan.rows) == 40
                assert [*plan.rows[39]] == [("orders", 39), None, 0, 2, 2]
                assert counted.counts[ListOffsetsRequest] == 4, "the first and the last offsets of two leaders"
                assert client.to_any - before <= 7, "where partitions are is asked for all of them at once"
        client.close()


async def test_a_leader_that_has_moved_is_found(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, offsets_topic_replication_factor="1", offsets_topic_num_partitions="1") as cluster:
        await cluster.create("orders", (1, 2))
        await known(cluster, 1, "orders", 1)
        client = ClusterClient(cluster.network, [("broker1", 9092), ("broker2", 9092)])
        await cluster_state(client)
        kafka = RemoteKafkaRequests(client, ClusterView(client, server(), SystemClock(), InlineWorkers()))
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
            ],
        )
        response = await kafka.ask(request, LeaderTarget("orders", 0))
        assert response.topics[0].partitions[0].error_code == 0
        await cluster.stop(1)
        with trio.fail_after(30):
            while (await known(cluster, 2, "orders", 1))[0] != 2:
                await trio.sleep(0.05)
        await cluster.start(1)
        await known(cluster, 1, "orders", 1)
        response = await kafka.ask(request, LeaderTarget("orders", 0))
        assert response.topics[0].partitions[0].error_code == 0, "broker 2 was asked"
        client.close()
