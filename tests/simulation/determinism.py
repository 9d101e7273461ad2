"""``run``: one trio run whose schedule, clock and time are those of its seed, and nobody else's.

Trio shuffles the tasks of each turn of its loop. Its switch for tests (``_ALLOW_DETERMINISTIC_SCHEDULING``) has it shuffle
the same tasks in the same order when its random generator starts from the same seed. With no thread and no socket nothing
else decides what comes next, and ``MockClock`` jumps to the next deadline as soon as every task waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.testing

_run: Any = trio._core._run  # type: ignore[attr-defined]


def run(main: Callable[[], Awaitable[None]], seed: int) -> None:
    """Run ``main`` to its end."""
    allowed, state = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True
    _run._r.seed(seed)
    try:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        _run._r.setstate(state)
