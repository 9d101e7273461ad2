"""Who leads after brokers came and went."""

from __future__ import annotations

from ottla.controller.context import LiveBroker, PartitionState
from ottla.controller.election import Election, elect_first, elect_offline, isr_without
from ottla.controller.leadership import next_state
from ottla.controller.znodes import BrokerRegistration, LeaderState, ReplicaAssignment

WRITTEN = 50


def brokers(*ids: int, **newer: int) -> dict[int, LiveBroker]:
    live = {i: LiveBroker(BrokerRegistration(i, ()), 10) for i in ids}
    live.update({int(i[1:]): LiveBroker(BrokerRegistration(int(i[1:]), ()), epoch) for i, epoch in newer.items()})
    return live


def partition(leader: int, isr: tuple[int, ...], epoch: int = 4) -> PartitionState:
    return PartitionState(ReplicaAssignment((1, 2, 3)), LeaderState(leader, epoch, isr, 1), 7, WRITTEN)


def after(state: PartitionState, live: dict[int, LiveBroker], unclean: bool = False) -> LeaderState | None:
    return next_state(state, live, 9, unclean_allowed=unclean)


def test_the_first_leader_is_the_first_live_replica() -> None:
    unborn = PartitionState(ReplicaAssignment((1, 2, 3)))
    assert after(unborn, brokers(2, 3)) == LeaderState(2, 0, (2, 3), 9)
    assert after(unborn, brokers(4)) is None
    assert elect_first([], {1}) is None


def test_nothing_changes_while_all_are_there() -> None:
    assert after(partition(1, (1, 2, 3)), brokers(1, 2, 3)) is None


def test_a_dead_follower_leaves_the_isr() -> None:
    assert after(partition(1, (1, 2, 3)), brokers(1, 3)) == LeaderState(1, 5, (1, 3), 9)


def test_a_dead_leader_is_followed_by_the_first_in_sync_replica() -> None:
    assert after(partition(1, (3, 1, 2)), brokers(2, 3)) == LeaderState(2, 5, (3, 2), 9)


def test_a_replica_out_of_sync_leads_only_where_that_is_allowed() -> None:
    assert after(partition(1, (1,)), brokers(2, 3)) == LeaderState(-1, 5, (1,), 9)
    assert after(partition(1, (1,)), brokers(2, 3), unclean=True) == LeaderState(2, 5, (2,), 9)
    assert elect_offline([1, 2], [1], {2}, unclean_allowed=True) == Election(2, (2,), unclean=True)


def test_a_partition_without_leader_is_not_written_again_and_again() -> None:
    waiting = partition(-1, (1,))
    assert after(waiting, brokers(2, 3)) is None
    assert after(waiting, brokers(2, 3, b1=90)) == LeaderState(1, 5, (1,), 9)


def test_a_leader_that_was_away_leads_on_under_a_new_epoch() -> None:
    assert after(partition(1, (1, 2, 3)), brokers(2, 3, b1=90)) == LeaderState(1, 5, (1, 2, 3), 9)
    assert after(partition(2, (1, 2)), brokers(1, b2=90)) == LeaderState(2, 5, (1, 2), 9)


def test_a_follower_that_was_away_changes_nothing() -> None:
    assert after(partition(1, (1, 2, 3)), brokers(1, 3, b2=90)) is None


def test_the_last_in_sync_replica_stays_known() -> None:
    assert isr_without((1, 2), {1}) == (2,)
    assert isr_without((1, 2), {1, 2}) == (2,)
