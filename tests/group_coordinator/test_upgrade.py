"""The upgrade of a classic group with members: a member of the consumer protocol joins it."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.consumer_group_member import ClassicSupport, MemberState
from ottla.group_coordinator.timeline import EventKind
from ottla.tests.group_coordinator.helpers.embedded_protocol import assigned, subscribed
from ottla.wire.codec import encode_bytes
from ottla.wire.messages.consumer_protocol import AssignedTopicPartition, ConsumerProtocolAssignment

from .helpers.consumers import Consumers, topic_id

REJOIN, NO_GROUP = ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.GROUP_ID_NOT_FOUND
ALL = assigned(t=range(4))
RANGE = (("range", subscribed("t")),)


def stable(machine: Any, assignment: bytes = ALL, **arguments: Any) -> str:
    """A classic group of one, which has this assignment."""
    member, waiter = machine.enter(**{"protocols": RANGE} | arguments)
    machine.sync(member, waiter.answer.generation_id, {member: assignment})
    return member


def held(beat: Consumers, member_id: str) -> list[int]:
    return sorted(beat.group.members[member_id].assigned.of(topic_id("t")))


def refusal(beat: Consumers, *arguments: Any, **fields: Any) -> str:
    with pytest.raises(KafkaError) as refused:
        beat(*arguments, **fields)
    assert refused.value.code is NO_GROUP
    return refused.value.message


def test_the_classic_members_stay_with_what_they_have(machine: Any) -> None:
    beat = Consumers(machine)
    protocols = (("range", subscribed("t", rack="r1", user_data=b"mine")), ("roundrobin", subscribed("t")))
    c = stable(machine, protocols=protocols, session=7_000, rebalance_timeout=9_000)
    assert machine.commit(6, member_id=c, generation=1) == ErrorCode.NONE
    beat.written()
    assert beat("N", 0) == (2, {})
    assert beat.written() == f"t2 5{c} 3(1) 7{c} 6(1) 8{c}(1) 5N 3(2) 7N 7{c} 6(2) 8N(2)"
    member = beat.group.members[c]
    assert member.classic == ClassicSupport(7_000, protocols)
    assert (member.rack_id, member.rebalance_timeout_ms, member.topic_names) == ("r1", 9_000, {"t"})
    assert (member.client_id, member.client_host, member.instance_id) == ("client", "/127.0.0.1", None)
    assert (member.epoch, member.previous_epoch, member.state) == (1, 1, MemberState.STABLE)
    assert member.assigned.of(topic_id("t")) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert beat.group.state_name == "Reconciling"
    assert machine.fetch().committed_offset == 6, "offsets stay"
    assert [event.kind for event in machine.timeline.of("g")][-1] is EventKind.UPGRADED


def test_the_records_are_one_batch(machine: Any) -> None:
    beat = Consumers(machine)
    stable(machine)
    before = machine.log.batch_count
    beat("N", 0)
    assert machine.log.batch_count == before + 1


def test_partitions_of_a_member_without_an_assignment_are_free(machine: Any) -> None:
    beat = Consumers(machine)
    c, _ = machine.enter(protocols=RANGE)
    assert beat("N", 0) == (2, {"t": [0, 1]})
    assert held(beat, c) == []


def test_partitions_that_nobody_has_are_assigned_although_the_new_member_reads_nothing(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine, assigned(t=[0, 1]))
    assert beat("N", 0, names=[]) == (2, {})
    assert sorted(beat.group.target.of(c)[topic_id("t")]) == [0, 1, 2, 3]


def test_who_waits_to_join_is_told_to_join_again(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine)
    other, waiter = machine.enter(protocols=RANGE)
    assert waiter.answer is None
    beat("N", 0)
    assert (waiter.answer.error_code, waiter.answer.member_id) == (REJOIN, other)
    assert waiter.offset == machine.shard.last_offset, "only once the upgrade is committed"
    assert ("join", "g") not in machine.shard.timers
    assert set(beat.group.members) == {c, other, "N"}
    assert (held(beat, c), held(beat, other)) == ([0, 1, 2, 3], [])


def test_who_waits_to_sync_is_told_to_join_again(machine: Any) -> None:
    beat = Consumers(machine)
    leader, _ = machine.enter(protocols=RANGE)
    other, _ = machine.enter(protocols=RANGE)
    assert machine.join(leader, protocols=RANGE).answer.generation_id == 2
    waiter = machine.sync(other, 2)
    assert waiter.answer is None
    assert beat("N", 0)[0] == 3
    assert waiter.answer.error_code == REJOIN
    assert beat.group.members[other].epoch == 2
    assert ("sync", "g") not in machine.shard.timers


def test_a_first_rebalance_that_has_not_ended(make_machine: Any) -> None:
    machine = make_machine(group_initial_rebalance_delay_ms=3_000)
    beat = Consumers(machine)
    c, waiter = machine.enter(protocols=RANGE)
    assert waiter.answer is None
    assert beat("N", 0)[0] == 1
    assert waiter.answer.error_code == REJOIN
    assert set(beat.group.members) == {c, "N"}
    machine.advance(3_000)
    assert set(beat.group.members) == {c, "N"}


def test_a_pending_member_is_forgotten(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine)
    pending = machine.join(protocols=RANGE).answer.member_id
    beat("N", 0)
    assert set(beat.group.members) == {c, "N"}
    assert ("session", "g", pending) not in machine.shard.timers


def test_members_keep_their_own_session_timeout(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine, session=10_000)
    machine.advance(9_000)
    beat("N", 0)
    machine.advance(9_999)
    assert c in beat.group.members
    machine.advance(1)
    assert c not in beat.group.members


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_forbids_it(make_machine: Any, policy: str) -> None:
    machine = make_machine({"migration_policy": policy})
    beat = Consumers(machine)
    c = stable(machine)
    assert refusal(beat, "N", 0) == (
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    )
    assert machine.heartbeat(c, 1).error_code == ErrorCode.NONE


def test_an_empty_group_changes_whatever_the_policy(make_machine: Any) -> None:
    machine = make_machine({"migration_policy": "disabled"})
    beat = Consumers(machine)
    machine.leave(stable(machine))
    assert beat("N", 0) == (2, {"t": [0, 1, 2, 3]})


def test_groups_of_other_protocol_types_stay_classic(machine: Any) -> None:
    beat = Consumers(machine)
    stable(machine, protocol_type="connect")
    assert refusal(beat, "N", 0) == (
        "Cannot upgrade classic group g to consumer group because the group does not use the consumer embedded protocol."
    )


def test_a_group_that_is_too_large_stays_classic(make_machine: Any) -> None:
    machine = make_machine({"max_size": 1})
    beat = Consumers(machine)
    machine.stable(2, protocols=RANGE)
    assert refusal(beat, "N", 0) == (
        "Cannot upgrade classic group g to consumer group because the group size exceeds the consumer group maximum size."
    )


def test_a_group_that_would_be_full_stays_classic(make_machine: Any) -> None:
    machine = make_machine({"max_size": 1})
    beat = Consumers(machine)
    c = stable(machine)
    assert beat.refused("N", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert machine.heartbeat(c, 1).error_code == ErrorCode.NONE


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\3\0\0\0\1", b"\xff\xff\0\0\0\0"])
def test_a_malformed_subscription(machine: Any, metadata: bytes) -> None:
    beat = Consumers(machine)
    stable(machine, protocols=(("range", metadata),))
    assert refusal(beat, "N", 0) == (
        "Cannot upgrade classic group g to consumer group because the embedded consumer protocol is malformed."
    )


def test_a_malformed_assignment(machine: Any) -> None:
    beat = Consumers(machine)
    stable(machine, b"a0")
    assert "is malformed" in refusal(beat, "N", 0)


def test_a_custom_assignor_that_needs_its_user_data(machine: Any) -> None:
    beat = Consumers(machine)
    stable(machine, assigned(b"mine", t=range(4)))
    assert refusal(beat, "N", 0) == (
        "Cannot upgrade classic group g to consumer group because an unsupported custom assignor is in use. Please refer to the "
        "documentation or switch to a default assignor before re-attempting the upgrade."
    )


def test_topics_that_are_gone_and_newer_versions(machine: Any) -> None:
    beat = Consumers(machine)
    newer = b"\0\x09" + subscribed("t", "gone")[2:] + b"more"
    c = stable(machine, assigned(t=[2], gone=[0, 1]), protocols=(("range", newer),))
    beat("N", 0)
    assert list(beat.group.members[c].assigned) == [(topic_id("t"), 2)]
    assert beat.group.members[c].topic_names == {"t", "gone"}


def test_partitions_that_a_cooperative_member_has_to_give_up_are_not_free(machine: Any) -> None:
    beat = Consumers(machine)
    protocols = (("range", subscribed("t", owned={"t": [0, 1, 2], "gone": [1]})),)
    a = stable(machine)
    b, waiter = machine.enter(protocols=protocols)
    machine.join(a, protocols=protocols)
    machine.sync(a, 2, {a: assigned(t=[0]), b: assigned(t=[2])})
    assert waiter.answer.generation_id == 2
    beat("N", 0)
    assert (held(beat, a), held(beat, b)) == ([0, 1], [2]), "2 is another's by now, and one of them has 1"
    assert 1 not in held(beat, "N")


def test_an_assignment_that_names_a_topic_twice(machine: Any) -> None:
    beat = Consumers(machine)
    parts = [AssignedTopicPartition(topic="t", partitions=[number]) for number in (0, 3)]
    c = stable(machine, b"\0\1" + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=parts), 1))
    beat("N", 0)
    assert held(beat, c) == [0, 3]


def test_only_a_join_upgrades(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine)
    assert beat.refused("N", 2) is beat.refused("N", -1) is NO_GROUP
    assert machine.heartbeat(c, 1).error_code == ErrorCode.NONE


def test_a_static_member_changes_to_the_consumer_protocol(machine: Any) -> None:
    beat = Consumers(machine)
    waiter = machine.join(instance="i", protocols=RANGE)
    c = waiter.answer.member_id
    machine.sync(c, 1, {c: ALL})
    beat.written()
    assert beat("N", 0, instance="i") == (1, {"t": [0, 1, 2, 3]})
    assert beat.written() == f"t2 5{c} 3(1) 7{c} 6(1) 8{c}(1) t8{c} t7{c} t5{c} 5N 5N 7N 8N(0) 8N(1)"
    assert set(beat.group.members) == {"N"}
    assert ("session", "g", c) not in machine.shard.timers


def test_nothing_has_happened_when_the_log_refuses(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine)
    other, waiter = machine.enter(protocols=RANGE)
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert beat.refused("N", 0) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert waiter.answer is None
    assert machine.heartbeat(c, 1).error_code == REJOIN, "the rebalance goes on"
    machine.join(c, protocols=RANGE)
    assert waiter.answer.generation_id == 2
    machine.sync(c, 2, {c: assigned(t=[0, 1]), other: assigned(t=[2, 3])})
    assert machine.sync(other, 2).answer.assignment == assigned(t=[2, 3])


def test_another_coordinator_goes_on(machine: Any) -> None:
    beat = Consumers(machine)
    c = stable(machine, session=10_000)
    beat("N", 0)
    before = beat.group
    machine.restart()
    assert beat.group == before
    machine.advance(9_999)
    assert c in beat.group.members
    assert beat("N", 2) == (2, None)
    machine.advance(1)
    assert beat("N", 2) == (3, {"t": [0, 1, 2, 3]}), "the classic member was never heard again"
