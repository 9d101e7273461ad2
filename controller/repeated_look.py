"""Following something in the store: a watch, and the loop that looks again after each change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import trio

from .store import SessionExpiredError, WatchEvent


class RepeatedLook:
    """``watch`` is to be set by every read of what is followed; ``run`` is for a task of its own."""

    def __init__(self) -> None:
        self._changed = trio.Event()

    def watch(self, event: WatchEvent) -> None:
        self._changed.set()

    def again(self) -> None:
        """Watches may have been lost."""
        self._changed.set()

    async def run(self, look: Callable[[], Awaitable[None]]) -> NoReturn:
        """Call ``look`` after each change. Raises what it raises, StoreFailedError at last; but for SessionExpiredError, since
        in the next session everything is read anew.
        """
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            try:
                await look()
            except SessionExpiredError:
                continue
