"""Lines that would be the same again and again: one a minute, with their number."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.repeated_lines import INTERVAL_SECONDS, RepeatedLines, sum_up_while_running
from ottla.broker.listeners.monitor import closed_more


def lines(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """The messages that hold all of these words."""
    return [text for record in caplog.records if all(word in (text := record.getMessage()) for word in words)]


class Time:
    """Seconds that go by when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_kind_has_a_line_a_minute_while_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    repeated = RepeatedLines(time, closed_more)
    assert repeated.is_first("host", "garbage")
    for _ in range(3):
        assert not repeated.is_first("host", "garbage")
    assert repeated.is_first("other", "garbage")
    time.now += INTERVAL_SECONDS
    repeated.sum_up()
    assert [record.getMessage() for record in caplog.records] == ["closed 3 more connections from host: garbage"]
    assert not repeated.is_first("host", "garbage")
    time.now += INTERVAL_SECONDS
    repeated.sum_up()
    assert len(caplog.records) == 2
    time.now += INTERVAL_SECONDS
    assert repeated.is_first("host", "garbage")  # after a quiet minute it is new
    assert len(caplog.records) == 2


async def test_counts_are_written_as_time_goes_by_and_at_the_end(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (RepeatedLines(trio.current_time, closed_more) for _ in range(2))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sum_up_while_running, first, second)
        for repeated, host in ((first, "one"), (second, "two")):
            assert [repeated.is_first(host, "garbage") for _ in range(3)] == [True, False, False]
        await trio.sleep(INTERVAL_SECONDS / 2)
        assert not caplog.records
        await trio.sleep(INTERVAL_SECONDS)
        assert lines(caplog, "closed 2 more connections from one", "garbage")
        assert lines(caplog, "closed 2 more connections from two", "garbage")
        assert not first.is_first("one", "garbage")
        nursery.cancel_scope.cancel()
    assert lines(caplog, "closed 1 more connection from one", "garbage")
    assert len(caplog.records) == 3


def test_what_is_remembered_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    repeated = RepeatedLines(Time(), closed_more)
    of_one_host = sum(repeated.is_first("host", f"a frame of {size} bytes") for size in range(1000))
    of_many_hosts = sum(repeated.is_first(f"host {number}", "garbage") for number in range(10_000))
    assert of_one_host < 20
    assert of_many_hosts < 300
    repeated.sum_up_all()
    assert len(caplog.records) < 10
    assert sum(int(record.getMessage().split()[1]) for record in caplog.records) == 11_000 - of_one_host - of_many_hosts
