"""What takes a while to read, read once for all who ask at about the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

T = TypeVar("T")

FRESH_SECONDS = 1.0
_SHARE = 20
"""What is read again and again takes at most one part in so many of the time."""


class Cached(Generic[T]):
    """The newest result of ``read``. It is read again when it is asked for and older than a second, or 20 times what it took."""

    def __init__(self, read: Callable[[], Awaitable[T]]) -> None:
        self._read = read
        self._result: T | None = None
        self._until = 0.0
        self._reading: trio.Event | None = None

    @property
    def newest(self) -> T | None:
        """What was read last, without reading again; None before that."""
        return self._result

    async def get(self) -> T:
        """Raises what ``read`` raises."""
        while self._result is None or trio.current_time() >= self._until:
            if self._reading is None:
                return await self._renew()
            await self._reading.wait()
        return self._result

    def forget(self) -> None:
        """What was read is read again for the next who asks."""
        self._result = None

    async def _renew(self) -> T:
        reading = self._reading = trio.Event()
        began = trio.current_time()
        try:
            result = self._result = await self._read()
            now = trio.current_time()
            self._until = now + max(FRESH_SECONDS, _SHARE * (now - began))
            return result
        finally:  # a reader that is cancelled leaves it to the next who asks
            self._reading = None
            reading.set()
