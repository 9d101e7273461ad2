"""Moving replicas (KIP-455) at the controller: the rules one by one, what is stored, and what brokers are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.partitions import TopicPartition
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.reassignment import begun_state, check_target, finished_state
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.state.context import PartitionState
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Set
from ottla.metadata.types import LeaderState, ReplicaAssignment
from ottla.tests.controller.helpers.cluster import Cluster, running, until
from ottla.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from ottla.wire.messages.stop_replica import StopReplicaRequest

from .test_alter_partition import ask, only

KEY = TopicPartition("t", 0)
MOVING = ReplicaAssignment((4, 2, 1, 3), (4,), (1, 3))


# --- the rules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "target", "expected"),
    [
        (ReplicaAssignment((1, 2, 3)), [4, 2], MOVING),
        (ReplicaAssignment((1, 2)), [2, 1], ReplicaAssignment((2, 1))),
        (ReplicaAssignment((1,)), [1, 2], ReplicaAssignment((1, 2), (2,))),
        (MOVING, [5, 2], ReplicaAssignment((5, 2, 1, 3), (5,), (1, 3))),
        (MOVING, [2, 1, 3], ReplicaAssignment((2, 1, 3))),
    ],
)
def test_what_a_move_makes_of_replicas(
    before: ReplicaAssignment, target: list[int], expected: ReplicaAssignment
) -> None:
    assert before.moved_to(target) == expected
    assert list(expected.target) == target
    assert set(expected.origin) == set(before.origin)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ([], "Empty replica list specified in partition reassignment."),
        ([4, 4], "Duplicate replica ids in partition reassignment replica list: [4, 4]"),
        ([1, -1], "Invalid broker id in replica list: [1, -1]"),
        (
            [1, 5],
            "Replica assignment has brokers that are not alive. Replica list: [5], live broker list: [1, 2, 3, 4]",
        ),
    ],
)
def test_replicas_that_make_no_sense(target: list[int], why: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_target(ReplicaAssignment((1, 2)), target, {1, 2, 3, 4}, factor_may_change=True)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def test_as_many_replicas_as_before() -> None:
    for assignment in (ReplicaAssignment((1, 2)), MOVING):
        check_target(assignment, [1, 3], {1, 2, 3, 4}, factor_may_change=False)
        with pytest.raises(KafkaError) as caught:
            check_target(assignment, [1, 2, 3], {1, 2, 3, 4}, factor_may_change=False)
        assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("assignment", "leader", "isr", "eligible", "expected"),
    [
        (MOVING, 1, (1, 2, 3), (1, 2, 3, 4), None),  # 4 is not in sync
        (MOVING, 1, (1, 2, 3, 4), (1, 2, 3, 4), (4, (2, 4))),
        (MOVING, 2, (1, 2, 3, 4), (1, 2, 3, 4), (2, (2, 4))),  # leads on
        (MOVING, 1, (1, 2, 3, 4), (1, 2, 3), (2, (2, 4))),
        (MOVING, 1, (1, 2, 3, 4), (1, 3), None),  # none of them could lead
        (ReplicaAssignment((2, 1)), 1, (1, 2), (1, 2), (1, (1, 2))),  # another order only
        (ReplicaAssignment((1, 2)), 4, (4, 2), (1, 2, 4), (2, (2,))),  # cancelled, and the leader is one that goes
        (ReplicaAssignment((1, 2)), 4, (4, 2), (1, 4), (-1, (2,))),
    ],
)
def test_when_a_move_is_over(
    assignment: ReplicaAssignment,
    leader: int,
    isr: tuple[int, ...],
    eligible: tuple[int, ...],
    expected: tuple[int, tuple[int, ...]] | None,
) -> None:
    found = finished_state(PartitionState(assignment, LeaderState(leader, 4, isr, 1)), eligible, 9)
    assert found == (None if expected is None else LeaderState(expected[0], 5, expected[1], 9))


def test_a_replica_that_another_move_does_not_want_leads_no_more() -> None:
    replaced = ReplicaAssignment((5, 2, 1), (5,), (1,))
    state = begun_state(PartitionState(replaced, LeaderState(4, 4, (4, 2, 1), 1)), (1, 2, 4, 5), 9)
    assert state == LeaderState(2, 5, (2, 1), 9)
    offline = LeaderState(-1, 4, (2, 1), 1)
    assert begun_state(PartitionState(replaced, offline), (5,), 9) == LeaderState(-1, 5, (2, 1), 9)
    assert begun_state(PartitionState(replaced), (5,), 9) is None


# --- a move -----------------------------------------------------------------------------------------------------------


async def move(cluster: Cluster, replicas: Sequence[int] | None, key: TopicPartition = KEY) -> ErrorCode:
    (error,) = (await cluster.controller.reassign({key: replicas})).values()
    return ErrorCode.NONE if error is None else error.code


async def stored(cluster: Cluster, topic: str = "t") -> Mapping[int, ReplicaAssignment]:
    return znodes.decode_topic((await cluster.session.get(znodes.topic_path(topic))).data).partitions


async def until_stored(cluster: Cluster, expected: ReplicaAssignment) -> None:
    """Return once the topic's node says where the replicas of partition 0 are. Raises trio.TooSlowError."""
    with trio.fail_after(10):
        while (await stored(cluster))[0] != expected:
            await trio.sleep(0.005)


