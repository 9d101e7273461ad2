"""Lag and idle time of the event loop: a histogram of the lateness of a timer that is set four times a second."""

from __future__ import annotations

import time
from collections import deque

import trio

from ...base.distribution import Distribution

_BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_INTERVAL_SECONDS = 0.25
_MINUTE_SECONDS = 60.0


class LoopLag:
    """``seconds`` is the lateness of all timers so far, ``latest`` that of the last one."""

    def __init__(self) -> None:
        self.seconds = Distribution(_BOUNDS_SECONDS)
        self.latest = 0.0
        self._late: deque[float] = deque(maxlen=int(_MINUTE_SECONDS / _INTERVAL_SECONDS))
        self._used: deque[tuple[float, float]] = deque(maxlen=int(_MINUTE_SECONDS / _INTERVAL_SECONDS))

    @property
    def idle(self) -> float:
        """The share of the last minute, 0 to 1, in which the loop's thread used no CPU time; 1 until it has been measured."""
        if len(self._used) < 2:
            return 1.0
        (began, before), (ended, after) = self._used[0], self._used[-1]
        return min(max(1.0 - (after - before) / max(ended - began, _INTERVAL_SECONDS), 0.0), 1.0)

    @property
    def worst(self) -> float:
        """The largest lateness of the last minute."""
        return max(self._late, default=0.0)

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = trio.current_time() + _INTERVAL_SECONDS
            await trio.sleep_until(due)
            self.latest = trio.current_time() - due
            self.seconds.note(self.latest)
            self._late.append(self.latest)
            self._used.append((time.perf_counter(), time.thread_time()))
