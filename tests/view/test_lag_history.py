"""Which lags grow, and which groups are without members, as series of readings tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pytest

from ottla.view.history import MINUTES
from ottla.view.lag_history import LagHistory, LagMinute, grown_from, has_stopped
from ottla.view.pace import Pace
from ottla.view.rows import GroupRow

MINUTE_MS = 60_000
BEGAN_MS = 1_000 * MINUTE_MS


def row(lag: int | None, read: int | None, members: int = 1, group: str = "g", unknown: int = 0) -> GroupRow:
    return GroupRow(group, "classic", "Stable", "consumer", "range", 1, None, members, 1, 1, lag, lag, unknown, 0, read)


def minutes(*each: tuple[int, int]) -> list[LagMinute]:
    """Of the least lag and the sum of ends in one minute after the other."""
    return [LagMinute(1000 + place, *values) for place, values in enumerate(each)]


def by_ends(*lags: int, rate: int) -> list[LagMinute]:
    """The same, where as many records come in each minute."""
    return minutes(*((lag, 10_000_000 + rate * place) for place, lag in enumerate(lags)))


GROWING = {
    "it reads nothing": by_ends(0, 500, 1000, 1500, 2000, rate=500),
    "it reads half of what comes": by_ends(70, 320, 570, 820, 1070, rate=500),
    "it reads most of what comes": by_ends(0, 12_000, 24_000, 36_000, 48_000, rate=100_000),
    "it has been far behind before": by_ends(*(10**9 + 60_000 * place for place in range(5)), rate=120_000),
    "not in each minute": by_ends(0, 600, 500, 900, 1300, rate=600),
    "it grows slower and slower": by_ends(0, 1000, 1600, 2000, 2200, rate=2000),
}
NOT_GROWING = {
    "nothing": [],
    "one minute": by_ends(5000, rate=100),
    "four minutes": by_ends(0, 500, 1000, 1500, rate=500),
    "small numbers": by_ends(0, 20, 45, 70, 99, rate=30),
    "it keeps up with many records": by_ends(3000, 5200, 4100, 6900, 8200, rate=600_000),
    "it shrinks": by_ends(9000, 8000, 7000, 6000, 5000, rate=500),
    "it stays": by_ends(*[8000] * 5, rate=500),
    "a leap in the second minute": by_ends(0, 50_000, 50_000, 50_000, 50_000, rate=12_500),
    "a leap in the last minute": by_ends(0, 0, 0, 0, 50_000, rate=12_500),
    "offsets were reset": by_ends(0, 0, 90_000, 91_000, 92_000, rate=500),
    "a batch job's teeth": by_ends(4000, 6000, 500, 2500, 4500, rate=2000),
    "nothing was read for long": [LagMinute(990, 0, 0), *by_ends(500, 1000, 1500, 2000, rate=500)],
}


@pytest.mark.parametrize("series", GROWING.values(), ids=GROWING)
def test_a_lag_that_grows(series: Sequence[LagMinute]) -> None:
    assert grown_from(series) == series[0]
    assert not has_stopped(series)


@pytest.mark.parametrize("series", NOT_GROWING.values(), ids=NOT_GROWING)
def test_a_lag_that_does_not(series: Sequence[LagMinute]) -> None:
    assert grown_from(series) is None


def test_a_minute_without_a_reading_is_no_reason_to_say_nothing() -> None:
    series = GROWING["it reads nothing"]
    assert grown_from([series[0], series[2], series[3], series[4]]) == series[0]


def test_growth_has_stopped_when_it_has_not_grown_for_two_minutes() -> None:
    grown = [LagMinute(2000 + place, 1000 * place, 1000 * place) for place in range(5)]
    assert not has_stopped([*grown, LagMinute(2005, 4500, 5000)])
    assert not has_stopped([*grown, LagMinute(2005, 4000, 5000)]), "a break"
    assert has_stopped([*grown, LagMinute(2005, 4000, 5000), LagMinute(2006, 4000, 6000)])
    assert has_stopped([*grown, LagMinute(2005, 3000, 5000)])


async def noted(history: LagHistory, readings: Iterable[tuple[float, GroupRow]]) -> None:
    """Each with when it was made: minutes after the beginning."""
    for at, reading in readings:
        await history.note(int(BEGAN_MS + at * MINUTE_MS), [reading], Pace(lambda: 0.0))


async def test_the_history_of_a_group_whose_lag_grows_and_is_read_at_last() -> None:
    history = LagHistory()
    for at in range(30):  # every ten seconds; it commits every minute, so its lag has teeth
        await noted(history, [(at / 6, row(at * 100 - at // 6 * 60 + 1, at // 6 * 60))])
    assert history.growth("g") is None, "the fifth minute is not over"
    await noted(history, [(5, row(2701, 300))])
    growth = history.growth("g")
    assert growth is not None
    assert (growth.since_ms, growth.began_at) == (BEGAN_MS, 1)
    await noted(history, [(5.2, row(0, 3100))])
    assert history.growth("g") is None, "at once"
    points = history.of("g", BEGAN_MS + 6 * MINUTE_MS)
    assert [at for at, _ in points] == [BEGAN_MS + (place + 1) * MINUTE_MS for place in range(6)]
    assert points[0][1] == pytest.approx(251)
    assert points[5][1] == pytest.approx(2701 / 2)


async def test_growth_is_told_until_it_stops_and_the_same_since() -> None:
    history = LagHistory()
    await noted(history, ((at / 2, row(at * 500, at * 10)) for at in range(20)))
    growth = history.growth("g")
    assert growth is not None
    assert growth.since_ms == BEGAN_MS
    await noted(history, ((10 + at / 2, row(9500, 190)) for at in range(8)))
    assert history.growth("g") is None, "nothing comes any more"


async def test_members_that_have_just_come_are_given_five_minutes() -> None:
    history = LagHistory()
    await noted(history, ((at / 2, row(at * 500, 0, members=0)) for at in range(12)))
    assert history.growth("g") is None
    assert history.without_members_since("g", BEGAN_MS + 6 * MINUTE_MS) == BEGAN_MS + MINUTE_MS // 2, "when it had lag"
    await noted(history, ((6 + at / 2, row(6000 + at * 500, 0)) for at in range(9)))
    assert history.growth("g") is None
    assert history.without_members_since("g", BEGAN_MS + 11 * MINUTE_MS) is None
    await noted(history, ((10.5 + at / 2, row(10500 + at * 500, 0)) for at in range(3)))
    growth = history.growth("g")
    assert growth is not None
    assert growth.since_ms == BEGAN_MS + 6 * MINUTE_MS


async def test_a_group_without_members_is_told_of_after_a_minute() -> None:
    history = LagHistory()
    await noted(history, [(0, row(5, 10, members=0))])
    assert history.without_members_since("g", BEGAN_MS + MINUTE_MS - 1) is None
    assert history.without_members_since("g", BEGAN_MS + MINUTE_MS) == BEGAN_MS
    await noted(history, [(2, row(4, 11, members=0))])
    assert history.without_members_since("g", BEGAN_MS + 2 * MINUTE_MS) is None, "somebody commits"
    await noted(history, [(3, row(0, 15, members=0))])
    assert history.without_members_since("g", BEGAN_MS + 9 * MINUTE_MS) is None, "nothing is left to read"


async def test_a_lag_that_is_not_known_is_not_guessed() -> None:
    history = LagHistory()
    await noted(history, ((at / 2, row(at * 500, 0)) for at in range(8)))
    await noted(history, [(4, row(3, 0, unknown=1))])
    await noted(history, ((5 + at / 2, row(5000 + at * 500, 0)) for at in range(6)))
    assert history.growth("g") is None
    values = [value for _, value in history.of("g", BEGAN_MS + 8 * MINUTE_MS)]
    assert math.isnan(values[4])
    assert values[0] == pytest.approx(500)
    assert values[7] == pytest.approx(7250)


async def test_what_can_be_told_needs_readings_without_a_break() -> None:
    history = LagHistory()
    assert "not read" in history.why_unknown(BEGAN_MS, 0)
    await noted(history, ((at, row(0, 1)) for at in range(3)))
    assert history.why_unknown(BEGAN_MS + 2 * MINUTE_MS, 5 * MINUTE_MS) == (
        "it takes 5 min, and groups have been watched for 2 min"
    )
    await noted(history, ((at, row(0, 1)) for at in range(3, 6)))
    assert history.why_unknown(BEGAN_MS + 5 * MINUTE_MS, 5 * MINUTE_MS) == ""
    assert "not read" in history.why_unknown(BEGAN_MS + 8 * MINUTE_MS, 5 * MINUTE_MS)
    await noted(history, [(8, row(0, 1))])
    assert "watched for 0 s" in history.why_unknown(BEGAN_MS + 8 * MINUTE_MS, 5 * MINUTE_MS)


async def test_memory_is_bounded_and_what_had_no_lag_for_an_hour_is_forgotten() -> None:
    history = LagHistory(most=2)
    rows = [row(0, 1, group="read"), *(row(7, 1, group=f"behind-{number}") for number in range(3))]
    await history.note(BEGAN_MS, rows, Pace(lambda: 0.0))
    assert (len(history), history.left_out) == (2, 1)
    assert [value for _, value in history.of("read", BEGAN_MS + MINUTE_MS)] == [0.0]
    gone_on = [row(7, 1, group="behind-0"), row(0, 8, group="behind-1")]
    for at in range(1, MINUTES + 2):
        await history.note(BEGAN_MS + at * MINUTE_MS, gone_on, Pace(lambda: 0.0))
    assert len(history) == 1
    points = history.of("behind-0", BEGAN_MS + (MINUTES + 2) * MINUTE_MS)
    assert len(points) == MINUTES
    assert {value for _, value in points} == {7.0}
