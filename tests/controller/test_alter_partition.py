"""AlterPartition at the controller: the rules one by one, and what leaders, the store and the other brokers get."""

from __future__ import annotations

import pytest
import trio

from ottla.base.errors import ErrorCode
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.alter_partition import IsrChange, judge
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.state.context import PartitionState
from ottla.controller.zookeeper.store.cluster_store import Set
from ottla.metadata.types import LeaderState, ReplicaAssignment
from ottla.tests.controller.helpers.cluster import Cluster, join, running, until
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.update_metadata import UpdateMetadataRequest

EPOCHS = {1: 11, 2: 12, 3: 13}


def asked(
    isr: tuple[int, ...],
    *,
    leader: int = 1,
    leader_epoch: int = 4,
    partition_epoch: int = 7,
    is_recovering: bool = False,
    epochs: dict[int, int] | None = None,
) -> IsrChange:
    return IsrChange(leader, leader_epoch, partition_epoch, isr, is_recovering, epochs or {})


def to(isr: tuple[int, ...]) -> LeaderState:
    return LeaderState(1, 4, isr, 9)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (asked((1, 2, 3)), to((1, 2, 3))),
        (asked((1,)), to((1,))),
        (asked((1,), partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (asked((1,), leader_epoch=5), ErrorCode.NOT_CONTROLLER),
        (asked((1,), leader_epoch=3, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (asked((1,), leader_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (asked((1, 2), leader_epoch=3), ErrorCode.FENCED_LEADER_EPOCH),
        (asked((2, 1), partition_epoch=6), LeaderState(1, 4, (1, 2), 1)),  # asked again: it is so, whatever the epoch
        (asked((1, 3), partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (asked((1, 2), is_recovering=True), ErrorCode.INVALID_REQUEST),
        (asked((1,), is_recovering=True), ErrorCode.INVALID_REQUEST),
        (asked((1, 4)), ErrorCode.INVALID_REQUEST),  # no replica of it
        (asked((2, 3)), ErrorCode.INVALID_REQUEST),  # without the leader
        (asked((1, 1)), ErrorCode.INVALID_REQUEST),
        (asked((2, 1), leader=2), ErrorCode.INVALID_REQUEST),  # not the leader
        (asked((1, 2, 5)), ErrorCode.INELIGIBLE_REPLICA),
        (asked((1, 2, 3), epochs={1: 11, 2: 12, 3: 13}), to((1, 2, 3))),
        (asked((1, 2, 3), epochs={1: -1, 2: -1, 3: -1}), to((1, 2, 3))),
        (asked((1, 2, 3), epochs={1: 11, 2: 12, 3: 10}), ErrorCode.INELIGIBLE_REPLICA),  # restarted since
    ],
)
def test_the_rules(change: IsrChange, expected: LeaderState | ErrorCode) -> None:
    partition = PartitionState(ReplicaAssignment((1, 2, 3, 5)), LeaderState(1, 4, (1, 2), 1), 7)
    assert judge(change, partition, EPOCHS, 9) == expected


def test_the_rules_of_a_leader_that_was_not_in_sync() -> None:
    partition = PartitionState(ReplicaAssignment((1, 2)), LeaderState(1, 4, (1,), 1, is_recovering=True), 7)
    assert judge(asked((1,)), partition, EPOCHS, 9) == to((1,))
    assert judge(asked((1, 2)), partition, EPOCHS, 9) == to((1, 2))
    assert judge(asked((1, 2), is_recovering=True), partition, EPOCHS, 9) == ErrorCode.INVALID_REQUEST
    assert judge(asked((1,), is_recovering=True), partition, EPOCHS, 9) == partition.state


def test_a_partition_that_was_never_led() -> None:
    unborn = PartitionState(ReplicaAssignment((1, 2)))
    assert judge(asked((1, 2)), unborn, EPOCHS, 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def ask(
    cluster: Cluster, broker_id: int, topic: str, isr: list[int], *, leader_epoch: int = 0, partition_epoch: int = 0
) -> AlterPartitionRequest:
    """What a leader of this cluster asks for partition 0 of a topic in version 3."""
    partition = PartitionData(
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=replica) for replica in isr],
        new_isr=isr,
    )
    topic_id = cluster.brokers[1].metadata.topic_id(topic) or b"\x01" * 16
    return AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=cluster.epochs[broker_id],
        topics=[TopicData(topic_name=topic, topic_id=topic_id, partitions=[partition])],
    )


def only(response: AlterPartitionResponse) -> ResponsePartitionData:
    assert response.error_code == ErrorCode.NONE
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


async def test_what_a_leader_asks_for_is_written_and_told() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1, 3]}))
        await until(lambda: all(broker.metadata.topic("t") for broker in cluster.brokers.values()))
        answer = only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2, 3]), 3))
        assert (answer.leader_id, answer.leader_epoch, answer.isr, answer.partition_epoch) == (2, 0, [2, 3], 1)
        stored = await cluster.session.get(znodes.state_path("t", 0))
        assert znodes.decode_state(stored.data) == LeaderState(2, 0, (2, 3), 1)
        for broker in cluster.brokers.values():
            await until(lambda broker=broker: broker.metadata.partition("t", 0).isr == (2, 3))  # type: ignore[misc]
            assert isinstance(broker.requests[-1], UpdateMetadataRequest)
        again = only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2, 3]), 3))
        assert (again.error_code, again.partition_epoch) == (ErrorCode.NONE, 1)
        other = only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2, 1, 3]), 3))
        assert other.error_code == ErrorCode.INVALID_UPDATE_VERSION


