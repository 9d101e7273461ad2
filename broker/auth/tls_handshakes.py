"""A limit on a listener's concurrent TLS handshakes, which take memory and CPU time before a client is known.

Where ``most`` are under way, the next one waits until one ends. If none ends, the oldest one is given up once it has had
``_PATIENCE_SECONDS``. So many clients at once are served in turn, and clients that begin handshakes without finishing them do
not keep others out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

MOST = 500
_PATIENCE_SECONDS = 2.0


class Handshakes:
    """The handshakes of one listener."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._under_way: dict[trio.CancelScope, float] = {}  # when each began, the oldest first
        self._waiting = trio.lowlevel.ParkingLot()

    async def run(self, shake_hands: Callable[[], Awaitable[None]]) -> None:
        """Wait for a place, then run the handshake. Raises OSError where it was given up, and what the handshake raises."""
        await self._wait_for_turn()
        scope = trio.CancelScope()
        self._under_way[scope] = trio.current_time()
        try:
            with scope:
                await shake_hands()
        finally:
            if self._under_way.pop(scope, None) is not None:
                self._waiting.unpark()
        if scope.cancelled_caught:
            raise OSError(f"more than {self._most} handshakes at a time, and this one was the slowest")

    async def _wait_for_turn(self) -> None:
        while len(self._under_way) >= self._most:
            oldest, began = next(iter(self._under_way.items()))
            patience = began + _PATIENCE_SECONDS - trio.current_time()
            if patience <= 0:
                # Removed here and not by its own task, which runs later: the place is this one's, and not another waiter's.
                del self._under_way[oldest]
                oldest.cancel()
                return
            with trio.move_on_after(patience):
                await self._waiting.park()
