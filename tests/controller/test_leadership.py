"""Who leads after brokers came and went: tables of the pure rules."""

from __future__ import annotations

import pytest

from ottla.controller.zookeeper.active.leadership import (
    elected_state,
    failed_over_state,
    shut_down_state,
    state_without,
)
from ottla.controller.zookeeper.state.context import PartitionState
from ottla.metadata.rules.election import Election, elect_first, elect_offline, elect_preferred, isr_without
from ottla.metadata.types import LeaderState, ReplicaAssignment

WRITTEN = 50
EPOCH = 9


def partition(leader: int, isr: tuple[int, ...], *, is_recovering: bool = False) -> PartitionState:
    """With leader epoch 4, written by transaction 50 under controller epoch 1."""
    return PartitionState(ReplicaAssignment((1, 2, 3)), LeaderState(leader, 4, isr, 1, is_recovering), 7, WRITTEN)


def to(leader: int, isr: tuple[int, ...], *, is_recovering: bool = False) -> LeaderState:
    """What is written in its place."""
    return LeaderState(leader, 5, isr, EPOCH, is_recovering)


@pytest.mark.parametrize(
    ("state", "online", "eligible", "unclean", "expected"),
    [
        (partition(1, (1, 2, 3)), {1, 2, 3}, {1, 2, 3}, False, None),
        (partition(1, (3, 1, 2)), {2, 3}, {2, 3}, False, to(2, (3, 2))),  # the first replica in sync
        (partition(1, (3, 1)), {2, 3}, {2, 3}, True, to(3, (3,))),  # unclean only where no replica in sync is alive
        (partition(1, (1,)), {2, 3}, {2, 3}, False, None),
        (partition(1, (1,)), {2, 3}, {2, 3}, True, to(2, (2,), is_recovering=True)),
        (partition(-1, (1, 2)), {1, 2}, {1, 2}, False, to(1, (1, 2))),
        (partition(-1, (2, 3), is_recovering=True), {2}, {2}, False, to(2, (2,), is_recovering=True)),
        (partition(1, (1, 2)), {2, 3}, {3}, False, None),  # 2 is shutting down
        (partition(1, (1, 2, 3)), {2, 3}, {3}, False, to(3, (3,))),
        (partition(1, (1,)), {1, 2}, {2}, True, None),  # 1 is shutting down, and leads as long as it lives
    ],
)
def test_who_leads_in_the_place_of_a_leader_that_is_gone(
    state: PartitionState, online: set[int], eligible: set[int], unclean: bool, expected: LeaderState | None
) -> None:
    assert elected_state(state, online, eligible, EPOCH, unclean_allowed=unclean) == expected


def test_the_first_leader_is_the_first_eligible_replica() -> None:
    unborn = PartitionState(ReplicaAssignment((1, 2, 3)))
    assert elected_state(unborn, {2, 3}, {2, 3}, EPOCH, unclean_allowed=False) == LeaderState(2, 0, (2, 3), EPOCH)
    assert elected_state(unborn, {1, 2}, {2}, EPOCH, unclean_allowed=False) == LeaderState(2, 0, (2,), EPOCH)
    assert elected_state(unborn, set(), set(), EPOCH, unclean_allowed=True) is None
    assert elect_first([], {1}) is None


@pytest.mark.parametrize(
    ("state", "gone", "expected"),
    [
        (partition(1, (1, 2, 3)), {4}, None),
        (partition(1, (1, 3)), {2}, None),
        (partition(1, (1, 2, 3)), {3}, to(1, (1, 2))),
        (partition(1, (1, 2, 3)), {1}, to(-1, (2, 3))),
        (partition(1, (1,)), {1}, to(-1, (1,))),  # the last one in sync stays
        (partition(-1, (1,)), {1}, None),
        (partition(1, (1, 2)), {1, 2, 3}, to(-1, (1, 2))),  # each of them has every record
        (partition(1, (1, 2), is_recovering=True), {2}, to(1, (1,), is_recovering=True)),
    ],
)
def test_who_leaves_the_in_sync_replicas(state: PartitionState, gone: set[int], expected: LeaderState | None) -> None:
    assert state.state is not None
    assert state_without(state.state, gone, EPOCH) == expected


@pytest.mark.parametrize(
    ("state", "alive", "away", "expected"),
    [
        (partition(1, (1, 2, 3)), {1, 2, 3}, set(), None),
        (partition(1, (1, 2, 3)), {2, 3}, set(), to(-1, (2, 3))),  # dead, and then another leader: Kafka's two writes
        (partition(1, (1, 2, 3)), {1, 3}, set(), to(1, (1, 3))),
        (partition(1, (1, 2, 3)), set(), set(), to(-1, (1, 2, 3))),
        (partition(1, (1, 2, 3)), {2, 3}, {1}, to(-1, (2, 3))),  # a leader that was away does not lead on
        (partition(1, (1, 2, 3)), {1, 3}, {2}, to(1, (1, 3))),  # nor is a follower in sync that was
        (partition(1, (1, 2)), {1, 2}, {3}, None),
        (partition(1, (1,)), {2, 3}, {1}, to(1, (1,))),  # unless no other replica is in sync
        (partition(1, (1, 2, 3)), set(), {1, 2, 3}, to(1, (1, 2, 3))),  # or all were away
        (partition(1, (1, 2)), set(), {1}, to(1, (1,))),
        (partition(1, (1, 2)), set(), {2}, to(-1, (2,))),
        (partition(-1, (1, 2)), set(), {1, 2}, None),
    ],
)
def test_what_a_new_controller_makes_of_what_it_finds(
    state: PartitionState, alive: set[int], away: set[int], expected: LeaderState | None
) -> None:
    assert state.state is not None
    assert failed_over_state(state.state, alive | away, alive, EPOCH) == expected


@pytest.mark.parametrize(
    ("state", "eligible", "expected"),
    [
        (partition(1, (1, 2, 3)), {2, 3}, to(2, (2, 3))),
        (partition(1, (3, 1)), {2, 3}, to(3, (3,))),
        (partition(1, (1,)), {2, 3}, None),
        (partition(1, (1, 2)), {3}, None),
    ],
)
def test_who_leads_in_the_place_of_a_broker_that_stops(
    state: PartitionState, eligible: set[int], expected: LeaderState | None
) -> None:
    assert shut_down_state(state, eligible, {1}, EPOCH) == expected


def test_elections() -> None:
    assert elect_offline([1, 2], [1], {2}, unclean_allowed=True) == Election(2, (2,), unclean=True)
    assert elect_preferred([1, 2, 3], [2, 1], {1, 2}) == Election(1, (2, 1))
    assert elect_preferred([1, 2, 3], [2, 3], {1, 2, 3}) is None
    assert elect_preferred([1, 2, 3], [1, 2], {2, 3}) is None


def test_the_last_in_sync_replica_stays_known() -> None:
    assert isr_without((1, 2), {1}) == (2,)
    assert isr_without((2,), {1, 2}) == (2,)
