"""How late the event loop is: a timer is set four times a second, and how late it fires goes into a histogram."""

from __future__ import annotations

import trio

from ...base.distribution import Distribution

_BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_INTERVAL_SECONDS = 0.25


class LoopLag:
    """``seconds`` is that of all timers so far, ``latest`` that of the last one."""

    def __init__(self) -> None:
        self.seconds = Distribution(_BOUNDS_SECONDS)
        self.latest = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = trio.current_time() + _INTERVAL_SECONDS
            await trio.sleep_until(due)
            self.latest = trio.current_time() - due
            self.seconds.note(self.latest)
