"""Timers as data, against the simplest thing that could be right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.group_coordinator.timers import Timers

NAMES = st.sampled_from([("a",), ("b",), ("c",)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NAMES, st.integers(0, 20)),
        st.tuples(st.just("cancel"), NAMES),
        st.tuples(st.just("extend_all"), st.integers(1, 5)),
        st.tuples(st.just("pop"), st.integers(0, 30)),
    )
)


@given(STEPS)
def test_timers_behave_like_a_dictionary_of_deadlines(steps):
    timers = Timers()
    model: dict[tuple[str], float] = {}
    for step in steps:
        if step[0] == "set":
            timers.set(step[1], step[2])
            model[step[1]] = step[2]
        elif step[0] == "cancel":
            timers.cancel(step[1])
            model.pop(step[1], None)
        elif step[0] == "extend_all":
            timers.extend_all(step[1])
            model = {name: deadline + step[1] for name, deadline in model.items()}
        else:
            popped = timers.pop_expired(step[1])
            earliest = min(model.values(), default=None)
            if earliest is None or earliest > step[1]:
                assert popped is None
            else:
                assert model.pop(popped) == earliest
        assert timers.next_deadline() == min(model.values(), default=None)
        assert len(timers) == len(model)


def test_a_timer_moved_often_does_not_pile_up():
    timers = Timers()
    for deadline in range(10_000):
        timers.set(("session",), deadline)
    assert timers.next_deadline() == 9_999
    assert timers.pop_expired(9_999) == ("session",)
    assert timers.pop_expired(1e9) is None
