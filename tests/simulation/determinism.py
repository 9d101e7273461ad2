"""``run``: one trio run whose schedule, clock and time are those of its seed, and nobody else's.

Trio shuffles the tasks of each turn of its loop. Its switch for tests (``_ALLOW_DETERMINISTIC_SCHEDULING``) has it shuffle
the same tasks in the same order when its random generator starts from the same seed. With no thread and no socket nothing
else decides what comes next, and ``MockClock`` jumps to the next deadline as soon as every task waits.

That generator is one for all trio runs of the process, and another thread may have one, as a broker of a test's does: while
this run lasts, its thread has a generator of its own.
"""

from __future__ import annotations

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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own if threading.get_ident() == self._thread else self._others, name)


def run(main: Callable[[], Awaitable[None]], seed: int) -> None:
    """Run ``main`` to its end."""
    allowed, generator = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r = _Generators(seed, generator)
    try:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        _run._r = generator
