"""The number of fetches per second of a fetcher, averaged over about the last minute as by Kafka's meters.

Every five seconds their rate goes into the average with a weight that halves in 42 seconds (exponential decay with a time
constant of a minute). No task runs for that: it is done when a fetch is noted, or the rate is read.
"""

from __future__ import annotations

import math

_TICK_SECONDS = 5.0
_WEIGHT = 1 - math.exp(-_TICK_SECONDS / 60)


class FetchRate:
    """``now`` is in seconds that never go back."""

    __slots__ = ("_average", "_count", "_ticked_at")

    def __init__(self, now: float) -> None:
        self._ticked_at = now
        self._count = 0
        self._average: float | None = None

    def note(self, now: float) -> None:
        """A fetch was made."""
        if now - self._ticked_at >= _TICK_SECONDS:
            self._tick(now)
        self._count += 1

    def per_second(self, now: float) -> float:
        """0 in the first five seconds."""
        self._tick(now)
        return self._average or 0.0

    def _tick(self, now: float) -> None:
        ticks = int((now - self._ticked_at) // _TICK_SECONDS)
        if ticks > 0:
            latest = self._count / _TICK_SECONDS
            average = latest if self._average is None else self._average + _WEIGHT * (latest - self._average)
            self._average = average * (1 - _WEIGHT) ** (ticks - 1)  # nothing came in the others
            self._ticked_at += ticks * _TICK_SECONDS
            self._count = 0
