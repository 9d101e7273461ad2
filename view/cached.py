"""A cache of slow reads, shared by all callers that ask at about the same time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import trio

logger = logging.getLogger(__name__)

T = TypeVar("T")

FRESH_SECONDS = 1.0
_SHARE = 20
"""What is read again and again takes at most one part in so many of the time."""
PATIENCE_SECONDS = 0.1
KEPT_SECONDS = 10.0
_SHARE_UNASKED = 100
_FEW = 1000


class Cached(Generic[T]):
    """The newest result of ``read``. It is read again when it is asked for and older than a second, or ``share`` times what it
    took.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], *, share: int = _SHARE) -> None:
        self._read = read
        self._share = share
        self._result: T | None = None
        self._until = 0.0
        self._reading: trio.Event | None = None
        self._took = 0.0

    @property
    def newest(self) -> T | None:
        """What was read last, without reading again; None before that."""
        return self._result

    async def get(self) -> T:
        """Raises what ``read`` raises."""
        # A loop, for the reader that is waited for may fail or be cancelled: then the first who wakes reads.
        while self._result is None or trio.current_time() >= self._until:
            if self._reading is None:
                return await self._renew()
            await self._reading.wait()
        return self._result

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being read, and what was is old."""
        return self._reading is None and trio.current_time() >= self._until

    def forget(self) -> None:
        """What was read is read again for the next who asks."""
        self._until = 0.0

    async def _renew(self) -> T:
        reading = self._reading = trio.Event()
        began = trio.current_time()
        try:
            result = self._result = await self._read()
            now = trio.current_time()
            self._took = now - began
            self._until = now + max(FRESH_SECONDS, self._share * self._took)
            return result
        finally:  # a reader that is cancelled leaves it to the next who asks
            self._reading = None
            reading.set()


class BackgroundCache(Cached[T]):
    """A cache of what many pages need, refreshed in the background.

    If its value has more than ``_FEW`` things by ``size``, a caller waits for at most 0.1 s, and then gets the value before. A
    smaller value is read while the caller waits, however busy the machine is.

    ``run`` refreshes the value when someone asks. While nobody asks, it does so every 10 s, or 100 times as long as reading took.
    ``parts`` are the caches that ``read`` reads from: a caller who asks for one of them never gets a value that was read for this
    one.
    """

    def __init__(
        self, read: Callable[[], Awaitable[T]], size: Callable[[T], int], parts: Sequence[Cached[Any]] = ()
    ) -> None:
        super().__init__(read)
        self._parts = parts
        self._size = size
        self._asked = trio.Event()
        self._renewed = trio.Event()
        self._is_running = False

    async def run(self) -> None:
        """Read until cancelled."""
        self._is_running, is_asked = True, False
        try:
            while True:
                try:
                    await (self._renew() if self._reading is None else self._reading.wait())
                except Exception:
                    logger.exception("the console's data could not be read")
                self._renewed.set()
                self._renewed = trio.Event()
                if not is_asked:  # it is only there for who does not get a newer one in time
                    self.forget()
                    for part in self._parts:
                        part.forget()
                with trio.move_on_after(max(KEPT_SECONDS, _SHARE_UNASKED * self._took)):
                    await self._asked.wait()
                is_asked, self._asked = self._asked.is_set(), trio.Event()
        finally:
            self._is_running = False

    async def get(self) -> T:
        known = self._result
        if not self._is_running or known is None or self._size(known) <= _FEW or trio.current_time() < self._until:
            return await super().get()
        self._asked.set()
        with trio.move_on_after(PATIENCE_SECONDS):
            await self._renewed.wait()
        return known if self._result is None else self._result
