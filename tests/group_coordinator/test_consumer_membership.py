"""Members of consumer groups: the traces that Apache Kafka 4.3.1 answers in the same way, their records, and what fences them."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import expiry
from ottla.group_coordinator.consumer_group_member import MemberState
from ottla.group_coordinator.describe import list_groups

from .helpers.consumers import Consumers

SECOND = 1000
SESSION_MS = 45_000


@pytest.fixture
def beat(machine: Any) -> Consumers:
    """A group that reads a topic of 4 partitions."""
    return Consumers(machine)


def of_two(beat: Consumers) -> None:
    """A has 0 and 1, B has 2 and 3, both at epoch 3."""
    beat("A", 0)
    beat("B", 0)
    beat.machine.advance(SECOND)
    assert beat("B", 2) == (3, None)
    assert beat("A", 2) == (2, {"t": [0, 1]})
    assert beat("A", 2, {"t": [0, 1]}) == (3, None)
    assert beat("B", 3) == (3, {"t": [2, 3]})
    beat.written()


def test_the_first_member_gets_everything_at_once(beat: Consumers) -> None:
    assert beat("A", 0) == (2, {"t": [0, 1, 2, 3]})
    assert beat.written() == "5A 3(2) 7A 6(2) 8A(2)"
    assert beat("A", 2, {"t": [0, 1, 2, 3]}) == (2, None)
    assert beat.written() == ""
    assert beat.group.state_name == "Stable"


def test_a_clock_that_was_set_back_delays_no_target(beat: Consumers) -> None:
    beat("A", 0)
    beat.machine.wall_ms -= 3600 * SECOND
    assert beat("B", 0) == (3, {})
    assert beat.group.target.epoch == 3


def test_a_second_member_gets_partitions_as_the_first_gives_them_up(beat: Consumers) -> None:
    beat("A", 0)
    beat.written()
    assert beat("B", 0) == (2, {}), "the old target holds until a second has gone by"
    assert beat.written() == "5B 3(3) 8B(2)"
    beat.machine.advance(SECOND)
    assert beat("B", 2) == (3, None)
    assert beat.written() == "7A 7B 6(3) 8B(3)"
    assert beat("A", 2) == (2, {"t": [0, 1]})
    assert beat.written() == "8A(2)"
    assert beat("A", 2) == beat("A", 2, {"t": [0, 1, 2, 3]}) == (2, None), "it has not given them up"
    assert beat("A", 2, {"t": [0, 1, 2, 3]}, ["t"], rebalance_timeout=60_000) == (2, {"t": [0, 1]}), (
        "not sure of the last response"
    )
    assert beat.group.state_name == "Reconciling"
    assert beat("A", 2, {"t": [0, 1]}) == (3, None)
    assert beat.written() == "8A(3)"
    assert beat("B", 3) == (3, {"t": [2, 3]})
    assert beat.written() == "8B(3)"
    assert beat.group.state_name == "Stable"


def test_a_client_that_missed_a_response_goes_on_and_one_that_is_ahead_is_fenced(beat: Consumers) -> None:
    of_two(beat)
    assert beat("A", 2, {"t": [0, 1]}) == (3, None)
    for epoch, owned in ((2, {"t": [0, 1, 2, 3]}), (2, None), (4, None), (1, {})):
        assert beat.refused("A", epoch, owned) is ErrorCode.FENCED_MEMBER_EPOCH
    assert beat("A", 0) == (3, {"t": [0, 1]}), "it joins again, and keeps what it has"
    assert beat.refused("C", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat.written() == ""


def test_the_partitions_of_a_member_that_leaves_go_to_the_others(beat: Consumers) -> None:
    of_two(beat)
    assert beat("B", -1) == (-1, None)
    assert beat.written() == "t8B t7B t5B 3(4)"
    assert beat("A", 3) == (3, None), "the last target is too young"
    beat.machine.advance(SECOND)
    assert beat("A", 3) == (4, {"t": [0, 1, 2, 3]})
    assert beat.refused("B", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat("A", -1) == (-1, None)
    assert beat.group.state_name == "Empty"
    beat.machine.advance(SECOND)
    assert beat("A", 0) == (6, {"t": [0, 1, 2, 3]})


def test_other_topics_come_once_the_old_ones_are_given_up(beat: Consumers) -> None:
    of_two(beat)
    beat("B", -1)
    beat.machine.advance(SECOND)
    beat("A", 3)
    beat.topic("other", 1)
    beat.written()
    assert beat("A", 4, None, ["other"]) == (4, {})
    assert beat.written() == "5A 3(5) 8A(4)"
    beat.machine.advance(SECOND)
    assert beat("A", 4) == (4, None)
    assert beat("A", 4, {}) == (5, {"other": [0]})


def test_a_member_that_is_not_heard_is_removed(beat: Consumers) -> None:
    of_two(beat)
    beat.machine.advance(SESSION_MS - 1)
    assert beat("A", 3) == (3, None)
    beat.machine.advance(1)
    assert beat.written() == "t8B t7B t5B 3(4)"
    assert beat.refused("B", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    beat.machine.advance(SESSION_MS - 1)
    assert beat.group.is_empty


def test_a_member_that_does_not_give_up_its_partitions_is_removed(beat: Consumers) -> None:
    beat("A", 0, rebalance_timeout=2 * SECOND)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    beat.machine.advance(2 * SECOND - 1)
    assert beat("A", 2) == (2, None)
    beat.machine.advance(1)
    assert beat.refused("A", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat("B", 3) == (4, {"t": [0, 1, 2, 3]})


def test_giving_them_up_in_time_is_enough(beat: Consumers) -> None:
    beat("A", 0, rebalance_timeout=2 * SECOND)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    assert beat("A", 2, {"t": [0, 1]}) == (3, None)
    beat.machine.advance(10 * SECOND)
    assert beat("A", 3) == (3, None)


def test_a_static_member_comes_back_to_its_partitions(beat: Consumers) -> None:
    assert beat("A", 0, instance="i1") == (2, {"t": [0, 1, 2, 3]})
    assert beat.refused("A2", 0, instance="i1") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert beat.refused("A2", 2, instance="i1") is ErrorCode.FENCED_INSTANCE_ID
    assert beat.refused("A2", 2, instance="i9") is ErrorCode.UNKNOWN_MEMBER_ID
    beat.written()
    assert beat("A", -2, instance="i1") == (-2, None)
    assert beat.written() == "8A(-2)"
    assert beat.refused("A", 2, instance="i1") is ErrorCode.FENCED_MEMBER_EPOCH
    beat("B", 0)
    beat.machine.advance(SECOND)
    assert beat("B", 2) == (3, None)
    beat.written()
    assert beat("A2", 0, instance="i1") == (3, {"t": [0, 1]})
    assert beat.written() == "t8A t7A t5A 5A2 7A2 8A2(0) 8A2(3)", "no new epoch of the group"
    assert beat("B", 3) == (3, {"t": [2, 3]})
    assert beat.refused("A", 2, instance="i1") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_left_with_partitions_to_give_up_keeps_its_place(beat: Consumers) -> None:
    beat("A", 0, instance="i1", rebalance_timeout=2 * SECOND)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2, instance="i1")
    beat("A", -2, instance="i1")
    beat.machine.advance(2 * SECOND)
    assert beat("A2", 0, instance="i1") == (3, {"t": [0, 1]})
    assert beat("B", 3) == (3, {"t": [2, 3]}), "nobody reads what A had to give up"


def test_a_static_member_that_stays_away_loses_its_place(beat: Consumers) -> None:
    beat("A", 0, instance="i1")
    beat("A", -2, instance="i1")
    beat.machine.advance(SESSION_MS)
    assert beat.group.is_empty
    assert beat("A2", 0, instance="i1") == (4, {"t": [0, 1, 2, 3]})


def test_a_topic_that_is_made_enlarged_or_deleted_makes_another_target(beat: Consumers) -> None:
    assert beat("A", 0, names=["t", "later"]) == (2, {"t": [0, 1, 2, 3]})
    beat.machine.advance(SECOND)
    beat.topic("unrelated", 1)
    assert beat("A", 2) == (2, None)
    beat.topic("later", 1)
    assert beat("A", 2) == (3, {"later": [0], "t": [0, 1, 2, 3]})
    beat.machine.advance(SECOND)
    beat.topic("t", 5)
    assert beat("A", 3) == (4, {"later": [0], "t": [0, 1, 2, 3, 4]})
    beat.machine.advance(SECOND)
    beat.topic("t", None)
    epoch, assigned = beat("A", 4)
    assert (epoch, assigned) == (4, {"later": [0]})
    assert beat("A", 4, {"later": [0]}) == (5, None)


def test_another_coordinator_goes_on_where_the_last_one_was(beat: Consumers) -> None:
    beat("A", 0, rebalance_timeout=5 * SECOND)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    before = beat.group
    beat.machine.restart()
    assert beat.group == before
    beat.written()
    assert beat("B", 3) == (3, None)
    assert beat.written() == "8B(3)", "the step that it had not been told of"
    beat.machine.advance(5 * SECOND - 1)
    assert beat("A", 2, {"t": [0, 1]}) == (3, None), "it has all of its rebalance timeout once more"
    assert beat("B", 3) == (3, {"t": [2, 3]})


def test_a_topic_that_changed_while_the_coordinator_was_away_is_seen(beat: Consumers) -> None:
    beat("A", 0)
    beat.machine.advance(SECOND)
    beat.topic("t", 6)
    beat.machine.restart()
    assert beat("A", 2) == (3, {"t": [0, 1, 2, 3, 4, 5]})


def test_nothing_has_changed_when_the_log_refuses(beat: Consumers) -> None:
    beat("A", 0)
    before = beat.group
    beat.machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert beat.refused("B", 0) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert beat.group is before
    assert beat("B", 0) == (2, {})


def test_a_removal_that_cannot_be_written_is_tried_again(beat: Consumers) -> None:
    beat("A", 0)
    beat.machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    beat.machine.advance(SESSION_MS)
    assert not beat.group.is_empty
    beat.machine.advance(500)
    assert beat.group.is_empty


def test_a_full_group_takes_no_more_members(make_machine: Any) -> None:
    beat = Consumers(make_machine({"max_size": 1}))
    beat("A", 0)
    assert beat.refused("B", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert beat("A", 2) == (2, None)
    beat("A", -1)
    beat.machine.advance(SECOND)
    assert beat("B", 0) == (4, {"t": [0, 1, 2, 3]})


def test_members_that_read_nothing_are_in_the_group(beat: Consumers) -> None:
    assert beat("A", 0, names=[]) == (1, {})
    assert beat.written() == "5A 8A(1)"
    assert beat.group.state_name == "Stable"


def test_the_assignor_that_most_members_ask_for_is_used(beat: Consumers) -> None:
    beat.topic("u", 3)
    beat("A", 0, names=["u"], server_assignor="range")
    assert beat.group.preferred_assignor == "range"
    assert beat.refused("B", 0, server_assignor="cooperative-sticky") is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_an_empty_classic_group_gives_way_and_keeps_its_offsets(beat: Consumers) -> None:
    machine = beat.machine
    assert machine.commit(7) == ErrorCode.NONE
    assert beat("A", 0) == (2, {"t": [0, 1, 2, 3]})
    assert beat.written().split()[1:] == ["t2", "5A", "3(2)", "7A", "6(2)", "8A(2)"]
    assert machine.fetch().committed_offset == 7
    assert [(each.group_id, each.group_type) for each in list_groups(machine.shard, [], [])] == [("g", "consumer")]


def test_who_may_commit(beat: Consumers) -> None:
    of_two(beat)
    machine = beat.machine

    def commit(member: str, epoch: int, partition: int, version: int = 9) -> int:
        try:
            return machine.commit(
                1,
                member_id=member,
                generation=epoch,
                partition=partition,
                version=version,
                topic_id=b"t".ljust(16, b"."),
            )
        except KafkaError as error:
            return error.code

    assert commit("A", 3, 0) == ErrorCode.NONE
    assert commit("A", 2, 0) == ErrorCode.NONE, "it has had partition 0 since epoch 2"
    assert commit("A", 1, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("B", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH, "it has it since epoch 3"
    assert commit("A", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH, "it has it no more"
    assert commit("A", 4, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit("A", 3, 0, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit("", -1, 0) == commit("C", 3, 0) == ErrorCode.UNKNOWN_MEMBER_ID
    for member in "AB":
        beat(member, -1)
    assert commit("", -1, 0) == ErrorCode.NONE


def test_a_member_keeps_the_right_to_commit_what_it_has_to_give_up(beat: Consumers) -> None:
    beat("A", 0)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    assert beat.group.members["A"].state is MemberState.UNREVOKED_PARTITIONS
    assert (
        beat.machine.commit(1, member_id="A", generation=2, partition=3, topic_id=b"t".ljust(16, b"."))
        == ErrorCode.NONE
    )


def test_a_group_with_members_is_not_deleted(beat: Consumers) -> None:
    beat("A", 0)
    with pytest.raises(KafkaError) as refused:
        expiry.delete_group(beat.machine.shard, "g", beat.machine.now)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    beat("A", -1)
    beat.written()
    expiry.delete_group(beat.machine.shard, "g", beat.machine.now)
    assert beat.written() == "t6 t4 t3"
    beat.machine.restart()
    assert beat.machine.shard.groups == {}
