"""Time slicing of the view's work on the event loop, so that clients are not delayed.

A *unit* is one thing looked at (a partition, a commit, a record), a few microseconds. After ``most`` of them the loop goes
to other tasks: each of them has a turn, so a client waits for one slice at most. What takes longer than ``PROMPT_SECONDS`` in
all then rests for as long as each slice took: it never takes more than half of the time.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

UNITS_PER_SLICE = 250
PROMPT_SECONDS = 0.25
"""Someone waits for a page; several that ask for the same at once share it, and it is asked for again later only (``cached``)."""


class Pace:
    """The pace of one piece of work."""

    def __init__(self, elapsed: Callable[[], float], most: int = UNITS_PER_SLICE) -> None:
        self._elapsed = elapsed
        self._most = most
        self._spent = 0
        self._began = elapsed()
        self._worked = 0.0
        self.slices = 0
        """The number of slices that have ended."""
        self.largest = 0
        """The number of units in the largest slice."""

    def is_due(self, units: int = 1) -> bool:
        """Count work that was done; whether it is time to ``rest``."""
        self._spent += units
        return self._spent >= self._most

    async def rest(self) -> None:
        """Let other tasks go first."""
        self.slices += 1
        self.largest = max(self.largest, self._spent)
        took = self._elapsed() - self._began
        self._worked += took
        await trio.sleep(took if self._worked > PROMPT_SECONDS else 0)
        self._spent = 0
        self._began = self._elapsed()
