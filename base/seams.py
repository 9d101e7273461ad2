"""The interfaces between Ottla and the operating system, which a simulation replaces.

=========  ==========================  ==============================
world      real                        simulated
=========  ==========================  ==============================
wall time  ``SystemClock``             ``SimulatedClock``
threads    ``TrioWorkers``             ``InlineWorkers``
disk       ``log.disk.OsDisk``         ``log.disk.MemoryDisk``
network    ``base.tcp.TcpNetwork``     streams in memory
=========  ==========================  ==============================

Monotonic time needs no seam: it is ``trio.current_time()``, which trio's ``MockClock`` replaces. Randomness is a
``random.Random`` that the broker is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Clock(Protocol):
    """Wall time, as record timestamps and retention use it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may go back when the machine's clock does."""
        ...

    def elapsed(self) -> float:
        """Seconds of a clock that never goes back, to measure how long something took."""
        ...


class Workers(Protocol):
    """Runs what would block the loop (fsync, scans, decompression) in other threads."""

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call ``function`` in a thread and return its result; a cancellation waits until it has ended."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    elapsed = staticmethod(time.perf_counter)


class SimulatedClock:
    """Wall time that follows trio's clock from a chosen start, so that ``MockClock`` moves both."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self.start_ms = start_ms

    def now_ms(self) -> int:
        return self.start_ms + int(trio.current_time() * 1000)

    def elapsed(self) -> float:
        return trio.current_time()


class TrioWorkers:
    """Threads of trio's cache, at most ``limit`` at once."""

    def __init__(self, limit: int = 8) -> None:
        self._limiter = trio.CapacityLimiter(limit)

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        return await trio.to_thread.run_sync(function, *args, limiter=self._limiter)


class InlineWorkers:
    """No threads: the call runs on the loop, after one checkpoint, so that the same seed gives the same run."""

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        await trio.lowlevel.checkpoint()
        return function(*args)
