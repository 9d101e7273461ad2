"""Average, maximum and rate of the values recorded in about the last minute.

Two windows of 30 seconds are kept, as by Kafka's Avg, Max and Rate. No task runs for that: windows end when a value is noted, or
when something is read.
"""

from __future__ import annotations

import math

_WINDOW_SECONDS = 30.0


class _Window:
    __slots__ = ("began", "count", "largest", "sum")

    def __init__(self, began: float) -> None:
        self.began = began
        self.sum = 0.0
        self.count = 0
        self.largest = -math.inf


class RecentValues:
    """``now`` is in seconds that never go back."""

    __slots__ = ("_newest", "_older")

    def __init__(self) -> None:
        self._older: _Window | None = None
        self._newest: _Window | None = None

    def note(self, value: float, now: float) -> None:
        self._forget(now)
        window = self._newest
        if window is None or now - window.began >= _WINDOW_SECONDS:
            self._older = window
            window = self._newest = _Window(now)
        window.sum += value
        window.count += 1
        window.largest = max(window.largest, value)

    def average(self, now: float) -> float:
        """NaN where there is no value."""
        count = sum(window.count for window in self._windows(now))
        return sum(window.sum for window in self._windows(now)) / count if count else math.nan

    def largest(self, now: float) -> float:
        """NaN where there is no value."""
        return max((window.largest for window in self._windows(now)), default=math.nan)

    def per_second(self, now: float) -> float:
        """The sum of the values by the time in which they came, of which at least one window is counted."""
        windows = self._windows(now)
        if not windows:
            return 0.0
        return sum(window.sum for window in windows) / max(now - windows[0].began, _WINDOW_SECONDS)

    def _windows(self, now: float) -> list[_Window]:
        self._forget(now)
        return [window for window in (self._older, self._newest) if window is not None]

    def _forget(self, now: float) -> None:
        oldest = now - 2 * _WINDOW_SECONDS
        if self._older is not None and self._older.began <= oldest:
            self._older = None
        if self._newest is not None and self._newest.began <= oldest:
            self._newest = None
