"""A cluster store under test, and how a test waits for what it tells: what the contracts of stores are written with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from ottla.controller.zookeeper.store.cluster_store import (
    Set,
    WatchEvent,
    ensure_paths,
)
from ottla.controller.zookeeper.store.session import SessionState, StoreSession

PATIENCE = 60.0
"""Seconds after which an expected event counts as missing."""


class Place(Protocol):
    """A store under test. ``session`` has a connection that can be disturbed, ``other`` one that cannot."""

    session: StoreSession
    other: StoreSession

    async def connect(self) -> StoreSession:
        """Open another session, with a connection that can be disturbed."""
        ...

    def cut(self) -> None:
        """Drop everything from now on, silently."""
        ...

    def heal(self) -> None: ...

    def break_connection(self) -> None:
        """Close the connection; another one is possible at once."""
        ...

    def lose_next_multi(self, *, is_executed: bool) -> None:
        """Break the connection when the next transaction is sent: before it is executed, or after."""
        ...


Rule = Callable[[Place], Awaitable[None]]


class Noted:
    """A watch that records its events."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self._told = trio.Event()

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)
        told, self._told = self._told, trio.Event()
        told.set()

    async def first(self) -> WatchEvent:
        with trio.fail_after(PATIENCE):
            while not self.events:
                await self._told.wait()
        return self.events[0]


async def until_state(session: StoreSession, state: SessionState) -> None:
    with trio.fail_after(PATIENCE):
        while session.state is not state:
            await session.wait_change(session.changes)


async def until_gone(session: StoreSession, path: str) -> None:
    while True:
        changed = Noted()
        if await session.exists(path, changed) is None:
            return
        await changed.first()


async def asked() -> None:
    """Wait until tasks that were just started have made their requests."""
    for _ in range(2):  # in the first, tasks run in any order
        await trio.lowlevel.checkpoint()


async def caught_up(place: Place) -> None:
    """Wait until both sessions have seen everything that was written before, and got its events."""
    for session in (place.session, place.other):
        await ensure_paths(session, ["/caught-up"])
        await session.multi([Set("/caught-up", b"")])
    for session in (place.session, place.other):
        await session.get("/caught-up")
