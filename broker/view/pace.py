"""Work on the loop in slices, so that clients are not held up by what is only looked at.

A *unit* is one thing looked at (a partition, a commit, a record), a few microseconds. After ``most`` of them the loop goes
to other tasks, for as long as the slice took: what is looked at never takes more than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

UNITS_PER_SLICE = 500


class Pace:
    """Of one piece of work. ``slices`` is how many have ended, ``largest`` the units of the largest one."""

    def __init__(self, elapsed: Callable[[], float], most: int = UNITS_PER_SLICE) -> None:
        self._elapsed = elapsed
        self._most = most
        self._spent = 0
        self._began = elapsed()
        self.slices = 0
        self.largest = 0

    def is_due(self, units: int = 1) -> bool:
        """Count work that was done; whether it is time to ``rest``."""
        self._spent += units
        return self._spent >= self._most

    async def rest(self) -> None:
        """Let other tasks go first."""
        self.slices += 1
        self.largest = max(self.largest, self._spent)
        await trio.sleep(self._elapsed() - self._began)
        self._spent = 0
        self._began = self._elapsed()