async def in_sync(cluster: Cluster, isr: list[int]) -> None:
    """The leader asks for other in-sync replicas, and gets them."""
    node = await cluster.session.get(znodes.state_path(*KEY))
    state = znodes.decode_state(node.data)
    request = ask(cluster, state.leader, "t", isr, leader_epoch=state.leader_epoch, partition_epoch=node.stat.version)
    assert only(await cluster.controller.alter_partition(request, 3)).error_code == ErrorCode.NONE


def last_told(cluster: Cluster, broker_id: int) -> LeaderAndIsrPartitionState:
    return cluster.brokers[broker_id].told(LeaderAndIsrRequest)[-1].topic_states[0].partition_states[0]


def deleted_on(cluster: Cluster, broker_id: int) -> list[int]:
    """The leader epochs with which a broker was told to delete its replica."""
    return [
        state.leader_epoch
        for request in cluster.brokers[broker_id].told(StopReplicaRequest)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
    ]


async def test_a_move_from_its_begin_to_its_end(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        assert await move(cluster, [4, 2]) == ErrorCode.NONE
        assert (await stored(cluster))[0] == MOVING
        assert await cluster.state("t") == LeaderState(1, 1, (1, 2, 3), 1)
        assert cluster.controller.reassignments() == [(KEY, MOVING)]
        await until(lambda: 4 in cluster.brokers[1].metadata.partition("t", 0).replicas)
        added, old = last_told(cluster, 4), last_told(cluster, 1)
        assert (added.is_new, added.leader_epoch, added.adding_replicas, added.removing_replicas) == (
            True,
            1,
            [4],
            [1, 3],
        )
        assert (old.is_new, old.leader_epoch, old.replicas) == (False, 1, [4, 2, 1, 3])

        await in_sync(cluster, [1, 2, 3, 4])
        await until_stored(cluster, ReplicaAssignment((4, 2)))
        assert await cluster.state("t") == LeaderState(4, 2, (2, 4), 1)
        await until(lambda: deleted_on(cluster, 1) == deleted_on(cluster, 3) == [2])
        assert deleted_on(cluster, 2) == deleted_on(cluster, 4) == []
        assert last_told(cluster, 4).replicas == last_told(cluster, 2).replicas == [4, 2]
        assert last_told(cluster, 1).leader_epoch == last_told(cluster, 3).leader_epoch == 1
        await until(lambda: cluster.brokers[3].metadata.partition("t", 0).replicas == (4, 2))
        assert cluster.controller.reassignments() == []


async def test_replicas_in_sync_already_are_moved_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        assert await move(cluster, [1, 2, 3]) == ErrorCode.NONE  # as it is
        assert (await cluster.state("t")).leader_epoch == 0
        assert await move(cluster, [3, 1, 2]) == ErrorCode.NONE
        assert ((await stored(cluster))[0], deleted_on(cluster, 2)) == (ReplicaAssignment((3, 1, 2)), [])
        assert await move(cluster, [3, 2]) == ErrorCode.NONE
        assert (await stored(cluster))[0] == ReplicaAssignment((3, 2))
        assert await cluster.state("t") == LeaderState(3, 2, (2, 3), 1)


async def test_a_move_that_is_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        assert await move(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await move(cluster, [4, 2])
        assert await move(cluster, None) == ErrorCode.NONE
        assert (await stored(cluster))[0] == ReplicaAssignment((2, 1, 3))  # their order is not kept
        assert await cluster.state("t") == LeaderState(1, 2, (1, 2, 3), 1)
        await until(lambda: deleted_on(cluster, 4) == [2])
        assert cluster.controller.reassignments() == []


async def test_a_move_that_another_one_replaces(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=5) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        await move(cluster, [4, 2])
        await in_sync(cluster, [1, 3, 4])  # 2 is slow
        assert await move(cluster, [5, 2]) == ErrorCode.NONE
        assert (await stored(cluster))[0] == ReplicaAssignment((5, 2, 1, 3), (5,), (1, 3))
        assert await cluster.state("t") == LeaderState(1, 2, (1, 3), 1)
        await until(lambda: deleted_on(cluster, 4) == [2])
        await in_sync(cluster, [1, 2, 3, 5])
        await until_stored(cluster, ReplicaAssignment((5, 2)))
        await until(lambda: deleted_on(cluster, 1) == deleted_on(cluster, 3) == [3])
        assert deleted_on(cluster, 4) == [2]


async def test_the_last_replica_in_sync_is_not_removed(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2]}))
        await move(cluster, [3, 1])
        await in_sync(cluster, [2, 3])
        await cluster.die(2)
        await cluster.until_state("t", LeaderState(3, 2, (3,), 1))
        assert await move(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await move(cluster, [1, 2]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        await in_sync(cluster, [3, 1])
        await until_stored(cluster, ReplicaAssignment((3, 1)))


async def test_what_moves_is_refused_and_what_waits_for_it(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        assert await move(cluster, [3], TopicPartition("t", 1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await move(cluster, [3], TopicPartition("other", 0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await move(cluster, [3, 2])
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_partitions("t", 2)
        assert caught.value.code == ErrorCode.REASSIGNMENT_IN_PROGRESS
        assert await cluster.controller.delete_topics(["t"]) == {"t": None}
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        assert await move(cluster, [1, 2]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert cluster.brokers[2].metadata.topic("t") is not None
        await in_sync(cluster, [1, 2, 3])
        with trio.fail_after(5):
            while await cluster.session.children(znodes.TOPICS):
                await trio.sleep(0.01)
        assert await cluster.session.children(znodes.DELETE_TOPICS) == []


async def test_a_leader_that_writes_its_in_sync_replicas_itself_ends_a_move_too(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One of a Kafka before 2.7."""
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        await move(cluster, [3, 2])
        state = znodes.encode_state(LeaderState(1, 1, (1, 2, 3), 1))
        notice = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
        path = f"{znodes.ISR_CHANGES}/isr_change_0000000000"
        await cluster.session.multi([Set(znodes.state_path(*KEY), state), Create(path, notice)])
        await until_stored(cluster, ReplicaAssignment((3, 2)))
        assert await cluster.state("t") == LeaderState(3, 2, (2, 3), 1)


async def test_leaders_are_not_balanced_while_replicas_move(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}), NewTopic("u", assignment={0: [1, 2]}))
        await cluster.controller.elect_again(TopicPartition("u", 0), leader=2)
        await move(cluster, [1, 3])
        term = cluster.controller._term
        assert term is not None
        await term.balance_leaders()
        assert (await cluster.state("u")).leader == 2
        await move(cluster, None)
        await term.balance_leaders()
        assert (await cluster.state("u")).leader == 1


# --- brokers and controllers that come and go ---------------------------------------------------------------------------


async def test_a_replica_is_added_when_its_broker_is_back(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        await move(cluster, [1, 3])
        await cluster.die(3)
        cluster.brokers[3].requests.clear()
        await cluster.come_back(3)
        await until(
            lambda: any(
                r.topic_states[0].partition_states[0].is_new for r in cluster.brokers[3].told(LeaderAndIsrRequest)
            )
        )
        await in_sync(cluster, [1, 2, 3])
        await until_stored(cluster, ReplicaAssignment((1, 3)))


async def test_replicas_move_from_a_dead_broker(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await cluster.die(2)
        await cluster.until_state("t", LeaderState(1, 1, (1,), 1))
        await move(cluster, [3, 1])
        await in_sync(cluster, [1, 3])
        await until_stored(cluster, ReplicaAssignment((3, 1)))


async def test_the_next_controller_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        await move(cluster, [3, 4])
        await cluster.session.multi([Delete(znodes.CONTROLLER)])
        await until(lambda: cluster.brokers[3].leader_epochs("t")[0] > 1)
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"2"
        await in_sync(cluster, [1, 2, 3, 4])
        await until_stored(cluster, ReplicaAssignment((3, 4)))
        assert (await cluster.state("t")).isr == (3, 4)
        await until(lambda: bool(deleted_on(cluster, 1) and deleted_on(cluster, 2)))


async def test_the_end_of_a_move_begins_where_the_controller_died_before(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In-sync replicas say that it has come to its end; the topic's node does not yet."""
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        path = znodes.topic_path("t")
        node = await cluster.session.get(path)
        topic = znodes.decode_topic(node.data)
        moving = topic._replace(partitions={0: ReplicaAssignment((2, 1), (), (1,))})
        await cluster.session.multi([Set(path, znodes.encode_topic(moving))])
        await cluster.session.multi([Delete(znodes.CONTROLLER)])
        await until_stored(cluster, ReplicaAssignment((2,)))
        assert (await cluster.state("t"))[:3:2] == (2, (2,))


# --- what old tools leave in the store --------------------------------------------------------------------------------


def wish(**wanted: list[int]) -> bytes:
    return znodes.encode_reassignments((topic, 0, replicas) for topic, replicas in wanted.items())


async def test_moves_that_an_old_tool_asks_for(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=4) as cluster:
        path = znodes.REASSIGN_PARTITIONS
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}), NewTopic("u", assignment={0: [1, 2]}))
        await cluster.session.multi([Create(path, wish(t=[3, 2], u=[4, 2], v=[1]))])
        await until(lambda: len(cluster.controller.reassignments()) == 2)
        with trio.fail_after(5):
            while (await cluster.session.get(path)).data != wish(t=[3, 2], u=[4, 2]):
                await trio.sleep(0.01)
        assert await move(cluster, [3, 1], TopicPartition("u", 0)) == ErrorCode.NONE  # in place of the other
        assert (await cluster.session.get(path)).data == wish(t=[3, 2])
        await in_sync(cluster, [1, 2, 3])
        await until_stored(cluster, ReplicaAssignment((3, 2)))
        await until_gone(cluster, path)
        await cluster.session.multi([Create(path, wish(t=[2]))])
        await until_stored(cluster, ReplicaAssignment((2,)))
        await until_gone(cluster, path)


async def test_moves_that_an_old_tool_asked_the_last_controller_for(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        moves = Create(znodes.REASSIGN_PARTITIONS, wish(t=[3, 2]))
        elections = Create(znodes.PREFERRED_ELECTION, b'{"version":1,"partitions":[{"topic":"t","partition":0}]}')
        await cluster.session.multi([Delete(znodes.CONTROLLER), moves, elections])
        await until(lambda: (term := cluster.controller._term) is not None and term.context.epoch == 2)
        await in_sync(cluster, [1, 2, 3])
        await until_stored(cluster, ReplicaAssignment((3, 2)))
        for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_ELECTION):
            await until_gone(cluster, path)


async def test_elections_that_an_old_tool_asks_for(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        await cluster.controller.elect_again(KEY, leader=2)
        path = znodes.PREFERRED_ELECTION
        await cluster.session.multi([Create(path, b'{"version":1,"partitions":[{"topic":"t","partition":0}]}')])
        await cluster.until_state("t", LeaderState(1, 2, (1, 2), 1))
        await until_gone(cluster, path)


async def until_gone(cluster: Cluster, path: str) -> None:
    """Return once there is no such node. Raises trio.TooSlowError."""
    with trio.fail_after(10):
        while await cluster.session.exists(path) is not None:
            await trio.sleep(0.005)
