"""A value that is refreshed periodically while pages use it, by one read at a time for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")

_ATTENTION = 60.0
"""Seconds for which it goes on after it was asked for last."""
_PATIENCE = 3.0
"""So many seconds a page waits for what is not there yet, or is old."""
_OLD = 30.0
"""Seconds beyond the period."""
_RENEWAL = 10.0
_MISSED = 2
"""A value is current until so many readings should have come."""
_SHARE = 10
"""Reading takes at most one part in so many of the time."""


class Refreshed(Generic[T]):
    """A value that is read again and again.

    ``read`` returns None if nothing can be learnt; then the value stays.
    """

    def __init__(
        self, read: Callable[[], Awaitable[T | None]], period: float, value: T, *, idle_period: float | None = None
    ) -> None:
        """``period`` seconds lie between two readings, and ``idle_period`` while no page asks; None: then there are none."""
        self.value = value
        """What was read last; the given value before the first reading."""
        self.read_at: float | None = None
        """trio's time of that reading."""
        self._read = read
        self._period = period
        self._idle_period = idle_period
        self._current_until = -float("inf")
        self._asked_at = -float("inf")
        self._has_failed = False
        self._begun = self._ended = 0
        self._waited_for = 0
        self._hurry = trio.Event()
        self._wanted = trio.Event()
        self._done = trio.Event()

    @property
    def is_current(self) -> bool:
        """Whether the value is no older than it may be while it is read again and again."""
        return trio.current_time() < self._current_until

    async def get(self) -> T:
        """The value. Where it is old, a new one is waited for, for a few seconds, by the first who asks.

        It is not waited for where the last reading has failed.
        """
        self._asked_at = trio.current_time()
        self._wanted.set()
        is_old = self.read_at is None or self._asked_at - self.read_at > self._period + _OLD
        turn = self._ended + 1
        if is_old and not self._has_failed and self._waited_for < turn:
            with trio.move_on_after(_PATIENCE) as patience:
                await self._done.wait()
            if patience.cancelled_caught:
                self._waited_for = turn  # other pages do not wait for this slow reading as well
        return self.value

    async def renew(self) -> None:
        """Have it read anew, whatever its age, and wait for that for a few seconds."""
        self._asked_at = trio.current_time()
        # A reading that is under way may have begun before the change that the caller wants to see: wait for the next one.
        turn = self._begun + 1
        self._hurry.set()
        self._wanted.set()
        with trio.move_on_after(_RENEWAL):
            while self._ended < turn:
                await self._done.wait()

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            # Before the read, not after it: whoever sets an event during the read gets another reading.
            self._wanted, self._hurry = trio.Event(), trio.Event()
            self._begun += 1
            began = trio.current_time()
            value = await self._read()
            now = trio.current_time()
            self._has_failed = value is None
            if value is not None:
                self.value, self.read_at = value, now
            self._ended = self._begun
            self._done.set()
            self._done = trio.Event()
            pause = max(self._period, _SHARE * (now - began))
            if value is not None:
                self._current_until = now + _MISSED * max(pause, self._idle_period or 0)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self._hurry.wait()
        if self._hurry.is_set() or trio.current_time() - self._asked_at < _ATTENTION:
            return
        with trio.move_on_after(float("inf") if self._idle_period is None else max(self._idle_period - seconds, 0)):
            await self._wanted.wait()
