"""Turns of the event loop, shared between work that comes in masses and all other tasks.

A *turn* is what the loop runs between two looks at the network: one step of each task that is due. Where hundreds of clients send
at the same moment, as the members of a large group do, one turn has a step for each, and whoever comes next waits for all.
``LoopTurns`` spreads such steps over many turns: in each they take together as long as everything else in the turn before, but
not less than 0.75 ms and not more than 2 ms. So other work does not wait for all of them, and they do not starve beside it.

Invariants: those that wait are called in the order in which they came, in each turn at least one; while one waits, the loop does
not sleep. Nobody waits unless ``run`` runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

_LEAST_SECONDS = 0.00075
_MOST_SECONDS = 0.002
_FIRST_GUESS_SECONDS = 0.0001
_WEIGHT = 0.1
"""Of the newest step in what is expected of the next one."""


class LoopTurns(trio.abc.Instrument):
    """Where the steps of one kind of work wait for their turn. ``elapsed``: seconds of a clock that never goes back."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self.number = 0
        """Of the present turn."""
        self._began = 0.0
        self._spent = 0.0
        """Seconds of this turn that such steps have taken."""
        self._allowed = _LEAST_SECONDS
        self._expected = _FIRST_GUESS_SECONDS
        """Seconds of a step."""
        self._waiting: deque[trio.lowlevel.Task] = deque()
        self._due = 0
        """So many have waited, and are due in this turn or the next one: the last of them calls the next one."""
        self._is_running = False

    async def run(self) -> None:
        """Let steps wait for their turns, until cancelled; those that wait then go on at once."""
        trio.lowlevel.add_instrument(self)
        self._is_running = True
        try:
            await trio.sleep_forever()
        finally:
            self._is_running = False
            trio.lowlevel.remove_instrument(self)
            self._call(len(self._waiting))

    async def wait(self) -> bool:
        """Return when a step of this kind may be taken: at once, where this turn has time left and nobody waits.

        Whether it was another turn by then.
        """
        if not self._is_running or (self._spent < self._allowed and not self._due):
            return False
        if self._due:
            await self._wait_to_be_called()
        else:
            self._due = 1
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._go_on()
        return True

    async def _wait_to_be_called(self) -> None:
        task = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._waiting.remove(task)
            return trio.lowlevel.Abort.SUCCEEDED

        self._waiting.append(task)
        await trio.lowlevel.wait_task_rescheduled(abort)
        self._go_on()

    def _go_on(self) -> None:
        """One that was due is there. The loop would sleep without another task that is due."""
        self._due -= 1
        if not self._due:
            self._call(1)

    def _call(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting))):
            trio.lowlevel.reschedule(self._waiting.popleft())
            self._due += 1

    def note(self, number: int, seconds: float) -> None:
        """A step that began in turn ``number`` has taken so long. One that others ran in between says nothing."""
        if number == self.number:
            self._spent += seconds
            self._expected += _WEIGHT * (seconds - self._expected)

    def after_io_wait(self, timeout: float) -> None:
        """A turn begins."""
        self.number += 1
        self._began = self._elapsed()
        self._spent = 0.0
        if self._waiting:
            self._call(round(self._allowed / max(self._expected, 1e-6)) - self._due)

    def before_io_wait(self, timeout: float) -> None:
        """A turn is over."""
        others = self._elapsed() - self._began - self._spent
        self._allowed = min(max(_LEAST_SECONDS, others), _MOST_SECONDS)
