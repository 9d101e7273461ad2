"""An hour is kept and no more, in memory that is taken once; errors and requests likewise."""

from __future__ import annotations

import math

import pytest

from ottla.view.history import NOT_KNOWN, History, Ring


def test_a_ring_has_the_newest_points_oldest_first() -> None:
    ring = Ring(("a", "b"), 3)
    assert ring.points(["a"], 10) == []
    assert ring.newest("a") == 0
    for number in range(5):
        ring.note(number * 1000, {"a": number, "b": -number})
    assert ring.points(["b", "a"], 10) == [(2000, -2, 2), (3000, -3, 3), (4000, -4, 4)]
    assert ring.points(["a"], 1) == [(4000, 4)]
    assert ring.newest("b") == -4


def test_a_minute_is_the_mean_of_its_seconds() -> None:
    history = History(("a",))
    for second in range(150):
        history.note(second * 1000, {"a": second})
    assert history.minutes.points(["a"], 60) == [(59_000, 29.5), (119_000, 89.5)]


def test_what_is_not_known_is_a_gap_and_no_part_of_a_mean() -> None:
    history = History(("a", "b"))
    assert math.isnan(NOT_KNOWN)
    for second in range(120):
        history.note(second * 1000, {"a": second if 30 <= second < 60 else NOT_KNOWN, "b": 1})
    (_, first, _), (_, second, b) = history.minutes.points(["a", "b"], 60)
    assert first == 44.5
    assert math.isnan(second)
    assert b == 1
    assert math.isnan(history.seconds.points(["a"], 1)[0][1])


@pytest.mark.cpython
def test_a_day_takes_no_more_memory_than_an_hour() -> None:
    import tracemalloc

    history = History(("a", "b", "c"))
    assert history.nbytes == (3600 + 60) * 8 * 4
    for second in range(4000):
        history.note(second, {"a": 1.0, "b": 2.0, "c": 3.0})
    tracemalloc.start()
    for second in range(8000):
        history.note(second, {"a": 1.0, "b": 2.0, "c": 3.0})
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 10_000
