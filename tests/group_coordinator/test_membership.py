"""Joining, syncing, heartbeats, leaving: the rules of the classic protocol, and what other brokers got wrong in them.

Not here, of what they got wrong: KIP-848 groups and share groups are not served; a transaction begun during a rebalance
comes with transactions; lag is not measured by this broker, so nothing clamps it to the log's start.
"""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import membership
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.live_group import GroupState

NONE = ErrorCode.NONE


def test_a_new_member_is_sent_back_for_its_id_from_version_4(machine):
    first = machine.join(version=4, client="app").answer
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("app-")
    assert len(first.member_id) == len("app-") + 36
    second = machine.join(first.member_id, version=4).answer
    assert (second.error_code, second.generation_id, second.leader) == (NONE, 1, first.member_id)


@pytest.mark.parametrize("version", [0, 3])
def test_before_version_4_a_new_member_joins_at_once(machine, version):
    answer = machine.join(version=version).answer
    assert (answer.error_code, answer.generation_id) == (NONE, 1)
    assert answer.leader == answer.member_id


def test_a_pending_member_expires(machine):
    pending = machine.join(session=6_000).answer.member_id
    machine.advance(6_001)
    assert machine.join(pending).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_a_pending_member_until_it_expires(machine):
    (leader,) = machine.stable()
    machine.join(session=6_000)
    waiter = machine.join(leader)
    assert waiter.answer is None
    machine.advance(6_001)
    assert waiter.answer.generation_id == 2


def test_an_unknown_member_id_is_refused(machine):
    assert machine.join("unknown-1").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    machine.stable()
    assert machine.join("unknown-1").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_the_leader_hears_of_all_members_and_their_metadata(machine):
    leader, _ = machine.enter(protocols=[("range", b"L")])
    follower, follower_waiter = machine.enter(protocols=[("range", b"F")])
    leader_waiter = machine.join(leader, protocols=[("range", b"L")])
    told = {member.member_id: member.metadata for member in leader_waiter.answer.members}
    assert told == {leader: b"L", follower: b"F"}
    assert follower_waiter.answer.members == []
    assert leader_waiter.answer.leader == follower_waiter.answer.leader == leader
    assert leader_waiter.answer.generation_id == follower_waiter.answer.generation_id == 2


def test_followers_get_their_assignment_when_the_leader_syncs_later(machine):
    leader, _ = machine.enter()
    follower, _ = machine.enter()
    machine.join(leader)
    early = machine.sync(follower, 2)
    assert early.answer is None
    by_leader = machine.sync(leader, 2, {leader: b"one", follower: b"two"})
    assert (early.answer.assignment, by_leader.answer.assignment) == (b"two", b"one")
    assert machine.group().state is GroupState.STABLE
    assert machine.sync(follower, 2).answer.assignment == b"two"


def test_an_assignment_is_handed_on_byte_for_byte_and_a_missing_one_is_empty(machine):
    leader, _ = machine.enter()
    follower, _ = machine.enter()
    third, _ = machine.enter()
    machine.join(leader)
    machine.join(follower)
    nothing = b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"
    waiters = [machine.sync(follower, 2), machine.sync(third, 2)]
    machine.sync(leader, 2, {leader: b"x", follower: nothing})
    assert [waiter.answer.assignment for waiter in waiters] == [nothing, b""]


def test_the_protocol_is_voted_for_among_those_all_members_have(machine):
    a = [("range", b""), ("roundrobin", b"")]
    b = [("sticky", b""), ("roundrobin", b""), ("range", b"")]
    c = [("roundrobin", b""), ("range", b"")]
    first, _ = machine.enter(protocols=a)
    second, _ = machine.enter(protocols=b)
    _, waiter = machine.enter(protocols=c)
    machine.join(first, protocols=a)
    machine.join(second, protocols=b)
    assert waiter.answer.protocol_name == "roundrobin"


def test_a_member_with_nothing_in_common_is_refused(machine):
    machine.stable()
    refused = machine.join(protocols=[("other", b"")]).answer
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = machine.join(protocol_type="connect").answer
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("offer", [{"protocols": []}, {"protocol_type": ""}])
def test_a_member_that_offers_no_protocol_is_refused_and_makes_no_group(machine, offer):
    assert machine.join(**offer).answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert machine.shard.groups == {}


def test_an_empty_group_takes_members_of_another_protocol_type(machine):
    (member,) = machine.stable()
    machine.leave(member)
    _, waiter = machine.enter(protocol_type="connect", protocols=[("default", b"")])
    assert (waiter.answer.error_code, waiter.answer.generation_id) == (NONE, 3)


def test_a_full_group_takes_nobody_else(make_machine):
    machine = make_machine(group_max_size=2)
    members = machine.stable(2)
    refused = machine.join().answer
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert machine.heartbeat(members[0], 2).error_code == NONE


def test_a_group_that_is_too_large_after_a_restart_is_cut_down(make_machine):
    machine = make_machine()
    members = machine.stable(3)
    machine.settings = type(machine.settings)({"group_max_size": 2})
    machine.restart()
    answers = [machine.join(member) for member in members]
    assert answers[2].answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [answer.answer.error_code for answer in answers[:2]] == [NONE, NONE]


