"""What the coordinator remembers of a consumer group: members, epochs with their reasons, targets, and how long they took."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.timeline import Event, EventKind

from .helpers.consumers import Consumers

K = EventKind
SECOND = 1000
SESSION_MS = 45_000


@pytest.fixture
def beat(machine: Any) -> Consumers:
    return Consumers(machine)


def events(beat: Consumers, since: int = 0) -> list[Event]:
    return list(beat.machine.timeline.of("g"))[since:]


def told(found: list[Event]) -> list[tuple[EventKind, int, str]]:
    return [(event.kind, event.epoch, event.member_id) for event in found]


def test_a_join_of_a_second_member_is_a_rebalance_that_ends_when_both_have_their_parts(beat: Consumers) -> None:
    beat("A", 0)
    alone = events(beat)
    assert told(alone) == [(K.JOINED, 2, "A"), (K.EPOCH, 2, ""), (K.TARGET, 2, ""), (K.SETTLED, 2, "")]
    joined, epoch, target, settled = alone
    assert (joined.client_id, joined.host, joined.detail) == ("client", "/127.0.0.1", "reads t")
    assert epoch.detail == "A joined, 1 member now"
    assert target.detail == "uniform, for 1 member"
    assert settled.duration_ms == 0
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    beat.machine.advance(3 * SECOND)
    beat("A", 2, {"t": [0, 1]})
    assert told(events(beat, 4)) == [(K.JOINED, 3, "B"), (K.EPOCH, 3, ""), (K.TARGET, 3, "")]
    beat("B", 3)
    *_, target, settled = events(beat)
    assert (target.kind, target.duration_ms) == (K.TARGET, 1 * SECOND)
    assert (settled.kind, settled.duration_ms) == (K.SETTLED, 4 * SECOND)
    count = len(events(beat))
    beat("A", 3)
    beat("B", 3)
    assert len(events(beat)) == count, "a heartbeat that changes nothing is no event"


def test_members_that_go_have_their_reasons(beat: Consumers) -> None:
    for member in "AB":
        beat(member, 0, rebalance_timeout=5 * SECOND)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    beat.machine.advance(5 * SECOND)
    before = len(events(beat))
    *_, late, epoch = events(beat)
    assert (late.kind, late.member_id) == (K.NOT_REVOKED, "A")
    assert "did not give up its partitions within its rebalance timeout" in late.detail
    assert (epoch.kind, epoch.epoch, epoch.detail) == (K.EPOCH, 4, "A is gone, 1 member left")
    beat.machine.advance(SESSION_MS)
    assert [(event.kind, event.detail) for event in events(beat, before)] == [
        (K.SESSION_ENDED, "it sent no heartbeat within its session timeout"),
        (K.EPOCH, "B is gone, 0 members left"),
        (K.EMPTIED, ""),
    ]
    beat("C", 0)
    before = len(events(beat))
    beat("C", -1)
    assert told(events(beat, before)) == [(K.LEFT, 7, "C"), (K.EPOCH, 7, ""), (K.EMPTIED, 7, "")]


def test_a_static_member_leaves_and_is_taken_over_from(beat: Consumers) -> None:
    beat("A", 0, instance="i")
    before = len(events(beat))
    beat("A", -2, instance="i")
    beat.machine.advance(2 * SECOND)
    beat("A2", 0, instance="i")
    left, took_over, settled = events(beat, before)
    assert (left.kind, left.member_id, left.detail) == (K.LEFT, "A", "a static member, which is expected back")
    assert (took_over.kind, took_over.member_id, took_over.detail) == (K.TOOK_OVER, "A2", "from A, as i")
    assert (settled.kind, settled.epoch, settled.duration_ms) == (K.SETTLED, 2, 2 * SECOND)


def test_an_epoch_has_its_reason(beat: Consumers) -> None:
    beat("A", 0)
    beat.machine.advance(SECOND)
    beat("A", 2, names=["t", "u"], owned={"t": [0, 1, 2, 3]}, rebalance_timeout=60_000)
    beat.topic("u", 2)
    beat.machine.advance(SECOND)
    beat("A", 3)
    assert [event.detail for event in events(beat) if event.kind is K.EPOCH][1:] == [
        "A reads other topics",
        "topics of the group were created, deleted or got partitions",
    ]


def test_nothing_is_noted_of_what_the_log_refuses(beat: Consumers) -> None:
    beat("A", 0)
    before = len(events(beat))
    for arguments in (("B", 0), ("A", -1)):
        beat.machine.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with pytest.raises(KafkaError):
            beat(*arguments)
    assert len(events(beat)) == before


def test_of_a_rebalance_that_another_coordinator_began_only_the_time_here_counts(beat: Consumers) -> None:
    beat("A", 0)
    beat("B", 0)
    beat.machine.advance(SECOND)
    beat("B", 2)
    beat("A", 2)
    beat.machine.restart()
    beat("A", 2, {"t": [0, 1]})
    beat.machine.advance(2 * SECOND)
    beat("B", 3)
    *_, settled = events(beat)
    assert (settled.kind, settled.duration_ms) == (K.SETTLED, 2 * SECOND)
