"""In a cluster an action is done by the broker that has to do it, whichever broker's console it was asked of."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import KafkaError
from ottla.console.actions import Action
from ottla.console.asking import Leader
from ottla.console.group_actions import DeleteGroup, ResetOffsets
from ottla.console.own_broker import OwnBroker
from ottla.console.topic_actions import AddPartitions, CreateTopic, DeleteRecords, DeleteTopic
from ottla.console.visitor import Visitor, visited_by
from ottla.handlers.connection_context import ConnectionContext
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.sync_group import SyncGroupRequest

from ..memory_cluster import MemoryCluster, running

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
                    await kafka.ask(ProduceRequest(), Leader("nothing", 0))
            with pytest.raises(AssertionError, match="is not sent to other brokers"):
                await do(CreateTopic(OwnBroker(cluster.servers[1]), server), name="t", partitions="2", replicas="1")
                led = {leader: number for number, leader in (await known(cluster, 1, "t", 2)).items()}
                await OwnBroker(cluster.servers[1]).ask(SyncGroupRequest(), Leader("t", led[2]))
