"""What the coordinator remembers of a group's comings and goings, with who, why and how long."""

from __future__ import annotations

from ottla.group_coordinator.timeline import EVENTS_PER_GROUP, EventKind, Timeline
from ottla.replication.coordinator_log import CoordinatorTime

K = EventKind


def kinds(machine, group: str = "g") -> list[EventKind]:
    return [event.kind for event in machine.timeline.of(group)]


def test_joins_generations_and_assignments_have_their_members_and_how_long_they_took(make_machine):
    machine = make_machine(group_initial_rebalance_delay_ms=3000)
    first, _ = machine.enter(client="one")
    machine.advance(1000)
    second, _ = machine.enter(client="two")
    machine.advance(5000)
    machine.sync(first, 1, {})
    events = machine.timeline.of("g")
    assert [event.kind for event in events] == [K.JOINED, K.REBALANCE, K.JOINED, K.GENERATION, K.ASSIGNED]
    assert [event.member_id for event in events] == [first, "", second, second, ""]
    assert events[2].client_id == "two"
    assert events[2].host == "/127.0.0.1"
    assert [event.duration_ms for event in events] == [None, None, None, 6000, 6000]
    assert events[4].epoch == 1


def test_leaves_and_ends_of_sessions_have_their_reason(machine):
    first, second = machine.stable(2)
    before = len(kinds(machine))
    machine.leave(second)
    machine.join(first)
    machine.sync(first, machine.group().generation.generation_id, {})
    machine.advance(20_000)
    ended = [K.SESSION_ENDED, K.REBALANCE, K.EMPTIED]
    assert kinds(machine)[before:] == [K.LEFT, K.REBALANCE, K.GENERATION, K.ASSIGNED, *ended]
    event = machine.timeline.of("g")[before + 4]
    assert event.member_id == first
    assert event.detail == "it sent no heartbeat within 10000 ms"


def test_who_was_late_is_named(machine):
    first, second = machine.stable(2, rebalance_timeout=3000, session=30_000)
    third, _ = machine.enter(rebalance_timeout=3000, session=30_000)
    machine.advance(1000)
    machine.join(first, rebalance_timeout=3000, session=30_000)
    machine.advance(2500)
    events = machine.timeline.of("g")
    (late,) = [event for event in events if event.kind is K.NOT_REJOINED]
    assert late.member_id == second
    generation = [event for event in events if event.kind is K.GENERATION][-1]
    assert generation.member_id == first
    assert generation.duration_ms == 3000
    machine.advance(3500)
    assert {event.member_id for event in machine.timeline.of("g") if event.kind is K.NOT_SYNCED} == {first, third}


def test_a_group_that_changes_all_the_time_pushes_out_no_other():
    timeline = Timeline(most=EVENTS_PER_GROUP + 10)
    timeline.note("quiet", 1, K.EMPTIED, CoordinatorTime(1, 1.0))
    for number in range(1000):
        timeline.note("busy", 1, K.EMPTIED, CoordinatorTime(number, 1.0))
    assert len(timeline.of("quiet")) == 1
    assert len(timeline.of("busy")) == EVENTS_PER_GROUP
    assert timeline.of("busy")[-1].at_ms == 999
    for number in range(50):
        timeline.note(f"other {number}", 1, K.EMPTIED, CoordinatorTime(number, 1.0))
    assert len(timeline) == EVENTS_PER_GROUP + 10
    assert timeline.of("quiet") == ()
    assert timeline.of("nobody") == ()
    assert timeline.counts == {K.EMPTIED: 1051}
