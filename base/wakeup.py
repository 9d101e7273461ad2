"""One task's wait for an event with a timeout, at less than half the CPU time of an ``Event`` under ``move_on_after``.

Each record that a leader of three acknowledges needs three such waits, and a cancel scope costs 8 µs. The ends of all waits of a
loop are in one heap (``cancel_at``). A wait that has ended leaves its entry there until that comes up, or until more entries are
over than not.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from contextvars import Context
from typing import Protocol

import trio

from .presence import Wait, wait_while_present

_SPARE_ENTRIES = 256


class Wakeup:
    """An event that one task waits for, once. ``on_set`` is called in the step that sets it, before the task goes on."""

    __slots__ = ("_is_over", "_task", "is_set", "on_set")

    def __init__(self, on_set: Callable[[], None] | None = None) -> None:
        self.is_set = False
        self.on_set = on_set
        self._is_over = False
        self._task: trio.lowlevel.Task | None = None

    @property
    def is_waiting(self) -> bool:
        return self._task is not None

    def set(self) -> None:
        """It has happened: a task that waits goes on, one that comes does not wait."""
        self.is_set = True
        self.cancel()
        if self.on_set is not None:
            self.on_set()

    def cancel(self) -> None:
        """End the wait though it has not happened."""
        self._is_over = True
        task = self._task
        if task is not None:
            self._task = None
            trio.lowlevel.reschedule(task)

    async def wait(self, seconds: float = math.inf) -> bool:
        """Return when it has happened, after ``seconds``, or when the client of this task's request goes; whether it has."""
        wait_while_present(self)
        if self._is_over or seconds <= 0:
            await trio.lowlevel.checkpoint()
            return self.is_set
        if seconds < math.inf:
            cancel_at(trio.current_time() + seconds, self)
        self._task = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)
        return self.is_set

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class TimedWait(Wait, Protocol):
    """A wait that a timer may end."""

    @property
    def is_waiting(self) -> bool:
        """Whether it has begun and not ended yet."""
        ...


class _Timers:
    """The ends of all waits of a loop; ``run`` is its task."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TimedWait]] = []
        self._numbers = itertools.count()  # waits that end at the same time end in their order
        self._most = _SPARE_ENTRIES
        self._sleep = trio.CancelScope()

    def add(self, at: float, wait: TimedWait) -> None:
        heap = self._heap
        if len(heap) >= self._most:  # entries of waits that ended before their time would pile up
            heap[:] = [entry for entry in heap if entry[2].is_waiting]
            heapq.heapify(heap)
            self._most = 2 * len(heap) + _SPARE_ENTRIES
        heapq.heappush(heap, (at, next(self._numbers), wait))
        if at < self._sleep.deadline:
            self._sleep.deadline = at

    async def run(self) -> None:
        """Cancel waits whose time is over, until cancelled."""
        heap = self._heap
        while True:
            now = trio.current_time()
            while heap and (heap[0][0] <= now or not heap[0][2].is_waiting):
                wait = heapq.heappop(heap)[2]
                if wait.is_waiting:
                    wait.cancel()
            self._sleep = trio.CancelScope(deadline=heap[0][0] if heap else math.inf)
            with self._sleep:
                await trio.sleep_forever()


_of_this_loop: trio.lowlevel.RunVar[_Timers] = trio.lowlevel.RunVar("timers of waits")


def cancel_at(at: float, wait: TimedWait) -> None:
    """Cancel a wait at a time of trio's clock, if it still waits then. It must have begun when the caller next waits."""
    try:
        timers = _of_this_loop.get()
    except LookupError:
        timers = _Timers()
        _of_this_loop.set(timers)
        trio.lowlevel.spawn_system_task(timers.run, context=Context())
    timers.add(at, wait)
