"""A clock that can be moved forward: the wall time and the monotonic time of one broker in a thread of its own.

It is trio's clock of the broker's loop and the ``Clock`` of its parts at once, so that record timestamps, retention, group
timers and every sleep agree. Without ``advance`` it is the machine's clock, at the same cost.
"""

from __future__ import annotations

import time

import trio

_MOST_STEPS = 200


class AdjustableClock(trio.abc.Clock):
    """The machine's time, and what was skipped so far in seconds."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return time.perf_counter() + self.skipped

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return deadline - self.current_time()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self.skipped * 1000)

    # Of what really passes: the group coordinator takes a jump in this one for a loop that stood still.
    elapsed = staticmethod(time.perf_counter)

    async def advance(self, seconds: float) -> None:
        """Skip ``seconds`` in the loop that runs on this clock; returns when everything that fell due has happened.

        It goes from deadline to deadline, so that what follows from one event has its own time, but in no more than some
        200 steps: of periodic work over days, some rounds fall together.
        """
        from trio.testing import wait_all_tasks_blocked  # takes as long to import as half of the broker

        least = seconds / _MOST_STEPS
        while seconds > 0:
            await wait_all_tasks_blocked()
            step = min(seconds, max(trio.lowlevel.current_statistics().seconds_to_next_deadline, least))
            self.skipped += step
            seconds -= step
        await wait_all_tasks_blocked()
