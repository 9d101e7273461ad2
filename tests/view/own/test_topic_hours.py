"""A topic's last hour has what came in each minute, as long as it is one of those that had something."""

from __future__ import annotations

from ottla.view.own.topic_hours import MINUTES, TopicHours


def test_each_minute_has_what_came_in_it() -> None:
    hours = TopicHours()
    assert hours.of("t", 100) == []
    hours.begin(100)
    hours.note("t", 100, (60, 600, 0))
    hours.note("t", 100, (60, 0, 60))
    hours.note("t", 103, (6, 0, 0))
    assert hours.of("t", 104) == [
        (101 * 60_000, 2.0, 10.0, 1.0),
        (102 * 60_000, 0.0, 0.0, 0.0),
        (103 * 60_000, 0.0, 0.0, 0.0),
        (104 * 60_000, 0.1, 0.0, 0.0),
    ]
    assert [point[1] for point in hours.of("quiet", 103)] == [0.0, 0.0, 0.0]


def test_a_minute_is_gone_after_an_hour() -> None:
    hours = TopicHours()
    hours.begin(0)
    hours.note("t", 5, (60, 0, 0))
    assert [point[1] for point in hours.of("t", 5 + MINUTES)].count(1.0) == 1
    assert [point[1] for point in hours.of("t", 6 + MINUTES)].count(1.0) == 0
    hours.note("t", 7 + 3 * MINUTES, (120, 0, 0))
    points = hours.of("t", 8 + 3 * MINUTES)
    assert len(points) == MINUTES
    assert [point[1] for point in points] == [0.0] * (MINUTES - 1) + [2.0]


def test_those_that_were_quiet_the_longest_make_room() -> None:
    hours = TopicHours(most=2)
    hours.begin(1)
    hours.note("a", 1, (60, 0, 0))
    hours.note("b", 1, (60, 0, 0))
    hours.note("a", 2, (60, 0, 0))
    hours.note("c", 2, (60, 0, 0))
    assert len(hours) == 2
    assert [[point[1] for point in hours.of(name, 3)] for name in "abc"] == [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    hours.forget("a")
    assert [point[1] for point in hours.of("a", 3)] == [0.0, 0.0]
