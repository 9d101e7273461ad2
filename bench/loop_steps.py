"""The longest steps of a trio loop. A step is what one task does between two waits; nobody else runs meanwhile.

Collections of garbage are measured apart: they fall into whichever step is due.
"""

from __future__ import annotations

import gc
import heapq
import time
from typing import Any

import trio

_KEPT = 10


class Steps(trio.abc.Instrument):
    """The longest steps so far, as (CPU ms, wall ms, task). CPU is that of the loop's thread alone."""

    def __init__(self) -> None:
        self._longest: list[tuple[float, float, str]] = []
        self._began: tuple[float, float] | None = None
        """CPU and wall seconds; None before the first step that is seen from its beginning."""
        self._collecting_since = 0.0
        self._collected = 0.0
        """CPU seconds of the present step that were spent on collections."""
        self._longest_collection_ms = 0.0

    def watch_collections(self) -> None:
        """From now on, leave the time of collections out of the steps."""
        gc.callbacks.append(self._collection)

    def _collection(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            took = time.thread_time() - self._collecting_since
            self._collected += took
            self._longest_collection_ms = max(self._longest_collection_ms, took * 1000)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._collected = 0.0
        self._began = time.thread_time(), time.perf_counter()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._began is None:
            return
        cpu, wall = self._began
        cpu_ms = (time.thread_time() - cpu - self._collected) * 1000
        step = cpu_ms, (time.perf_counter() - wall) * 1000, task.name
        if len(self._longest) < _KEPT:
            heapq.heappush(self._longest, step)
        elif step > self._longest[0]:
            heapq.heapreplace(self._longest, step)

    def take(self) -> list[tuple[float, float, str]]:
        """Those since the last ``take``, longest first."""
        taken, self._longest = self._longest, []
        return sorted(taken, reverse=True)

    def take_longest_collection(self) -> float:
        """The CPU ms of the longest collection since the last time."""
        longest, self._longest_collection_ms = self._longest_collection_ms, 0.0
        return longest
