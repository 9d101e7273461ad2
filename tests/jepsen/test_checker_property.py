"""A queue that does everything right is never found wrong, whatever its clients do; one error of it is found."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

from . import model
from .checker import Kind, check
from .history import Act, Event, Type
from .model import PARTITIONS, PRODUCERS, READERS, Queue

_PRODUCER = st.sampled_from(PRODUCERS)
_PARTITION = st.sampled_from(PARTITIONS)
Step = Callable[[Queue], None]


def _send(producer: str, partition: model.Partition, outcome: Type, is_done: bool) -> Step:
    return lambda queue: queue.send(producer, partition, outcome, is_done=is_done)


def _finish(producer: str, act: Act, is_known: bool) -> Step:
    return lambda queue: queue.finish(producer, act, Type.OK if is_known else Type.INFO)


def _poll(reader: tuple[str, str], partition: model.Partition, most: int) -> Step:
    return lambda queue: queue.poll(reader[0], partition, reader[1], most)


def _rebalance(reader: tuple[str, str], back: int) -> Step:
    return lambda queue: queue.rebalance(reader[0], back)


def _begin(producer: str) -> Step:
    return lambda queue: queue.begin(producer)


_OUTCOMES = st.sampled_from([Type.OK, Type.OK, Type.INFO, Type.FAIL])
_STEPS = st.one_of(
    st.builds(_send, _PRODUCER, _PARTITION, _OUTCOMES, st.booleans()),
    st.builds(_begin, _PRODUCER),
    st.builds(_finish, _PRODUCER, st.sampled_from([Act.COMMIT, Act.ABORT]), st.booleans()),
    st.builds(_poll, st.sampled_from(READERS), _PARTITION, st.integers(1, 4)),
    st.builds(_rebalance, st.sampled_from(READERS), st.integers(0, 3)),
)


def _history(steps: list[Step]) -> list[Event]:
    queue = Queue()
    for step in steps:
        step(queue)
    queue.finals()
    return queue.events


_HISTORIES = st.lists(_STEPS, max_size=40).map(_history)


@given(_HISTORIES)
def test_nothing_is_wrong_with_a_queue_that_does_everything_right(events: list[Event]) -> None:
    assert check(events) == []


@given(_HISTORIES, st.data())
def test_a_value_that_was_acknowledged_and_is_not_there_is_found(events: list[Event], data: st.DataObject) -> None:
    written = model.acknowledged(events)
    assume(written)
    event = data.draw(st.sampled_from(written))
    assert event.value is not None
    assert Kind.UNSEEN in _kinds(model.without(events, event.value))


@given(_HISTORIES, st.data())
def test_a_value_that_is_there_twice_is_found(events: list[Event], data: st.DataObject) -> None:
    written = model.acknowledged(events)
    assume(written)
    event = data.draw(st.sampled_from(written))
    assert event.value is not None
    assert Kind.DUPLICATE in _kinds(model.doubled(events, event.value))


@given(_HISTORIES, st.data())
def test_a_value_in_the_place_of_another_is_found(events: list[Event], data: st.DataObject) -> None:
    written = model.acknowledged(events)
    assume(written)
    event = data.draw(st.sampled_from(written))
    assert event.value is not None
    found = _kinds(model.replaced(events, event.value, 999_999))
    assert {Kind.PHANTOM, Kind.INCONSISTENT_OFFSET, Kind.UNSEEN} <= found


def _kinds(events: list[Event]) -> set[Kind]:
    return {violation.kind for violation in check(events)}
