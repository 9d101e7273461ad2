"""Replicas move, moves are cancelled and listed: the cases of Kafka's ReplicationControlManagerTest and
PartitionReassignment…Test."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.elections import elect_leaders
from ottla.controller.quorum.active.reassignments import alter_reassignments, list_reassignments, move_to, reverted
from ottla.metadata.types import PartitionRegistration
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

from .helpers.world import World, directory

NO_MOVE = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
DONE = (ErrorCode.NONE, None)
Wanted = dict[str, dict[int, list[int] | None]]


def alter(world: World, wanted: Wanted, **others: Any) -> dict[tuple[str, int], tuple[ErrorCode, str | None]]:
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in wanted.items()
        ],
        **others,
    )
    response = world.do(lambda context: alter_reassignments(context, request))
    return {
        (topic.name, partition.partition_index): (ErrorCode(partition.error_code), partition.error_message or None)
        for topic in response.responses
        for partition in topic.partitions
    }


def listed(world: World, named: dict[str, list[int]] | None = None) -> dict[tuple[str, int], tuple[list[int], ...]]:
    """By partition: replicas, adding, removing."""
    topics = None
    if named is not None:
        topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=named[name]) for name in named]
    response = world.do(lambda context: list_reassignments(context, ListPartitionReassignmentsRequest(topics=topics)))
    return {
        (topic.name, each.partition_index): (each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.fixture
def world() -> World:
    world = World(has_elr=False)
    world.start(0, 1, 2, 3, 4, 5)
    return world


def test_moves(world: World) -> None:
    world.topic("t", (1, 2, 3), (3, 2, 1))
    world.topic("u", (1, 2, 3))
    assert listed(world) == {}
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition t:2.")
    wanted: Wanted = {"t": {0: [3, 2, 1], 1: [0, 2, 1], 2: [0, 2, 1]}, "v": {0: [1]}}
    assert alter(world, wanted) == {
        ("t", 0): DONE,
        ("t", 1): DONE,
        ("t", 2): unknown,
        ("v", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named v."),
    }
    assert world.partition("t").replicas == (3, 2, 1), "another order is no move"
    moving = {("t", 1): ([0, 2, 1, 3], [0], [3])}
    assert listed(world) == listed(world, {"t": [0, 1, 2]}) == moving
    assert listed(world, {"u": [0, 1, 2], "v": [0]}) == {}

    world.taken()
    wanted = {"t": {0: None, 1: None, 2: None}, "u": {0: None}}
    assert alter(world, wanted) == {("t", 0): NO_MOVE, ("t", 1): DONE, ("t", 2): unknown, ("u", 0): NO_MOVE}
    ((record,),) = world.taken()
    assert record == {
        "is": "PartitionChange",
        "v": 2,
        "partition_id": 1,
        "replicas": [2, 1, 3],
        "directories": [directory(2), directory(1), directory(3)],
        "leader": 3,
        "removing_replicas": [],
        "adding_replicas": [],
    }
    assert listed(world) == {}


def test_moves_that_end_at_once_and_one_that_is_cancelled(world: World) -> None:
    world.topic("t", (1, 2, 3, 4), (0, 1, 2, 3), (4, 3, 1, 0), (2, 3, 4, 1))
    world.topic("u", (4, 3, 2))
    world.heartbeat(3, want_fence=True)
    assert world.partition("t").isr == (1, 2, 4)
    bad = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    wanted: Wanted = {
        "t": {0: [1, 2, 4], 1: [1, 2, 3, 0], 2: [5, 6, 7], 3: []},
        "u": {0: [1, 2, 3, 4, 0]},
    }
    assert alter(world, wanted) == {
        ("t", 0): DONE,
        ("t", 1): DONE,
        ("t", 2): (bad, "The manual partition assignment includes broker 6, but no such broker is registered."),
        ("t", 3): (bad, "The manual partition assignment includes an empty replica list."),
        ("u", 0): DONE,
    }
    first, second, moving = world.partition("t"), world.partition("t", 1), world.partition("u")
    assert (first.replicas, first.leader, first.leader_epoch, first.partition_epoch) == ((1, 2, 4), 1, 1, 2)
    assert (second.replicas, second.isr, second.leader_epoch) == ((1, 2, 3, 0), (0, 1, 2), 0)
    assert (moving.replicas, moving.isr, moving.adding, moving.leader) == ((1, 2, 3, 4, 0), (4, 2), (0, 1), 4)
    assert listed(world) == {("u", 0): ([1, 2, 3, 4, 0], [0, 1], [])}

    world.taken()
    assert alter(world, {"t": {0: None}, "u": {0: None}}) == {("t", 0): NO_MOVE, ("u", 0): DONE}
    ((record,),) = world.taken()
    assert (record["replicas"], record["leader"], record["adding_replicas"]) == ([2, 3, 4], 4, [])
    assert "removing_replicas" not in record and "isr" not in record
    assert (world.partition("u").isr, world.partition("u").leader_epoch) == ((4, 2), 1)


def test_a_move_in_place_of_another_one(world: World) -> None:
    world.topic("t", (0, 1))
    alter(world, {"t": {0: [2, 3]}})
    assert listed(world) == {("t", 0): ([2, 3, 0, 1], [2, 3], [0, 1])}
    assert world.propose("t", 0, 1, 2).error_code == 0
    request = ElectLeadersRequest(election_type=0, topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    world.do(lambda context: elect_leaders(context, request))
    assert world.partition("t").leader == 2
    alter(world, {"t": {0: [4, 5]}})
    assert listed(world) == {("t", 0): ([4, 5, 0, 1, 2, 3], [4, 5], [0, 1, 2, 3])}
    assert world.partition("t").leader == 2, "the leader stays among the replicas"
    response = world.propose("t", 0, 1, 2, 3, 4, 5)
    assert ErrorCode(response.error_code) is ErrorCode.NEW_LEADER_ELECTED
    assert (world.partition("t").leader, world.partition("t").replicas) == (4, (4, 5))
    assert listed(world) == {}


def test_a_move_in_place_of_another_one_removes_only_what_it_says(world: World) -> None:
    world.topic("t", (0, 1, 2))
    alter(world, {"t": {0: [0, 1, 3]}})
    assert listed(world) == {("t", 0): ([0, 1, 3, 2], [3], [2])}
    alter(world, {"t": {0: [0, 1, 2, 3]}})
    assert listed(world) == {("t", 0): ([0, 1, 2, 3], [3], [])}
    assert world.propose("t", 0, 1, 2, 3).error_code == 0
    assert (world.partition("t").replicas, listed(world)) == ((0, 1, 2, 3), {})


def test_a_move_back_to_what_was_there_ends_at_once(world: World) -> None:
    world.topic("t", (0, 1, 2))
    alter(world, {"t": {0: [0, 1, 3]}})
    alter(world, {"t": {0: [0, 1, 2]}})
    assert (world.partition("t").replicas, listed(world)) == ((0, 1, 2), {})


def test_a_move_that_keeps_the_leader_answers_with_the_new_isr(world: World) -> None:
    world.topic("t", (0, 1))
    alter(world, {"t": {0: [0, 2]}})
    response = world.propose("t", 0, 1, 2)
    assert (response.error_code, response.isr, response.leader_id, response.leader_epoch) == (0, [0, 2], 0, 1)


@pytest.mark.parametrize("is_allowed", [False, True], ids=["refused", "allowed"])
def test_a_cancelled_move_may_need_an_unclean_election(world: World, is_allowed: bool) -> None:
    world.topic("t", (0, 1))
    alter(world, {"t": {0: [2, 3]}})
    world.propose("t", 0, 2)
    world.heartbeat(0, want_fence=True)
    assert (world.partition("t").leader, world.partition("t").isr) == (2, (2,))
    if is_allowed:
        world.set_topic_config("t", "unclean.leader.election.enable", "true")
    outcome = alter(world, {"t": {0: None}})[("t", 0)]
    if is_allowed:
        assert outcome == DONE
        partition = world.partition("t")
        assert (partition.replicas, partition.isr, partition.leader, partition.is_recovering) == ((0, 1), (1,), 1, True)
    else:
        assert outcome == (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unable to revert partition assignment for t:0 because it would require an unclean leader election.",
        )
        assert world.partition("t").replicas == (2, 3, 0, 1)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([0, 2], None),
        ([0, 2, 3], "The replication factor is changed from 2 to 3"),
        ([0], "The replication factor is changed from 2 to 1"),
    ],
)
@pytest.mark.parametrize("is_moving", [False, True], ids=["at rest", "moving"])
def test_a_client_can_forbid_another_replication_factor(
    world: World, wanted: list[int], message: str | None, is_moving: bool
) -> None:
    world.topic("t", (0, 1))
    if is_moving:
        alter(world, {"t": {0: [4, 5]}})
    code = ErrorCode.NONE if message is None else ErrorCode.INVALID_REPLICATION_FACTOR
    assert alter(world, {"t": {0: list(wanted)}}, allow_replication_factor_change=False) == {("t", 0): (code, message)}


MOVES = {
    "no change": ((0, 1, 2), (0, 1, 2), ((0, 1, 2), (), ())),
    "another order": ((0, 1, 2), (2, 1, 0), ((2, 1, 0), (), ())),
    "one less": ((0, 1, 2), (0, 1), ((0, 1, 2), (), (2,))),
    "one more": ((0, 1), (0, 1, 2), ((0, 1, 2), (2,), ())),
    "all others": ((0, 1, 2), (5, 4, 3), ((5, 4, 3, 0, 1, 2), (3, 4, 5), (0, 1, 2))),
    "some": ((0, 3, 1), (4, 3), ((4, 3, 0, 1), (4,), (0, 1))),
}


@pytest.mark.parametrize(("current", "wanted", "expected"), MOVES.values(), ids=MOVES)
def test_the_replicas_of_a_move(current: Any, wanted: Any, expected: Any) -> None:
    assert move_to(current, wanted) == expected


def moving(replicas: tuple[int, ...], isr: tuple[int, ...], adding: tuple[int, ...]) -> PartitionRegistration:
    return PartitionRegistration(3, 1, 1, isr, replicas, adding=adding)


REVERTS = {
    "nothing was added": ((3, 2, 1), (3, 2), (), ((3, 2, 1), (3, 2), False)),
    "some were added": ((4, 5, 3, 2, 1), (4, 3, 2), (4, 5), ((3, 2, 1), (3, 2), False)),
    "only the added ones are in sync": ((4, 5, 3, 2, 1), (4, 5), (4, 5), ((3, 2, 1), (3,), True)),
}


@pytest.mark.parametrize(("replicas", "isr", "adding", "expected"), REVERTS.values(), ids=REVERTS)
def test_what_a_cancelled_move_leaves(replicas: Any, isr: Any, adding: Any, expected: Any) -> None:
    assert reverted(moving(replicas, isr, adding)) == expected


def test_a_move_of_which_nothing_is_left_is_not_cancelled() -> None:
    with pytest.raises(KafkaError) as refused:
        reverted(moving((4, 5), (4, 5), (4, 5)))
    assert refused.value.message == "Invalid replica assignment: addingReplicas contains all replicas."