async def test_who_may_ask() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        request = ask(cluster, 2, "t", [2])
        request.broker_epoch -= 1
        assert (await cluster.controller.alter_partition(request, 3)).error_code == ErrorCode.STALE_BROKER_EPOCH
        request.broker_epoch, request.broker_id = 1, 5
        assert (await cluster.controller.alter_partition(request, 3)).error_code == ErrorCode.STALE_BROKER_EPOCH
        unknown = only(await cluster.controller.alter_partition(ask(cluster, 2, "none", [2]), 3))
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        unknown = only(await cluster.controller.alter_partition(ask(cluster, 2, "none", [2]), 1))
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        right = ask(cluster, 2, "t", [2])
        await cluster.controller.resign()
        response = await cluster.controller.alter_partition(right, 3)
        assert response.error_code == ErrorCode.NOT_CONTROLLER


async def test_a_replica_that_is_dead_or_shuts_down_is_not_in_sync() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        shutdown = ControlledShutdownRequest(broker_id=3, broker_epoch=cluster.epochs[3])
        assert (await cluster.controller.controlled_shutdown(shutdown)).error_code == ErrorCode.NONE
        answers = [
            only(
                await cluster.controller.alter_partition(
                    ask(cluster, 1, "t", [1, 2, 3], leader_epoch=1, partition_epoch=1), version
                )
            )
            for version in (1, 3)
        ]
        assert [a.error_code for a in answers] == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA]
        await cluster.sessions[3].expire()
        await until(lambda: not cluster.brokers[1].metadata.is_alive(3))
        dead = ask(cluster, 1, "t", [1, 2, 3], leader_epoch=1, partition_epoch=1)
        assert only(await cluster.controller.alter_partition(dead, 3)).error_code == ErrorCode.INELIGIBLE_REPLICA
        await join(cluster.store.session(), 3)
        await until(lambda: cluster.brokers[1].metadata.is_alive(3))
        assert only(await cluster.controller.alter_partition(dead, 3)).isr == [1, 2, 3]


async def test_requests_that_wait_together_are_written_together() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("a", assignment={0: [1, 2]}), NewTopic("b", assignment={0: [2, 1]}))
        tree = await cluster.store.sync()
        before = tree.zxid
        answers: dict[str, ResponsePartitionData] = {}

        async def alter(name: str, request: AlterPartitionRequest) -> None:
            answers[name] = only(await cluster.controller.alter_partition(request, 3))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(alter, "a", ask(cluster, 1, "a", [1]))
            nursery.start_soon(alter, "b", ask(cluster, 2, "b", [2]))
        assert {name: answer.isr for name, answer in answers.items()} == {"a": [1], "b": [2]}
        assert tree.zxid == before + 1
        async with trio.open_nursery() as nursery:  # for one partition the second is judged by what the first leaves
            nursery.start_soon(alter, "first", ask(cluster, 1, "a", [1, 2], partition_epoch=1))
            nursery.start_soon(alter, "second", ask(cluster, 1, "a", [1, 2], partition_epoch=1))
        assert [answers[name].partition_epoch for name in ("first", "second")] == [2, 2]
        assert tree.zxid == before + 2


async def test_a_state_that_another_writer_changed_is_not_overwritten() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        state = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
        await cluster.session.multi([Set(znodes.state_path("t", 0), state)])
        await cluster.session.multi([Set(znodes.state_path("t", 0), state)])
        answer = only(await cluster.controller.alter_partition(ask(cluster, 1, "t", [1]), 3))
        assert (answer.isr, answer.partition_epoch) == ([1], 2)
        both = ask(cluster, 1, "t", [1, 2])
        answer = only(await cluster.controller.alter_partition(both, 3))
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
