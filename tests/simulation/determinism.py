"""``run``: one trio run whose schedule, clock and time are those of its seed, and of nothing else.

Trio shuffles the tasks of each turn of its loop. Its switch for tests (``_ALLOW_DETERMINISTIC_SCHEDULING``) has it shuffle
the same tasks in the same order when its random generator starts from the same seed. With no thread and no socket nothing
else decides what comes next, and ``SimulationClock`` jumps to the next deadline as soon as every task waits.

That generator is one for all trio runs of the process, and another thread may have one, as a broker of a test's does: while
this run lasts, its thread has a generator of its own.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

_run: Any = trio._core._run  # type: ignore[attr-defined]


class _Generators:
    """Trio's random generator: one of this thread, from ``seed``, and ``others`` for every other thread."""

    def __init__(self, seed: int, others: random.Random) -> None:
        self._thread = threading.get_ident()
        self._own = random.Random(seed)
        self._others = others

    def shuffle(self, tasks: list[Any]) -> None:
        if len(tasks) > 1:
            (self._own if threading.get_ident() == self._thread else self._others).shuffle(tasks)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own if threading.get_ident() == self._thread else self._others, name)


class SimulationClock(trio.abc.Clock):
    """Time that stands still while a task can run, and else jumps to the next deadline, as trio's ``MockClock`` has it.

    It also has calls made at a time, without a task that waits for that.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def call_at(self, when: float, call: Callable[[], None]) -> None:
        """``call`` must not wait, nor raise. Those of one moment are made in the order in which they were asked for."""
        heapq.heappush(self._calls, (when, next(self._numbers), call))

    def start_clock(self) -> None:
        """Nothing to do."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Trio asks when every task waits: then the next thing happens."""
        calls = self._calls
        when = min(deadline, calls[0][0]) if calls else deadline
        if when == math.inf:
            return math.inf
        self._now = max(self._now, when)
        while calls and calls[0][0] <= self._now:
            heapq.heappop(calls)[2]()
        return 0


class _NoDescriptors:
    """Trio's I/O manager in a run that has no descriptors to wait for: the system is not asked in each turn of the loop."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def get_events(self, timeout: float) -> Any:
        return self._manager.get_events(timeout) if timeout > 0 else ()

    def process_events(self, events: Any) -> None:
        if events:
            self._manager.process_events(events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


async def _unobserved(main: Callable[[], Awaitable[None]]) -> None:
    """Run ``main`` without what trio does in each turn, and for each step of a task, for nothing here."""
    runner = _run.GLOBAL_RUN_CONTEXT.runner
    runner.io_manager = _NoDescriptors(runner.io_manager)
    runner.instruments = {}  # there are none; that is a UserDict, which is asked four times a step
    await main()


def run(main: Callable[[], Awaitable[None]], seed: int) -> None:
    """Run ``main`` to its end."""
    allowed, generator = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r = _Generators(seed, generator)
    try:
        trio.run(_unobserved, main, clock=SimulationClock())
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        _run._r = generator
