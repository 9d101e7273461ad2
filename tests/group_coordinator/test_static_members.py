"""Static members (KIP-345, KIP-814)."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.live_group import GroupState

NONE = ErrorCode.NONE


def static_pair(machine):
    """A Stable group of the static members ``one``, which leads, and ``two``: their member ids."""
    one = machine.join(instance="one").answer.member_id
    waiter = machine.join(instance="two")
    machine.join(one, instance="one")
    two = waiter.answer.member_id
    machine.sync(two, 2, group_instance_id="two")
    machine.sync(one, 2, {one: b"for one", two: b"for two"}, group_instance_id="one")
    assert machine.group().state is GroupState.STABLE
    return one, two


def test_a_static_member_needs_no_second_round_for_its_id(machine):
    answer = machine.join(instance="one", client="app").answer
    assert answer.error_code == NONE
    assert answer.member_id.startswith("one-")


def test_a_new_process_takes_over_without_a_rebalance_and_gets_the_same_assignment(machine):
    _, two = static_pair(machine)
    answer = machine.join(instance="two").answer
    assert answer.error_code == NONE
    assert answer.generation_id == 2
    assert answer.member_id != two
    assert answer.members == []
    assert machine.group().state is GroupState.STABLE
    synced = machine.sync(answer.member_id, 2, group_instance_id="two").answer
    assert synced.assignment == b"for two"


def test_the_old_process_is_fenced_in_every_request(machine):
    _, two = static_pair(machine)
    machine.join(instance="two")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(two, 2, instance="two")
    assert refused.value.code is fenced
    with pytest.raises(KafkaError) as refused:
        machine.commit(member_id=two, generation=2, group_instance_id="two")
    assert refused.value.code is fenced
    assert machine.join(two, instance="two").answer.error_code == fenced
    assert machine.sync(two, 2, group_instance_id="two").answer.error_code == fenced
    assert machine.leave((two, "two")) == [fenced]


def test_the_old_process_is_fenced_while_it_waits(machine):
    one, _ = static_pair(machine)
    waiting = machine.join(one, instance="one")
    assert waiting.answer is None
    machine.join(instance="one")
    assert waiting.answer.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_leader_that_comes_back_is_told_to_skip_the_assignment(machine):
    _, two = static_pair(machine)
    answer = machine.join(instance="one", version=9).answer
    assert (answer.generation_id, answer.skip_assignment) == (2, True)
    assert answer.leader == answer.member_id
    assert {member.member_id for member in answer.members} == {answer.member_id, two}
    assert machine.sync(answer.member_id, 2, group_instance_id="one").answer.assignment == b"for one"


def test_before_version_9_a_leader_that_comes_back_is_told_that_its_former_id_leads(machine):
    one, _ = static_pair(machine)
    answer = machine.join(instance="one", version=8).answer
    assert (answer.leader, answer.members, answer.skip_assignment) == (one, [], False)
    assert machine.sync(answer.member_id, 2, group_instance_id="one").answer.assignment == b"for one"


def test_a_takeover_that_changes_the_chosen_protocol_rebalances(machine):
    static_pair(machine)
    answer = machine.join(instance="two", protocols=[("sticky", b"")]).answer
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    lone = machine.join(group="h", instance="lone", protocols=[("range", b""), ("sticky", b"")]).answer
    machine.sync(lone.member_id, 1, {lone.member_id: b""}, group="h", group_instance_id="lone")
    again = machine.join(group="h", instance="lone", protocols=[("sticky", b""), ("range", b"")]).answer
    assert (again.generation_id, again.protocol_name) == (2, "sticky")


def test_a_takeover_between_join_and_sync_starts_over(machine):
    one = machine.join(instance="one").answer.member_id
    machine.join(instance="two")
    machine.join(one, instance="one")
    syncing = machine.sync(one, 2, {}, group_instance_id="one", protocol_name=None)
    assert syncing.answer is not None
    machine.join(one, instance="one")
    machine.join(instance="two")
    two = machine.group().static_members["two"]
    assert machine.group().state is GroupState.COMPLETING_REBALANCE
    waiting = machine.sync(two, 3, group_instance_id="two")
    machine.join(instance="one")
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert machine.group().state is GroupState.PREPARING_REBALANCE


def test_a_static_member_that_does_not_rejoin_keeps_its_place_until_its_session_ends(machine):
    one, two = static_pair(machine)
    waiting = machine.join(one, instance="one", rebalance_timeout=5_000)
    machine.group().members[two].rebalance_timeout_ms = 5_000
    machine.advance(9_000)
    assert waiting.answer is None
    machine.advance(2_000)
    assert waiting.answer.generation_id == 3
    assert set(machine.group().members) == {one}


def test_static_members_that_all_stay_away_leave_an_empty_group(machine):
    static_pair(machine)
    machine.advance(200_000)
    assert machine.group().state is GroupState.EMPTY
    assert machine.group().static_members == {}


def test_a_static_member_with_a_rebalance_timeout_of_0_does_not_spin(machine):
    one, two = static_pair(machine)
    for member in machine.group().members.values():
        member.rebalance_timeout_ms = 0
    machine.leave((one, "one"))
    machine.advance(500)
    assert set(machine.group().members) == {two}
    machine.advance(20_000)
    assert machine.group().state is GroupState.EMPTY


def test_an_administrator_removes_a_static_member_by_its_instance_id(machine):
    one, _ = static_pair(machine)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.leave(("", "two"), ("", "three"), ("", None)) == [NONE, unknown, unknown]
    assert set(machine.group().members) == {one}


def test_an_unknown_instance_id_is_an_unknown_member(machine):
    one, _ = static_pair(machine)
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(one, 2, instance="three")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_takeover_survives_a_restart(machine):
    static_pair(machine)
    taken = machine.join(instance="two").answer.member_id
    machine.restart()
    assert machine.heartbeat(taken, 2, instance="two").error_code == NONE
    assert machine.sync(taken, 2, group_instance_id="two").answer.assignment == b"for two"


def test_a_takeover_that_cannot_be_written_is_answered_with_an_error_and_may_be_tried_again(machine):
    _, two = static_pair(machine)
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert machine.join(instance="two").answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert machine.heartbeat(two, 2, instance="two").error_code == NONE, "nothing has changed"
    again = machine.join(instance="two").answer
    assert (again.error_code, again.generation_id) == (NONE, 2)
    assert machine.sync(again.member_id, 2, group_instance_id="two").answer.assignment == b"for two"
