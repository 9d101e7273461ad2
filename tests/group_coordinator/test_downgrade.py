"""The downgrade of a consumer group: its last member of the consumer protocol goes, and classic members stay."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.live_group import GroupState
from ottla.group_coordinator.records import CoordinatorRecord, build_batch, read_batch
from ottla.group_coordinator.timeline import EventKind
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.tests.group_coordinator.helpers.embedded_protocol import assigned, read_assigned, subscribed
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from ottla.wire.records import RecordBatch

from .helpers.classic import Classic
from .helpers.consumers import Consumers, topic_id

NONE, REJOIN, UNKNOWN = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID
OLD, NO_GROUP = ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND
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


def of_two(beat: Consumers, z: Classic) -> None:
    """N has 0 and 1, z has 2 and 3, both at epoch 3."""
    assert beat("N", 0) == (2, ALL)
    assert z.joined() == 3
    beat("N", 2)
    beat("N", 2, FIRST)
    assert (z.joined(), z.sync()) == (3, SECOND)
    beat.written()


def written(machine: Any) -> Any:
    """The last record."""
    *_, (_, record) = read_batch(RecordBatch(bytearray(machine.log.partitions[0][-1])), SkippedRecords())
    return record


def state(beat: Consumers) -> tuple[str, str]:
    return beat.group.type_name, beat.group.state_name


def test_the_last_member_of_the_consumer_protocol_leaves(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert machine.commit(6, topic_id=topic_id("t"), member_id="z", generation=3) == NONE
    beat.written()
    before = machine.log.batch_count
    assert beat("N", -1) == (-1, None)
    assert beat.written() == "t8N t8z t7N t7z t6 t5N t5z t4 t3 2"
    assert machine.log.batch_count == before + 1
    assert state(beat) == ("classic", "PreparingRebalance")
    assert (beat.refused("N", 3), z.beat(4), z.beat(2), z.beat()) == (NO_GROUP, OLD, OLD, REJOIN)
    assert z.sync() == REJOIN
    response = z.join(owned=SECOND).answer
    assert (response.generation_id, response.leader) == (4, "z")
    assert [member.member_id for member in response.members] == ["z"]
    assert machine.sync("z", 4, {"z": assigned(t=range(4))}).answer.error_code == NONE
    assert (machine.heartbeat("z", 4).error_code, machine.fetch().committed_offset) == (NONE, 6)
    kinds = [event.kind for event in machine.timeline.of("g")]
    at = kinds.index(EventKind.LEFT)
    assert kinds[at : at + 3] == [EventKind.LEFT, EventKind.DOWNGRADED, EventKind.REBALANCE]


def test_the_record_has_all_that_is_known_of_the_members(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    static = Classic(machine, instance="i", session=7_000, rebalance_timeout=8_000)
    metadata = subscribed("t", version=1)
    static.joined(names=("range", "own"), metadata=metadata)
    z = Classic(machine, "z")
    z.joined(names=("own", "range"))
    beat("N", 2, beat("N", 2)[1])
    assert (static.joined(metadata=metadata, names=("range", "own")), z.joined(names=("own", "range"))) == (4, 4)
    epoch = beat.group.epoch
    parts = {
        member: sorted(beat.group.members[member].assigned.of(topic_id("t"))) for member in (static.member_id, "z")
    }
    assert all(parts.values())
    beat("N", -1)
    record = written(machine)
    value = record.value
    assert record.key.group == "g"
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", epoch, "range")
    assert (value.leader, value.current_state_timestamp) == (static.member_id, machine.wall_ms)
    member, other = value.members
    assert (member.member_id, member.group_instance_id, member.client_id) == (static.member_id, "i", "client")
    assert (member.client_host, member.session_timeout, member.rebalance_timeout) == ("/127.0.0.1", 7_000, 8_000)
    assert bytes(member.subscription) == metadata
    for each, version in ((member, 1), (other, 3)):
        assert read_assigned(bytes(each.assignment)) == (version, {"t": parts[each.member_id]})
    assert beat.group.live.members["z"].protocols == [("own", subscribed("t")), ("range", subscribed("t"))]


def test_partitions_that_a_member_still_reads_are_not_given_away(machine: Any, beat: Consumers) -> None:
    """The group changes there, back and there again before the classic member has joined once."""
    c = Classic(machine)
    c.lead_alone(t=range(4))
    beat("N", 0)
    assert c.beat() == REJOIN
    beat("N", -1)
    assert read_assigned(bytes(written(machine).value.members[0].assignment))[1] == ALL
    assert beat("N", 0)[1] == {}


def test_partitions_that_a_member_has_to_give_up_are_not_given_away(machine: Any, beat: Consumers) -> None:
    c = Classic(machine)
    c.lead_alone(t=range(4))
    beat("N", 0)
    assert c.joined(owned=ALL) == 1
    assert c.sync() == SECOND
    beat("N", -1)
    assert read_assigned(bytes(written(machine).value.members[0].assignment))[1] == ALL
    assert beat("N", 0)[1] == {}


def test_expressions_go_with_the_group(machine: Any, beat: Consumers, z: Classic) -> None:
    beat("N", 0, subscribed_topic_regex="t.*")
    key = ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="t.*")
    value = ConsumerGroupRegularExpressionValue(topics=["t"], version=1, timestamp=1)
    machine.shard.write([CoordinatorRecord(key, value)], machine.now)
    z.joined()
    beat.written()
    beat("N", -1)
    assert beat.written() == "t8N t8z t7N t7z t6 t5N t5z t16 t4 t3 2"


def test_the_session_of_the_last_one_ends(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    for _ in range(5):
        machine.advance(8_900)
        assert z.beat() == NONE
    machine.advance(500)
    assert state(beat) == ("classic", "PreparingRebalance")
    assert z.beat() == REJOIN


def test_the_last_one_does_not_give_up_its_partitions(machine: Any, beat: Consumers, z: Classic) -> None:
    assert beat("N", 0, rebalance_timeout=5_000) == (2, ALL)
    assert z.joined() == 3
    assert beat("N", 2) == (2, FIRST)
    machine.advance(5_000)
    assert state(beat) == ("classic", "PreparingRebalance")


def test_the_last_one_is_removed_by_leavegroup(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert machine.leave("N") == [NONE]
    assert state(beat) == ("classic", "PreparingRebalance")
    assert z.joined(owned=SECOND) == 4


def test_it_stays_while_a_static_member_is_expected_back(machine: Any, beat: Consumers, z: Classic) -> None:
    assert beat("N", 0, instance="i") == (2, ALL)
    z.joined()
    assert beat("N", -2, instance="i") == (-2, None)
    assert state(beat)[0] == "consumer"
    for _ in range(6):
        machine.advance(8_000)
        z.beat()
    assert state(beat)[0] == "classic", "its session has ended"


def test_it_stays_while_another_one_is_there(beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat("M", 0)
    assert beat("N", -1) == (-1, None)
    assert state(beat)[0] == "consumer"


def test_it_stays_when_the_classic_members_go_first(beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat.machine.leave("z")
    assert beat("N", -1) == (-1, None)
    assert state(beat) == ("consumer", "Empty")


def test_it_stays_when_all_go_at_once(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    assert machine.leave("z", "N") == [NONE, NONE]
    assert state(beat) == ("consumer", "Empty")


def test_one_that_has_classic_members_alone_changes_when_one_goes(make_machine: Any) -> None:
    machine = make_machine({"assignment_interval_ms": 0})
    beat = Consumers(machine)
    beat("A", 0)
    others = [Classic(machine, name) for name in ("A", "y")]
    for other in others:
        other.joined()
    assert state(beat)[0] == "consumer", "a dynamic member that becomes classic does not change the group"
    assert machine.leave("y") == [NONE]
    assert state(beat) == ("classic", "PreparingRebalance")
    assert set(beat.group.live.members) == {"A"}


@pytest.mark.parametrize("policy", ["upgrade"])
def test_the_policy_forbids_it(make_machine: Any, policy: str) -> None:
    machine = make_machine({"migration_policy": policy, "assignment_interval_ms": 0})
    beat = Consumers(machine)
    beat("N", 0)
    assert Classic(machine, "z").joined() == 3
    assert beat("N", -1) == (-1, None)
    assert state(beat) == ("consumer", "Assigning")


def test_a_group_that_would_be_too_large(make_machine: Any) -> None:
    machine = make_machine({"assignment_interval_ms": 0}, group_max_size=1)
    beat = Consumers(machine)
    beat("N", 0)
    for name in "yz":
        Classic(machine, name).joined()
    assert beat("N", -1) == (-1, None)
    assert state(beat)[0] == "consumer"
    assert machine.leave("y") == [NONE]
    assert state(beat)[0] == "classic"


def test_timers_of_the_consumer_group_end(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    z.joined()
    assert ("member-sync", "g", "z") in machine.shard.timers
    beat("N", -1)
    timers = machine.shard.timers
    assert ("join", "g") in timers
    assert ("session", "g", "z") in timers
    assert len(timers) == 2


def test_members_that_do_not_join_again_are_dropped(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat("N", -1)
    machine.advance(9_999)
    assert z.beat() == REJOIN, "its session has begun anew"
    machine.advance(10_000)
    assert (z.beat(), state(beat)) == (UNKNOWN, ("classic", "Empty"))


def test_nothing_has_happened_when_the_log_refuses(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    before = beat.group
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert beat.refused("N", -1) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert beat.group == before
    assert (beat("N", 3), z.beat()) == ((3, None), NONE)


def test_a_session_that_ended_is_tried_again_when_the_log_refuses(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    for _ in range(5):
        machine.advance(8_900)
        z.beat()
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    machine.advance(500)
    assert state(beat)[0] == "consumer"
    machine.advance(500)
    assert state(beat)[0] == "classic"


# --- another coordinator ----------------------------------------------------------------------------------------------


def test_the_rebalance_is_begun_once_more_by_another_coordinator(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat("N", -1)
    machine.restart()
    assert state(beat) == ("classic", "PreparingRebalance")
    assert z.beat() == REJOIN
    assert z.join().answer.leader == "z"
    machine.restart()
    assert z.beat(4) == OLD, "the generation that began has no record"
    assert z.beat(3) == REJOIN
    assert z.joined() == 4
    assert z.sync(assignments={"z": assigned(t=range(4))}) == ALL
    machine.restart()
    assert (state(beat), z.beat()) == (("classic", "Stable"), NONE)
    assert z.sync() == ALL


def test_a_classic_group_after_an_empty_consumer_group_needs_no_rebalance(
    machine: Any, beat: Consumers, z: Classic
) -> None:
    beat("N", 0)
    beat("N", -1)
    z = Classic(machine)
    z.lead_alone(t=range(4))
    machine.restart()
    assert (state(beat), z.beat()) == (("classic", "Stable"), NONE)


def test_the_log_is_cut_before_the_downgrade(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    before = beat.group
    beat("N", -1)
    del machine.log.partitions[0][-1]
    machine.restart()
    assert beat.group == before


def test_the_tombstones_may_be_compacted_away(machine: Any, beat: Consumers, z: Classic) -> None:
    of_two(beat, z)
    beat("N", -1)
    record = written(machine)
    machine.log.partitions[0] = []
    machine.log.append(0, build_batch([record], machine.wall_ms, 0))
    machine.restart()
    assert state(beat) == ("classic", "Stable")


# --- a static member comes back as a classic one ----------------------------------------------------------------------


def test_a_static_member_becomes_classic_and_comes_back(machine: Any, beat: Consumers) -> None:
    assert beat("N", 0, instance="i") == (2, ALL)
    beat.written()
    c = Classic(machine, instance="i")
    assert c.joined(owned=ALL) == 2
    m = c.member_id
    assert len(m) == 22
    assert beat.written() == (f"t8N t7N t5N 5{m} 5{m} 7{m} 8{m}(0) 8{m}(2) t8{m} t7{m} t6 t5{m} t4 t3 2")
    assert state(beat) == ("classic", "Stable"), "it has what it had, so there is no rebalance"
    assert [event.kind for event in machine.timeline.of("g")][-2:] == [EventKind.TOOK_OVER, EventKind.DOWNGRADED]
    assert (c.beat(), beat.refused("N", 2, instance="i")) == (NONE, NO_GROUP)
    assert c.sync() == ALL
    assert ("session", "g", m) in machine.shard.timers
    assert len(machine.shard.timers) == 1

    assert beat("N2", 0, instance="i") == (2, ALL)
    assert state(beat) == ("consumer", "Stable")
    assert (c.beat(), c.sync(), machine.leave(m)) == (ErrorCode.FENCED_INSTANCE_ID,) * 2 + ([UNKNOWN],)
    assert machine.leave(("", "i")) == [NONE]
    assert state(beat) == ("consumer", "Empty")


def test_one_that_reads_other_topics_calls_for_a_rebalance(machine: Any, beat: Consumers) -> None:
    beat.topic("u", 1)
    beat("N", 0, instance="i")
    c = Classic(machine, instance="i")
    assert c.joined("u") == 0
    assert state(beat) == ("classic", "PreparingRebalance")
    assert c.sync() == OLD
    assert c.join("u").answer.generation_id == 3


def test_others_that_wait_for_partitions_get_them(machine: Any, beat: Consumers, z: Classic) -> None:
    beat("N", 0, instance="i")
    assert z.joined() == 3
    assert z.sync() == {}
    c = Classic(machine, instance="i")
    assert c.joined() == 3, "it has given up what it had"
    assert state(beat) == ("classic", "PreparingRebalance")
    assert z.beat() == REJOIN


def test_another_member_of_the_consumer_protocol_keeps_the_group(machine: Any, beat: Consumers) -> None:
    beat("N", 0, instance="i")
    beat("M", 0)
    assert Classic(machine, instance="i").joined() in (2, 3)
    assert state(beat)[0] == "consumer"


def test_a_classic_static_member_that_comes_back_changes_nothing(machine: Any, beat: Consumers) -> None:
    beat("N", 0)
    for _ in range(2):
        assert Classic(machine, instance="i").joined() == 3
    assert state(beat)[0] == "consumer"


def test_a_classic_static_member_that_comes_back_among_classic_ones_changes_nothing(
    machine: Any, beat: Consumers
) -> None:
    beat("A", 0)
    assert Classic(machine, instance="i").joined() == 3
    Classic(machine, "A").joined()
    assert beat.group.classic_member_count == beat.group.member_count == 2
    assert isinstance(Classic(machine, instance="i").joined(), int)
    assert state(beat)[0] == "consumer"


def test_the_same_process_changes_its_protocol(machine: Any, beat: Consumers) -> None:
    beat("N", 0, instance="i")
    c = Classic(machine, "N", instance="i")
    assert c.joined(owned=ALL) == 2
    assert state(beat) == ("classic", "Stable")
    assert c.sync() == ALL


def test_the_policy_forbids_it_for_static_members(make_machine: Any) -> None:
    machine = make_machine({"migration_policy": "upgrade"})
    beat = Consumers(machine)
    beat("N", 0, instance="i")
    assert Classic(machine, instance="i").joined() == 2
    assert state(beat)[0] == "consumer"


def test_a_group_that_would_be_too_large_with_the_static_member(make_machine: Any) -> None:
    machine = make_machine({"assignment_interval_ms": 0}, group_max_size=1)
    beat = Consumers(machine)
    beat("N", 0, instance="i")
    Classic(machine, "z").joined()
    Classic(machine, instance="i").joined()
    assert state(beat)[0] == "consumer"


def test_the_static_member_stays_when_the_log_refuses(machine: Any, beat: Consumers) -> None:
    beat("N", 0, instance="i")
    before = beat.group
    machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert Classic(machine, instance="i").joined() is ErrorCode.NOT_ENOUGH_REPLICAS
    assert beat.group == before
    assert beat("N", 2, instance="i") == (2, None)


# --- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", range(-1, 9))
def test_the_trace_of_a_migration(machine: Any, beat: Consumers, restarts: int) -> None:
    """With another coordinator after any one of its steps."""
    count = -1

    def step() -> None:
        nonlocal count
        count += 1
        if count == restarts:
            machine.restart()

    c = Classic(machine)
    assert c.joined() == 1
    assert beat("N", 0)[0] == 2
    step()
    assert c.beat(1) == REJOIN
    step()
    assert c.joined() == 2
    step()
    assert beat("N", 2)[0] == 2
    step()
    assert sorted(c.sync()["t"] + sorted(number for topic, number in beat.group.members["N"].assigned)) == ALL["t"]
    step()
    assert c.beat() == NONE
    step()
    assert beat("N", -1) == (-1, None)
    step()
    assert c.beat() == REJOIN
    step()
    response = c.join().answer
    assert (response.generation_id, response.leader) == (3, c.member_id)
    assert c.joined() == 3
    assert c.sync(assignments={c.member_id: assigned(t=range(4))}) == ALL
    step()
    assert c.beat() == NONE
    assert beat.group.live.state is GroupState.STABLE
