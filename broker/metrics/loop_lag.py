"""How late the event loop is: a timer is set four times a second, and how late it fires goes into a histogram."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import trio

BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_INTERVAL_SECONDS = 0.25


class LoopLag:
    """``latest`` in seconds; ``sum_seconds`` over all timers so far."""

    def __init__(self) -> None:
        self._buckets = [0] * (len(BOUNDS_SECONDS) + 1)
        self.sum_seconds = 0.0
        self.latest = 0.0

    def cumulative(self) -> list[int]:
        """How many timers were at most each bound late, and last how many there were."""
        return list(accumulate(self._buckets))

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = trio.current_time() + _INTERVAL_SECONDS
            await trio.sleep_until(due)
            self.latest = trio.current_time() - due
            self.sum_seconds += self.latest
            self._buckets[bisect_left(BOUNDS_SECONDS, self.latest)] += 1
