"""A broker's way to a store in memory: like a network it can be cut and healed, and a broker that dies leaves it behind.

A store in the same process is always in reach. So that sessions end there as they do at ZooKeeper, every session goes over its
broker's link, and does what ``embedded_session`` says when nothing passes there.

Only a simulation, or a test, does anything to a link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio


class StoreLink:
    """``latency`` gives the seconds that a request takes to the store, or its answer back; it is called for each."""

    def __init__(self, latency: Callable[[], float] | None = None) -> None:
        self.latency = latency
        self.listeners: dict[Callable[[], None], None] = {}
        """Called after each change, in their order; sessions of this link are among them."""
        self._cut_since: float | None = None
        self._is_left = False
        self._fates: deque[bool] = deque()
        self._healed = trio.Event()

    @property
    def is_left(self) -> bool:
        """Whether the broker is dead."""
        return self._is_left

    @property
    def silent_since(self) -> float | None:
        """When, by trio's clock, the store heard for the last time from this link's sessions; None while it hears them."""
        return self._cut_since

    def cut(self) -> None:
        """From now on nothing passes. What is under way is on hold: it arrives if the link is healed in time."""
        if self._cut_since is None:
            self._cut_since = trio.current_time()
            self._healed = trio.Event()
            self._tell()

    def heal(self) -> None:
        """What is on hold arrives. The link of a dead broker stays as it is."""
        if self._cut_since is not None and not self._is_left:
            self._cut_since = None
            self._healed.set()
            self._tell()

    def leave(self) -> None:
        """The broker is dead: no request is answered any more, and its sessions end at the store when their time is up."""
        self._is_left = True
        if self._cut_since is None:
            self._cut_since = trio.current_time()
        self._healed.set()
        self._tell()

    def lose_connection_at_next_multi(self, *, is_executed: bool) -> None:
        """Break the connection when the next transaction is sent (or the one after those asked for before).

        ``is_executed``: it was carried out and its answer is lost, else it was lost itself; its caller cannot tell.
        """
        self._fates.append(is_executed)

    def next_fate(self) -> bool | None:
        """For the transaction that is sent now: what ``lose_connection_at_next_multi`` said; None when all is well."""
        return self._fates.popleft() if self._fates else None

    async def wait_open(self) -> None:
        """Return once something passes, or the broker is dead."""
        while self._cut_since is not None and not self._is_left:
            await self._healed.wait()

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()
