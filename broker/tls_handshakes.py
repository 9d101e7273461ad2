"""How many handshakes of a listener are under way at a time: each takes memory and processor time before the client is known.

Where ``most`` are under way, the next one waits until one ends; it does not wait for clients that keep silent: the oldest one
is given up when it has had its ``_PATIENCE_SECONDS``. So a crowd of clients is served in turn, and clients that begin handshakes
only to leave them are no reason to turn others away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

MOST = 500
_PATIENCE_SECONDS = 2.0


class Handshakes:
    """Those of one listener."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._under_way: dict[trio.CancelScope, float] = {}  # when each began, the oldest first
        self._waiting = trio.lowlevel.ParkingLot()

    async def run(self, shake_hands: Callable[[], Awaitable[None]]) -> None:
        """Do it when it is its turn. Raises OSError where it was given up for others, and what the handshake raises."""
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
            raise OSError(f"more than {self._most} handshakes at a time, and this one did not come to its end")

    async def _wait_for_turn(self) -> None:
        while len(self._under_way) >= self._most:
            oldest, began = next(iter(self._under_way.items()))
            patience = began + _PATIENCE_SECONDS - trio.current_time()
            if patience <= 0:
                del self._under_way[oldest]
                oldest.cancel()
                return
            with trio.move_on_after(patience):
                await self._waiting.park()
