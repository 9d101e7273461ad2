"""How the difference of two clocks follows from a request and its response."""

from __future__ import annotations

from ottla.cli.tools.doctor.clocks import ClockReading, lines, reading
from ottla.cli.tools.doctor.diagnosis import DiagnosisLevel


def test_the_truth_is_within_the_error() -> None:
    sent, received, ahead = 100.0, 100.5, 7.0
    for handled in (sent, 100.1, 100.25, received):
        their_ms = int((handled + ahead) * 1000)
        found = reading(sent, received, their_ms)
        assert abs(found.ahead_ms - ahead * 1000) <= found.error_ms
        assert found.error_ms == 250.5


def test_a_clock_is_off_only_beyond_the_error() -> None:
    def levels(*found: ClockReading) -> list[DiagnosisLevel]:
        return [line.level for line in lines(None, dict(enumerate(found)), range(len(found)))]

    ok, warning, problem = DiagnosisLevel.OK, DiagnosisLevel.WARNING, DiagnosisLevel.PROBLEM
    assert levels(ClockReading(1500, 1000)) == [ok]
    assert levels(ClockReading(1500, 10)) == [warning]
    assert levels(ClockReading(-40_000, 10)) == [problem]
    assert levels(ClockReading(-900, 10), ClockReading(900, 10)) == [ok, ok, warning], "from each other, not from here"


def test_brokers_that_were_not_measured_are_named() -> None:
    *_, last = lines((2, ClockReading(0, 1)), {}, [1, 2, 3])
    assert last.level is DiagnosisLevel.NOTE
    assert "brokers 1, 3" in last.what and "--probe-clocks" in last.mend
