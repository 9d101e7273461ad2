"""Members with the classic protocol in a consumer group: their requests, their timers, and the traces of Apache Kafka 4.3.1."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.consumer_group_member import MemberState
from ottla.group_coordinator.embedded_protocol import write_assignment
from ottla.group_coordinator.records import CoordinatorRecord
from ottla.tests.group_coordinator.helpers.embedded_protocol import read_assigned, subscribed
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

from .helpers.classic import Classic
from .helpers.consumers import Consumers, topic_id

NONE, REJOIN, UNKNOWN = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID
INCONSISTENT, OLD = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.ILLEGAL_GENERATION
FENCED_INSTANCE = ErrorCode.FENCED_INSTANCE_ID
ALL, FIRST, SECOND = {"t": [0, 1, 2, 3]}, {"t": [0, 1]}, {"t": [2, 3]}


@pytest.fixture
def machine(make_machine: Any) -> Any:
    """Assignments are made at once, by the assignor range: members with smaller ids get the first partitions."""
    return make_machine({"assignment_interval_ms": 0, "assignors": ("range",)})


@pytest.fixture
def beat(machine: Any) -> Consumers:
    return Consumers(machine)


@pytest.fixture
def z(machine: Any) -> Classic:
    """The classic member that comes after the others in the order of ids."""
    return Classic(machine, "z")


def held(beat: Consumers, member_id: str) -> list[int]:
    return sorted(beat.group.members[member_id].assigned.of(topic_id("t")))


def of_two(beat: Consumers, z: Classic) -> None:
    """N has 0 and 1, z has 2 and 3, both at epoch 3."""
    assert beat("N", 0) == (2, ALL)
    assert z.joined() == 3
    assert beat("N", 2) == (2, FIRST)
    assert beat("N", 2, FIRST) == (3, None)
    assert z.joined() == 3
    assert z.sync() == SECOND
    beat.written()


# --- rebalances -------------------------------------------------------------------------------------------------------


def test_there(machine: Any, beat: Consumers) -> None:
    c = Classic(machine)
    c.lead_alone(t=range(4))
    assert beat("N", 0, server_assignor="range") == (2, {})
    assert (c.beat(), c.beat(), c.sync()) == (REJOIN, REJOIN, REJOIN)
    beat.written()
    assert c.joined(owned=ALL) == 1, "it has partitions to give up first"
    assert beat.written() == f"5{c.member_id} 8{c.member_id}(1)"
    assert beat.group.members[c.member_id].state is MemberState.UNREVOKED_PARTITIONS
    assert c.sync() == SECOND
    assert (c.beat(), beat("N", 2)) == (REJOIN, (2, None))
    assert c.joined(owned=SECOND) == 2
    assert (c.beat(), c.sync()) == (NONE, SECOND)
    assert beat("N", 2) == (2, FIRST)
    assert beat.group.state_name == "Stable"


def test_an_eager_member_has_given_everything_up_when_it_joins(machine: Any, beat: Consumers) -> None:
    c = Classic(machine)
    c.lead_alone(t=range(4))
    beat("N", 0)
    assert c.joined(metadata=subscribed("t", version=0)) == 2
    assert c.sync() == SECOND
    assert beat("N", 2) == (2, FIRST)


def test_one_that_was_removed_gives_its_partitions_up_before_it_joins_again(
    machine: Any, beat: Consumers, z: Classic
) -> None:
    of_two(beat, z)
    machine.leave("z")
    assert beat("N", 3) == (4, ALL)
    assert z.joined(owned=SECOND) is UNKNOWN, "N reads them"
    assert z.joined() == 5


def test_the_first_response_says_that_nobody_leads(beat: Consumers, z: Classic) -> None:
    assert beat("N", 0) == (2, ALL)
    beat.written()
    response = z.join(names=("range", "own")).answer
    assert (response.error_code, response.generation_id, response.member_id) == (NONE, 3, "z")
    assert (response.protocol_type, response.protocol_name, response.leader) == ("consumer", "range", "")
    assert (response.members, response.skip_assignment) == ([], False)
    assert beat.written() == "5z 3(3) 7N 7z 6(3) 8z(3)"


def test_it_waits_for_partitions_that_are_not_free(beat: Consumers, z: Classic) -> None:
    assert beat("N", 0) == (2, ALL)
    assert z.joined() == 3
    assert (z.sync(), z.beat()) == ({}, NONE)
    assert beat("N", 2) == (2, FIRST)
    assert z.beat() == NONE, "N still reads them"
    assert beat("N", 2, FIRST) == (3, None)
    assert (z.beat(), z.sync()) == (REJOIN, {})
    assert z.joined() == 3
    assert (z.sync(), z.beat()) == (SECOND, NONE)


def test_nothing_is_written_for_one_that_joins_again_as_it_is(beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert z.joined(owned=SECOND) == 3
    assert beat.written() == "5z", "its subscription names other partitions, and those are kept"
    assert z.joined(owned=SECOND) == 3
    assert beat.written() == ""


def test_it_reads_other_topics(beat: Consumers, z: Classic) -> None:
    beat.topic("u", 1)
    of_two(beat, z)
    assert z.joined("u", owned=SECOND) == 3, "it has to give up what it no longer reads"
    assert z.beat() == REJOIN
    assert z.joined("u") == 4
    assert z.sync() == {"u": [0]}
    assert beat("N", 3, FIRST) == (4, ALL)


def test_it_gives_up_topics_that_it_no_longer_reads_before_there_is_a_new_target(make_machine: Any) -> None:
    machine = make_machine({"assignors": ("range",)})
    beat, z = Consumers(machine, t=4, u=1), Classic(machine, "z")
    beat("N", 0)
    machine.advance(1_000)
    of_z = z.joined()
    beat("N", 2)
    beat("N", 2, FIRST)
    assert (of_z, z.joined(), z.sync()) == (3, 3, SECOND)
    assert z.joined("u", owned=SECOND) == 3
    assert (beat.group.target.epoch, beat.group.epoch) == (3, 4)
    assert (z.beat(), z.sync()) == (REJOIN, {})


def test_topics_that_are_gone_are_left_out(beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat.topic("t", None)
    assert z.sync() == {}
    assert z.joined(owned={"t": [2, 3], "never": [1]}) == 4


def test_the_assignment_has_the_version_of_the_subscription(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    for version in range(4):
        member = Classic(machine, f"z{version}")
        member.joined(metadata=subscribed("t", version=version))
        assert read_assigned(machine.sync(member.member_id, member.generation).answer.assignment) == (version, {})


def test_the_version_of_a_subscription_that_cannot_be_read_is_0(machine: Any, beat: Consumers) -> None:
    for metadata in (b"", b"\0", b"\xff\xff"):
        assert read_assigned(write_assignment({topic_id("t"): [1]}, machine.topics, metadata)) == (0, {"t": [1]})


def test_assignments_that_it_sends_count_for_nothing(beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert z.sync(assignments={"z": b"mine"}) == SECOND
    response = beat.machine.sync("z", 3).answer
    assert (response.protocol_type, response.protocol_name) == (None, None), "as the request"


def test_what_joins_says_of_rack_and_times_is_kept(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", session=7_000, rebalance_timeout=8_000)
    assert z.joined(metadata=subscribed("t", rack="r1")) == 3
    member = beat.group.members["z"]
    assert (member.rack_id, member.rebalance_timeout_ms, member.classic.session_timeout_ms) == ("r1", 8_000, 7_000)
    z.joined(metadata=subscribed("t"))
    assert beat.group.members["z"].rack_id == "r1"


def test_offsets_are_committed_by_generation(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert machine.commit(5, member_id="z", generation=3, partition=2, topic_id=topic_id("t")) == NONE
    with pytest.raises(KafkaError) as refused:
        machine.commit(5, member_id="z", generation=4, topic_id=topic_id("t"))
    assert refused.value.code is OLD


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_new_member_is_sent_back_with_an_id(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    response = machine.join(version=4).answer
    assert (response.error_code, len(response.member_id)) == (ErrorCode.MEMBER_ID_REQUIRED, 22)
    assert set(beat.group.members) == {"N"}
    assert machine.join(response.member_id, version=4).answer.error_code == NONE
    assert set(beat.group.members) == {"N", response.member_id}


def test_old_versions_need_no_id(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    response = machine.join(version=3).answer
    assert (response.error_code, response.generation_id, len(response.member_id)) == (NONE, 3, 22)


def test_a_static_member_comes_back_with_a_new_id(machine: Any, beat: Consumers) -> None:
    first, later = (Classic(machine, instance="i") for _ in range(2))
    beat("N", 0)
    assert first.joined() == 3
    assert len(first.member_id) == 22
    beat("N", 2, FIRST)
    beat("N", 2, FIRST)
    assert first.joined() == 3
    mine = first.sync()
    beat.written()
    assert later.joined() == 3, "no new target"
    assert beat.written() == (
        f"t8{first.member_id} t7{first.member_id} t5{first.member_id} 5{later.member_id} "
        f"7{later.member_id} 8{later.member_id}(0) 8{later.member_id}(3)"
    )
    assert (later.sync(), later.beat()) == (mine, NONE)
    assert (first.beat(), first.sync(), first.joined()) == (FENCED_INSTANCE,) * 3
    assert ("session", "g", first.member_id) not in machine.shard.timers


def test_a_static_member_of_the_consumer_protocol_comes_back_as_a_classic_one(machine: Any, beat: Consumers) -> None:
    beat("N", 0, instance="i", subscribed_topic_regex="x.*")
    beat("M", 0)
    key = ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="x.*")
    value = ConsumerGroupRegularExpressionValue(topics=[], version=1, timestamp=1)
    machine.shard.write([CoordinatorRecord(key, value)], machine.now)
    c = Classic(machine, instance="i")
    beat.written()
    assert isinstance(c.joined(), int)
    assert " t16 " in beat.written()
    member = beat.group.members[c.member_id]
    assert (member.expression, member.topic_names) == ("", {"t"})
    assert beat.refused("N", 2, instance="i") == FENCED_INSTANCE


def test_an_instance_that_nobody_has(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    member = Classic(machine, "z", instance="i")
    assert (member.joined(), member.beat(3), member.sync(3)) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert set(beat.group.members) == {"N"}


def test_a_member_of_the_consumer_protocol_becomes_classic_and_comes_back(machine: Any, beat: Consumers) -> None:
    beat("M", 0)
    beat("N", 0)
    as_classic = Classic(machine, "N")
    assert as_classic.joined() == 3
    assert beat.group.classic_member_count == 1
    assert as_classic.beat() == NONE
    assert beat("N", 3, {})[0] == 3
    assert beat.group.classic_member_count == 0
    assert as_classic.beat() == UNKNOWN
    machine.advance(40_000)
    beat("M", 2)
    beat("N", 3)
    machine.advance(40_000)
    assert set(beat.group.members) == {"M", "N"}, "nobody waits for its SyncGroup"


def test_requests_with_other_names_or_epochs(beat: Consumers, z: Classic, machine: Any) -> None:
    of_two(beat, z)
    assert (z.beat(2), z.beat(4), z.sync(2), z.sync(4)) == (OLD,) * 4
    for member_id in ("N", "nobody"):
        other = Classic(machine, member_id)
        assert (other.beat(3), other.sync(3)) == (UNKNOWN, UNKNOWN)
    assert z.sync(protocol_name="own") == z.sync(protocol_type="connect") == INCONSISTENT


def test_the_protocol_is_the_first_one_that_it_offers(beat: Consumers, z: Classic) -> None:
    beat("N", 0)
    assert z.joined(names=("own", "range")) == 3
    assert z.sync(protocol_name="own") == {}
    assert z.sync(protocol_name="range") == INCONSISTENT


# --- who may join -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_type": ""}, {"names": ()}])
def test_others_than_consumers_are_refused(machine: Any, beat: Consumers, fields: dict[str, Any]) -> None:
    beat("N", 0)
    response = Classic(machine).join(**fields).answer
    assert (response.error_code, response.member_id) == (INCONSISTENT, "")
    assert set(beat.group.members) == {"N"}


def test_classic_members_have_a_protocol_in_common(machine: Any, beat: Consumers, z: Classic) -> None:
    beat("N", 0)
    assert z.joined(names=("own", "range")) == 3, "any will do for the first"
    other = Classic(machine, "y")
    assert other.joined(names=("roundrobin",)) == INCONSISTENT
    assert other.joined(names=("roundrobin", "range")) == 4
    assert z.joined(names=("own",)) == INCONSISTENT, "the other one has none of these"


def test_the_policy_keeps_them_out(make_machine: Any) -> None:
    machine = make_machine({"migration_policy": "disabled"})
    beat = Consumers(machine)
    beat("N", 0)
    assert Classic(machine).joined() == INCONSISTENT
    assert set(beat.group.members) == {"N"}


@pytest.mark.parametrize("policy", ["upgrade", "downgrade", "Bidirectional"])
def test_other_policies_let_them_in(make_machine: Any, policy: str) -> None:
    machine = make_machine({"migration_policy": policy, "assignment_interval_ms": 0})
    Consumers(machine)("N", 0)
    assert Classic(machine).joined() == 3


def test_a_full_group(make_machine: Any) -> None:
    machine = make_machine({"max_size": 2, "assignment_interval_ms": 0})
    beat = Consumers(machine)
    beat("N", 0)
    z = Classic(machine)
    assert z.joined() == 3
    assert Classic(machine).joined() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert z.joined() == 3, "it has its place"


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0\0\0\0\1"])
def test_a_malformed_subscription(machine: Any, beat: Consumers, metadata: bytes) -> None:
    beat("N", 0)
    assert Classic(machine).joined(metadata=metadata) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert set(beat.group.members) == {"N"}


def test_the_log_refuses(machine: Any, beat: Consumers, z: Classic) -> None:
    beat("N", 0)
    before = beat.group
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert z.joined() is ErrorCode.NOT_ENOUGH_REPLICAS
    assert beat.group == before
    assert ("member-sync", "g", "z") not in machine.shard.timers


# --- timers -----------------------------------------------------------------------------------------------------------


def test_its_session_has_its_own_timeout(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", session=6_000)
    assert z.joined() == 3
    machine.advance(5_000)
    assert z.beat() == NONE
    machine.advance(5_000)
    assert z.sync() == {}
    machine.advance(5_999)
    assert "z" in beat.group.members
    machine.advance(1)
    assert (z.beat(), set(beat.group.members)) == (UNKNOWN, {"N"})


def test_one_that_does_not_join_again_in_time_is_removed(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", rebalance_timeout=8_000)
    assert (z.joined(), z.sync()) == (3, {})
    beat("N", 2, FIRST)
    beat("N", 2, FIRST)
    assert z.beat() == REJOIN
    machine.advance(7_000)
    assert z.beat() == REJOIN, "the time is not begun anew"
    machine.advance(999)
    assert z.beat() == REJOIN
    machine.advance(1)
    assert z.beat() == UNKNOWN


def test_one_that_joins_again_in_time_stays(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", rebalance_timeout=8_000)
    assert (z.joined(), z.sync()) == (3, {})
    beat("N", 2, FIRST)
    beat("N", 2, FIRST)
    assert z.beat() == REJOIN
    assert (z.joined(), z.sync()) == (3, SECOND)
    machine.advance(8_000)
    assert z.beat() == NONE


def test_a_sync_that_finds_a_new_target_sets_the_time_for_joining(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", rebalance_timeout=8_000)
    assert (z.joined(), z.sync()) == (3, {})
    beat("M", 0)
    assert z.sync() == REJOIN
    machine.advance(7_999)
    assert "z" in beat.group.members
    machine.advance(1)
    assert z.beat() == UNKNOWN


def test_one_that_does_not_get_its_assignment_in_time_is_removed(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", rebalance_timeout=8_000)
    assert z.joined() == 3
    beat("M", 0)
    machine.advance(7_000)
    assert z.sync() == REJOIN
    machine.advance(1_000)
    assert z.beat() == UNKNOWN


def test_one_that_does_not_ask_for_its_assignment_is_removed(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", rebalance_timeout=8_000)
    assert z.joined() == 3
    machine.advance(7_999)
    assert z.beat() == NONE
    machine.advance(1)
    assert z.beat() == UNKNOWN


def test_joins_of_old_versions_have_the_session_timeout_for_a_rebalance(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", session=9_000, rebalance_timeout=-1)
    assert z.joined() == 3
    assert beat.group.members["z"].rebalance_timeout_ms == 9_000


def test_it_has_no_time_for_giving_up_partitions(machine: Any, beat: Consumers) -> None:
    beat("N", 0, rebalance_timeout=5_000)
    beat("M", 0)
    assert beat("N", 2)[0] == 2
    assert beat.group.members["N"].state is MemberState.UNREVOKED_PARTITIONS
    as_classic = Classic(machine, "N", rebalance_timeout=20_000)
    assert as_classic.joined(owned=ALL) == 2
    machine.advance(5_000)
    assert as_classic.beat() == REJOIN


def test_another_coordinator_begins_sessions_anew(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    z = Classic(machine, "z", session=6_000)
    assert z.joined() == 3
    machine.advance(5_000)
    machine.restart()
    machine.advance(5_000)
    assert z.beat() == NONE
    assert z.sync() == {}


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_members_leave_by_id(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert z.beat() == NONE
    assert machine.leave("nobody", "z") == [UNKNOWN, NONE]
    assert beat.written() == "t8z t7z t5z 3(4)"
    assert machine.leave("z") == [UNKNOWN]
    assert beat.written() == ""
    assert not [kind for kind in ("session", "member-join", "member-sync") if (kind, "g", "z") in machine.shard.timers]
    assert beat("N", 3) == (4, ALL)


def test_static_members_leave_by_instance_id(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    static = [Classic(machine, instance=f"i{number}") for number in range(3)]
    for member in static:
        member.joined()
    ids = [member.member_id for member in static]
    assert machine.leave(("", "i0"), ("", "i9"), (ids[0], "i1"), (ids[1], "i1")) == [
        NONE,
        UNKNOWN,
        FENCED_INSTANCE,
        NONE,
    ]
    assert set(beat.group.members) == {"N", ids[2]}


def test_those_that_leave_together_make_one_epoch(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    y = Classic(machine, "y")
    y.joined()
    epoch = beat.group.epoch
    assert machine.leave("z", "y", "z") == [NONE, NONE, NONE]
    assert beat.group.epoch == epoch + 1


def test_members_of_the_consumer_protocol_can_be_removed(machine: Any, beat: Consumers) -> None:
    beat("M", 0)
    beat("N", 0)
    assert machine.leave("N") == [NONE]
    assert set(beat.group.members) == {"M"}


def test_all_stay_when_the_log_refuses(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    with pytest.raises(KafkaError) as refused:
        machine.leave("z")
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert z.beat() == NONE
