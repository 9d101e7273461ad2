"""Averages, largest values and rates of about the last minute."""

from __future__ import annotations

import math

from ottla.base.recent_values import RecentValues


def test_nothing_is_known_of_no_values() -> None:
    values = RecentValues()
    assert math.isnan(values.average(5.0))
    assert math.isnan(values.largest(5.0))
    assert values.per_second(5.0) == 0


def test_values_count_for_about_a_minute() -> None:
    values = RecentValues()
    values.note(10, 100.0)
    values.note(20, 110.0)
    values.note(60, 131.0)
    assert values.average(131.0) == 30
    assert values.largest(131.0) == 60
    assert values.average(159.0) == 30
    assert values.average(161.0) == 60, "the first window is over"
    assert math.isnan(values.average(191.0))


def test_a_rate_is_of_half_a_minute_at_least() -> None:
    values = RecentValues()
    values.note(60, 100.0)
    assert values.per_second(101.0) == 2
    assert values.per_second(140.0) == 1.5
    values.note(60, 140.0)
    assert values.per_second(150.0) == 120 / 50
    assert values.per_second(160.0) == 2


def test_a_value_after_a_long_silence_stands_alone() -> None:
    values = RecentValues()
    values.note(1, 0.0)
    values.note(3, 1000.0)
    assert values.average(1000.0) == values.largest(1000.0) == 3
