"""The rate of fetches is an average over about the last minute, whenever it is read."""

from __future__ import annotations

import math

import pytest

from ottla.replication.fetch_rate import FetchRate


def fetching(seconds: float, per_second: int) -> FetchRate:
    rate = FetchRate(100.0)
    for number in range(int(seconds * per_second)):
        rate.note(100.0 + number / per_second)
    return rate


def test_a_steady_rate_is_known_after_five_seconds() -> None:
    rate = fetching(4, 10)
    assert rate.per_second(104.0) == 0
    for seconds in (5, 6, 300):
        assert fetching(seconds, 10).per_second(100.0 + seconds) == pytest.approx(10)


def test_it_fades_with_a_minute_when_nothing_comes() -> None:
    rate = fetching(300, 10)
    assert rate.per_second(460.0) == pytest.approx(10 / math.e)
    assert rate.per_second(460.0 + 600) < 0.001


def test_a_change_comes_into_it_by_and_by() -> None:
    rate = fetching(300, 10)
    for number in range(60 * 50):
        rate.note(400.0 + number / 50)
    assert 10 + 40 * (1 - 1 / math.e) == pytest.approx(rate.per_second(460.0))
