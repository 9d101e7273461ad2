"""A watch loop, which reads data in the cluster store again after each change and each failure."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import trio

from ..store.cluster_store import SessionExpiredError, StoreError, StoreFailedError, WatchEvent

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0

Look = Callable[[], Awaitable[None]]


class WatchLoop:
    """``watch`` is to be set by every read of what is followed; ``run`` is for a task of its own.

    ``what`` names what is followed, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._changed = trio.Event()
        self._is_all_new = False
        self._has_failed = False

    def watch(self, event: WatchEvent) -> None:
        self._changed.set()

    def resync(self) -> None:
        """Watches may have been lost: read everything again."""
        self._is_all_new = True
        self._changed.set()

    async def run(self, look: Look, look_at_all: Look) -> NoReturn:
        """Call ``look`` after each change, and ``look_at_all`` where more may have changed than watches tell.

        Raises StoreFailedError when the store has failed for good, and what they raise that is no StoreError. After
        SessionExpiredError everything is read again in the next session; after any other error of the store, such as a node
        that is missing or may not be read, after a pause, and again for as long as the error lasts.
        """
        while True:
            await self._changed.wait()
            # Both before the read: a change that comes while it is under way is read in the next turn.
            self._changed = trio.Event()
            is_all_new, self._is_all_new = self._is_all_new, False
            try:
                await (look_at_all if is_all_new else look)()
            except StoreFailedError:
                raise
            except SessionExpiredError:
                self._is_all_new = True
            except StoreError as error:
                self._log_failure(error)
                await trio.sleep(_RETRY_SECONDS)
                self.resync()
            else:
                self._log_recovery()

    def _log_failure(self, error: StoreError) -> None:
        """Log it once, and not at each try."""
        if not self._has_failed:
            logger.error("Changes of %s cannot be followed for now: %s", self._what, error)
        self._has_failed = True

    def _log_recovery(self) -> None:
        if self._has_failed:
            logger.warning("Changes of %s are followed again", self._what)
        self._has_failed = False
