"""``run``: one trio run whose schedule and time are determined by its seed alone.

Trio shuffles the tasks of each turn of its loop. Its switch for tests (``_ALLOW_DETERMINISTIC_SCHEDULING``) has it shuffle
the same tasks in the same order when its random generator starts from the same seed. Without threads and sockets nothing
else decides what comes next, and ``SimulationClock`` jumps to the next deadline as soon as every task waits.

That generator is shared by all trio runs of the process, and another thread may have a run, such as that of a test's broker:
during this run, its thread has a generator of its own.
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
    """Time that stands still while a task can run, and otherwise jumps to the next deadline, like trio's ``MockClock``.

    It can also make calls at given times, without a task that waits.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def call_at(self, when: float, call: Callable[[], None]) -> None:
        """``call`` must not wait or raise. Calls for the same time are made in the order of their registration."""
        heapq.heappush(self._calls, (when, next(self._numbers), call))

    def start_clock(self) -> None:
        """Nothing to do."""

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Trio calls it when every task waits: then time jumps, and due calls are made."""
        calls = self._calls
        when = min(deadline, calls[0][0]) if calls else deadline
        if when == math.inf:
            return math.inf
        self._now = max(self._now, when)
        while calls and calls[0][0] <= self._now:
            heapq.heappop(calls)[2]()
        return 0


class _NoDescriptors:
    """Trio's I/O manager for a run without descriptors: it makes no system call in each turn of the loop."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def get_events(self, timeout: float) -> Any:
        return self._manager.get_events(timeout) if timeout > 0 else ()

    def process_events(self, events: Any) -> None:
        if events:
            self._manager.process_events(events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


class _Instruments(dict[str, list[Callable[[float], None]]]):
    """The hooks that there are, by name. Trio's own is a UserDict, which is read four times in each step."""

    _NAMES = ("before_io_wait", "after_io_wait")

    def add_instrument(self, instrument: Any) -> None:
        for name in self._NAMES:
            self.setdefault(name, []).append(getattr(instrument, name))

    def remove_instrument(self, instrument: Any) -> None:
        for name in self._NAMES:
            self[name].remove(getattr(instrument, name))

    def call(self, name: str, timeout: float) -> None:
        for hook in self[name]:
            hook(timeout)


async def _unobserved(main: Callable[[], Awaitable[None]]) -> None:
    """Run ``main`` without work of trio's loop that has no effect here."""
    runner = _run.GLOBAL_RUN_CONTEXT.runner
    runner.io_manager = _NoDescriptors(runner.io_manager)
    runner.instruments = _Instruments()
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
