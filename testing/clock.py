"""A clock that can be moved forward: the wall time and the monotonic time of the brokers of one loop.

It is both trio's clock of that loop and the ``Clock`` of the brokers' parts, so that record timestamps, retention, group timers
and every sleep agree. Without ``advance`` it is the machine's clock, at the same cost.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import trio

_MOST_STEPS = 100

__tracebackhide__ = True  # a failure points at the caller's line


class AdjustableClock(trio.abc.Clock):
    """The machine's time plus the time that was skipped."""

    def __init__(self) -> None:
        self.skipped = 0.0
        """Seconds so far."""

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return time.perf_counter() + self.skipped

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self.skipped * 1000)

    # Without what was skipped: the group coordinator would take a jump of this clock for a loop that stood still.
    elapsed = staticmethod(time.perf_counter)

    async def advance(self, seconds: float) -> None:
        """Skip ``seconds`` in the loop that runs on this clock; returns when everything that fell due has happened.

        It goes from deadline to deadline, so that each event happens at its own time, but in no more than some 100 steps: over
        days, several rounds of periodic work become one.
        """
        from trio.testing import wait_all_tasks_blocked  # takes as long to import as half of the broker

        least = seconds / _MOST_STEPS
        while seconds > 0:
            await wait_all_tasks_blocked()
            step = min(seconds, max(trio.lowlevel.current_statistics().seconds_to_next_deadline, least))
            self.skipped += step
            seconds -= step
        await wait_all_tasks_blocked()


class BrokerClock:
    """The time of a broker or a cluster: record timestamps, retention, group sessions and every other timer."""

    def __init__(
        self,
        time: AdjustableClock,
        call: Callable[[Callable[[], Awaitable[None]]], None],
        do_upkeep: Callable[[], Awaitable[None]],
    ) -> None:
        """``call`` runs a function in the loop and waits for it; ``do_upkeep`` does the periodic work there."""
        self._time = time
        self._call = call
        self._do_upkeep = do_upkeep

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as the broker has it."""
        return self._time.now_ms()

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advance the clock; returns when everything that fell due has happened, including retention and expiry of offsets.

        Clients are not heard meanwhile: sessions shorter than the step end, and idle connections are closed. The clients' own
        clocks do not change. Raises ValueError for a negative time.
        """
        total = seconds + 60 * minutes + 3600 * hours + 86_400 * days
        if total < 0:
            raise ValueError("time does not go back")

        async def advance() -> None:
            await self._time.advance(total)
            await self._do_upkeep()

        self._call(advance)