def test_the_rebalance_timeout_is_the_longest_of_the_members(machine):
    slow, _ = machine.enter(rebalance_timeout=50_000, session=40_000)
    _, waiter = machine.enter(rebalance_timeout=10_000, session=60_000)
    for _ in range(5):
        machine.advance(9_900)
        machine.heartbeat(slow, 1)
    assert waiter.answer is None
    machine.advance(600)
    assert waiter.answer.generation_id == 2
    assert waiter.answer.leader == waiter.answer.member_id
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(slow, 1)
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_version_0_uses_the_session_timeout_for_the_rebalance(machine):
    member = machine.join(version=0, session=7_000, rebalance_timeout=-1).answer.member_id
    assert machine.group().members[member].rebalance_timeout_ms == 7_000


def test_members_that_never_sync_are_dropped_after_the_rebalance_timeout(machine):
    leader, _ = machine.enter(rebalance_timeout=20_000)
    follower, _ = machine.enter(rebalance_timeout=20_000)
    machine.join(leader, rebalance_timeout=20_000)
    machine.sync(leader, 2, {leader: b"x"})
    for _ in range(5):
        machine.advance(3_990)
        machine.heartbeat(leader, 2)
        machine.heartbeat(follower, 2)
    machine.advance(100)
    assert machine.heartbeat(leader, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert machine.join(leader, rebalance_timeout=20_000).answer.generation_id == 3
    assert set(machine.group().members) == {leader}


def test_a_leader_that_never_syncs_does_not_wedge_the_group(machine):
    leader, _ = machine.enter()
    follower, _ = machine.enter()
    machine.join(leader)
    waiting = machine.sync(follower, 2)
    machine.advance(10_001)
    assert waiting.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = machine.join(follower).answer
    assert (answer.generation_id, answer.leader) == (3, follower)


def test_a_silent_member_is_dropped_and_the_others_rebalance(machine):
    first, _ = machine.stable(2)
    machine.advance(6_000)
    machine.heartbeat(first, 2)
    machine.advance(4_500)
    assert machine.heartbeat(first, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert machine.join(first).answer.generation_id == 3
    assert set(machine.group().members) == {first}


def test_a_group_whose_members_all_vanish_becomes_empty(machine):
    machine.stable(3)
    machine.advance(200_000)
    group = machine.group()
    assert (group.state, group.members, group.leader_id) == (GroupState.EMPTY, {}, None)
    assert machine.describe().group_state == "Empty"


def test_a_member_that_waits_to_join_or_to_sync_is_not_silent(machine):
    leader, _ = machine.enter(session=6_000)
    follower, _ = machine.enter(session=30_000)
    waiting = machine.join(leader, session=6_000)
    assert waiting.answer is not None
    syncing = machine.sync(follower, 2)
    for _ in range(8):
        machine.advance(5_000)
        machine.heartbeat(leader, 2)
    assert syncing.answer is None
    assert set(machine.group().members) == {leader, follower}


def test_a_commit_keeps_the_session_alive(machine):
    (member,) = machine.stable()
    for _ in range(5):
        machine.advance(6_000)
        assert machine.commit(member_id=member, generation=1) == NONE
    assert machine.heartbeat(member, 1).error_code == NONE


def test_leaving_rebalances_the_rest_and_the_last_one_empties_the_group(machine):
    first, second = machine.stable(2)
    assert machine.leave(second) == [NONE]
    assert machine.heartbeat(first, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    machine.join(first)
    assert machine.leave(first) == [NONE]
    assert machine.group().state is GroupState.EMPTY
    assert machine.group().generation.generation_id == 4


def test_several_leave_in_one_request_each_with_its_own_answer(machine):
    first, second, third = machine.stable(3)
    generation = machine.group().generation.generation_id
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.leave(second, "unknown", third) == [NONE, unknown, NONE]
    assert machine.heartbeat(first, generation).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert machine.leave("unknown", group="other") == [unknown]


def test_a_pending_member_may_leave(machine):
    pending = machine.join().answer.member_id
    assert machine.leave(pending) == [NONE]
    assert machine.join(pending).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_closes_a_round_that_waited_for_the_leaver(machine):
    first, second = machine.stable(2)
    waiter = machine.join(first)
    assert waiter.answer is None
    machine.leave(second)
    assert waiter.answer.generation_id == 3


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_an_old_or_future_generation_is_refused(machine, generation):
    (member,) = machine.stable()
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat(member, generation)
    assert refused.value.code is ErrorCode.ILLEGAL_GENERATION
    assert machine.sync(member, generation).answer.error_code == ErrorCode.ILLEGAL_GENERATION


def test_who_is_no_member_is_refused_everywhere(machine):
    machine.stable()
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat("unknown", 1)
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError) as refused:
        machine.heartbeat("unknown", 1, group="no such group")
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.sync("unknown", 1).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert machine.sync("unknown", 1, group="no such group").answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_checks_the_protocol_it_names(machine):
    member, _ = machine.enter()
    refused = machine.sync(member, 1, {}, protocol_type="connect", protocol_name="range").answer
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = machine.sync(member, 1, {}, protocol_type="consumer", protocol_name="sticky").answer
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    answer = machine.sync(member, 1, {member: b"x"}, protocol_type="consumer", protocol_name="range").answer
    assert (answer.protocol_type, answer.protocol_name, answer.assignment) == ("consumer", "range", b"x")


def test_sync_during_a_round_of_joining_sends_the_member_back(machine):
    first, second = machine.stable(2)
    machine.leave(second)
    assert machine.sync(first, 2).answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_concurrent_joins_of_many_members_end_in_one_generation_for_all(machine):
    entered = dict(machine.enter() for _ in range(20))
    for _ in range(3):
        entered = {
            member: waiter if waiter.answer is None else machine.join(member) for member, waiter in entered.items()
        }
    generations = {waiter.answer.generation_id for waiter in entered.values()}
    assert len(generations) == 1
    assert {waiter.answer.error_code for waiter in entered.values()} == {NONE}


def test_an_unchanged_follower_that_joins_again_gets_the_current_generation(machine):
    leader, follower = machine.stable(2)
    answer = machine.join(follower).answer
    assert (answer.generation_id, answer.leader) == (2, leader)
    assert machine.group().state is GroupState.STABLE


def test_a_leader_or_a_changed_follower_that_joins_again_forces_a_rebalance(machine):
    leader, follower = machine.stable(2)
    assert machine.join(leader).answer is None
    assert machine.group().state is GroupState.PREPARING_REBALANCE
    changed = [("range", b"changed")]
    assert machine.join(follower, protocols=changed).answer.generation_id == 3
    machine.sync(leader, 3, {})
    machine.sync(follower, 3)
    assert machine.join(follower).answer is None


def test_a_member_that_missed_its_answer_gets_it_again(machine):
    leader, _ = machine.enter()
    machine.enter()
    first = machine.join(leader).answer
    again = machine.join(leader).answer
    assert again == first


def test_a_join_repeated_on_another_connection_replaces_the_first(machine):
    first, second = machine.stable(2)
    lost = machine.join(first)
    repeated = machine.join(first)
    assert lost.answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    machine.join(second)
    assert repeated.answer.generation_id == 3


def abandon(machine, waiter, version):
    request = Client("client", "/127.0.0.1", version)
    membership.abandon_join(machine.shard, "g", waiter, request, machine.now)


def test_a_member_lost_while_it_joins_does_not_hold_up_the_others(machine):
    first, second = machine.stable(2)
    abandon(machine, machine.join(first), 9)
    waiting = machine.join(second)
    assert waiting.answer is None
    machine.advance(10_001)
    assert waiting.answer.generation_id == 3
    assert set(machine.group().members) == {second}


def test_a_member_lost_while_it_joins_may_come_back_under_its_id(machine):
    first, second = machine.stable(2)
    abandon(machine, machine.join(first), 9)
    machine.join(second)
    assert machine.join(first).answer.generation_id == 3


def test_a_nameless_new_member_lost_while_it_joins_is_gone_at_once(machine):
    first, second = machine.stable(2)
    lost = machine.join(version=3)
    waiters = [machine.join(first)]
    abandon(machine, lost, 3)
    waiters.append(machine.join(second))
    assert [waiter.answer.generation_id for waiter in waiters] == [3, 3]
    assert set(machine.group().members) == {first, second}


def test_a_new_member_nobody_hears_of_again_is_dropped_in_the_end(machine):
    first, _ = machine.stable(2)
    machine.join(version=3, rebalance_timeout=3_600_000, session=1_000_000)
    for _ in range(40):
        machine.advance(9_000)
        for member in list(machine.group().members.values()):
            if member.member_id == first:
                machine.heartbeat(first, 2)
    assert set(machine.group().members) <= {first}


def test_an_initial_delay_gathers_members_into_one_generation(make_machine):
    machine = make_machine(group_initial_rebalance_delay_ms=3_000)
    first, waiter_a = machine.enter()
    machine.advance(2_000)
    _, waiter_b = machine.enter()
    machine.advance(1_500)
    assert waiter_a.answer is None, "a member that came extends the delay"
    machine.advance(2_500)
    assert waiter_a.answer.generation_id == waiter_b.answer.generation_id == 1
    assert len(waiter_a.answer.members) == 2
    assert waiter_a.answer.leader == first


def test_an_initial_delay_ends_at_the_rebalance_timeout(make_machine):
    machine = make_machine(group_initial_rebalance_delay_ms=3_000)
    _, waiter = machine.enter(rebalance_timeout=7_000)
    for _ in range(7):
        machine.advance(1_000)
        machine.enter(rebalance_timeout=7_000)
    machine.advance(1_000)
    assert waiter.answer.generation_id == 1


def test_without_initial_delay_a_lone_member_is_answered_at_once(machine):
    _, waiter = machine.enter()
    assert waiter.answer.generation_id == 1


def test_a_second_member_costs_one_rebalance(machine):
    (first,) = machine.stable()
    machine.enter()
    assert machine.join(first).answer.generation_id == 2
