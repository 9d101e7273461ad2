"""One session at an ``EmbeddedStore``, with the life that ZooKeeper would give it.

======================  ==========================================  =====================================
since the link was cut  the broker                                  the store
======================  ==========================================  =====================================
at once                 sends, and waits: all is on hold            hears nothing
2/3 of the time-out     gives up the connection, is *suspected*     hears nothing
the time-out            is still suspected                          ends the session, with its nodes
healed before 2/3       gets what was on hold, late                 gets what was on hold
healed after that       connects; is connected again, or *expired*  gets nothing of what was on hold
======================  ==========================================  =====================================

These are ZooKeeper's rules (ClientCnxn: ``readTimeout`` is 2/3 of the session's; SessionTrackerImpl) and Kazoo's: a session
whose store is out of reach cannot know that it has ended, and all watches are lost with a connection, without a call.

When a connection is given up, a transaction under way ends with ConnectionLossError, whether it was done or not. A read
under way, and a transaction that was not sent yet, are sent when there is a connection again.

The session of a broker that was killed is *left*: requests that the dying broker still makes are not answered, and the store
keeps its nodes for the time-out. ``EmbeddedStore.run`` does for sessions what is due by the clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import trio

from ottla.controller.zookeeper.store.cluster_store import (
    ConnectionLossError,
    EventType,
    NoNodeError,
    Operation,
    Result,
    SessionExpiredError,
    Stat,
    StoreError,
    StoreFailedError,
    Watch,
    WatchEvent,
    ZnodeWithStat,
)
from ottla.controller.zookeeper.store.session import SessionState
from ottla.controller.zookeeper.store.session_life import SUSPECTED_AFTER, SessionLife, WatchTable
from ottla.controller.zookeeper.store.znode_tree import ZnodeTree

from .store_link import StoreLink

RECONNECT_SECONDS = 0.1
"""From the end of a connection to the next one, where the store is in reach."""

_APART_SECONDS = 1e-6
"""Between two requests of a session, so that they arrive in their order."""


class SharedStore(Protocol):
    """What a session needs of its store."""

    async def write(self, session_id: int, operations: Sequence[Operation]) -> list[Result]: ...

    async def sync(self) -> ZnodeTree: ...

    async def end_session(self, session_id: int) -> None: ...

    def time_changed(self) -> None:
        """The ``deadline`` of a session has changed."""
        ...


class EmbeddedSession(SessionLife):
    """A ``StoreSession``. ``timeout`` is in seconds; None for a session that never ends by itself."""

    def __init__(self, store: SharedStore, session_id: int, link: StoreLink, timeout: float | None) -> None:
        super().__init__(SessionState.CONNECTED, changes=0)
        self._store = store
        self._session_id = session_id
        self._link = link
        self.timeout = math.inf if timeout is None else timeout
        self._connection = 1
        self._reconnect_at = math.inf
        self._ends_at = math.inf
        self._has_ended = False
        self._arrives_at = 0.0
        self._unsent: dict[object, None] = {}  # requests that wait for a connection, in the order they were made
        self._on_hold: dict[object, None] = {}  # those under way that nothing lets through
        self._watches = WatchTable()
        self._held_events: list[WatchEvent] = []
        link.listeners[self._link_changed] = None

    @property
    def session_id(self) -> int:
        return self._session_id

    # --- requests -----------------------------------------------------------------------------------------------------

    async def get(self, path: str, watch: Watch | None = None) -> ZnodeWithStat:
        node = (await self._tree()).get(path)
        if node is None:
            raise NoNodeError(path)
        if watch is not None:
            self._watches.watch_node(path, watch)
        return node

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[ZnodeWithStat | None]:
        tree = await self._tree()
        nodes = [tree.get(path) for path in paths]
        if watch is not None:
            for path, node in zip(paths, nodes, strict=True):
                if node is not None:
                    self._watches.watch_node(path, watch)
        return nodes

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        node = (await self._tree()).get(path)
        if watch is not None:
            self._watches.watch_node(path, watch)
        return None if node is None else node.stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names = (await self._tree()).children(path)
        if watch is not None:
            self._watches.watch_children(path, watch)
        return names

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        connection = await self._connected()
        fate = self._link.next_fate()
        if fate is False:
            self.lose_connection()
        await self._arrive(connection)
        refused: StoreError | None = None
        results: list[Result] = []
        try:
            results = await self._store.write(self._session_id, operations)
        except StoreFailedError:
            raise
        except StoreError as error:
            refused = error
        if fate is True:
            self.lose_connection()
        await self._take_time()
        await self._return(connection)
        if refused is not None:
            raise refused
        return results

    async def _tree(self) -> ZnodeTree:
        """The tree as a read finds it at the store. What is read, and watched, before the next wait is consistent."""
        while True:
            connection = await self._connected()
            try:
                await self._arrive(connection)
                tree = await self._store.sync()
                await self._return(connection)
            except ConnectionLossError:
                continue
            return tree

    async def _connected(self) -> int:
        """The connection's number, once there is one. Raises SessionExpiredError, StoreFailedError."""
        await self._in_line(self._unsent, lambda: self._state is SessionState.SUSPECTED and not self._link.is_left)
        self._check_alive()
        return self._connection

    async def _arrive(self, connection: int) -> None:
        """Come to the store, after all that was sent before. Raises as ``_return``."""
        await self._take_time()
        await self._in_line(self._on_hold, lambda: self._is_held(connection))
        self._check_connection(connection)

    async def _return(self, connection: int) -> None:
        """Come back with an answer. Raises ConnectionLossError, SessionExpiredError, StoreFailedError."""
        while self._is_held(connection):
            await self._changed.wait()
        self._check_connection(connection)

    async def _take_time(self) -> None:
        if self._link.latency is not None:
            # In the order they were sent: a session's requests do not overtake each other.
            arrives_at = trio.current_time() + self._link.latency()
            self._arrives_at = max(arrives_at, self._arrives_at + _APART_SECONDS)
            await trio.sleep_until(self._arrives_at)

    def _is_held(self, connection: int) -> bool:
        is_usable = self._state is not SessionState.EXPIRED and self._connection == connection
        return is_usable and self._link.silent_since is not None and not self._link.is_left

    async def _in_line(self, line: dict[object, None], is_kept: Callable[[], bool]) -> None:
        """Wait until it is no longer ``is_kept``, and after all that were kept before; trio wakes tasks in any order."""
        if not line and not is_kept():
            return
        place = object()
        line[place] = None
        try:
            while is_kept() or next(iter(line)) is not place:
                await self._changed.wait()
        finally:
            del line[place]
            self._wake()

    def _check_connection(self, connection: int) -> None:
        self._check_alive()
        if self._connection != connection:
            raise ConnectionLossError(why="the connection to the cluster store was lost")

    def _check_alive(self) -> None:
        if self._link.is_left:
            raise StoreFailedError(why="the broker is no more")
        if self._state is SessionState.EXPIRED:
            raise SessionExpiredError()

    async def close(self) -> None:
        """End the session, at once where the store is in reach; else the store keeps it until its time is up."""
        silent_since = self._link.silent_since
        self._end()
        if silent_since is None:
            self._has_ended = True
            await self._store.end_session(self._session_id)
        else:
            self._ends_at = silent_since + self.timeout
            self._store.time_changed()

    # --- its life -----------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether the store has ended the session, and its broker knows that, or is dead."""
        return self._has_ended and (self._state is SessionState.EXPIRED or self._link.is_left)

    @property
    def deadline(self) -> float:
        """When, by trio's clock, ``take_time`` has something to do; infinite for never."""
        silent_since = self._link.silent_since
        if self._state is SessionState.EXPIRED:
            return math.inf if self._has_ended else self._ends_at
        if silent_since is None:
            return self._reconnect_at
        if self._state is SessionState.CONNECTED and not self._link.is_left:
            return silent_since + SUSPECTED_AFTER * self.timeout
        return math.inf if self._has_ended else silent_since + self.timeout

    async def take_time(self) -> None:
        """Do what is due at the ``deadline``."""
        if self._state is not SessionState.EXPIRED and self._link.silent_since is None:
            if self._has_ended:
                await self.expire()
            else:
                self.reconnect()
        elif self._state is SessionState.CONNECTED and not self._link.is_left:
            self.suspect()
        else:
            self._has_ended = True
            await self._store.end_session(self._session_id)

    async def expire(self) -> None:
        """The store ends the session, and it hears of that at once."""
        self._has_ended = True
        watches = self._end()
        await self._store.end_session(self._session_id)
        event = WatchEvent(EventType.SESSION_EXPIRED, "")
        for watch in watches:
            watch(event)

    def suspect(self) -> None:
        """The connection is given up: requests wait, and watches are lost without a call."""
        self._drop_watches()
        self._connection += 1
        self._reconnect_at = math.inf
        self._change(SessionState.SUSPECTED)

    def reconnect(self) -> None:
        """There is a connection again, and the session lives: requests are answered."""
        self._reconnect_at = math.inf
        self._change(SessionState.CONNECTED)

    def lose_connection(self) -> None:
        """The connection breaks; there is another one as soon as the store is in reach."""
        if self._state is SessionState.CONNECTED:
            self.suspect()
            self._plan_reconnect()

    def _link_changed(self) -> None:
        if self._link.is_left:
            self._drop_watches()
        elif self._link.silent_since is None:
            if self._state is SessionState.CONNECTED:
                self._take_held_events()
            else:
                self._plan_reconnect()
        self._wake()
        self._store.time_changed()

    def _plan_reconnect(self) -> None:
        if self._state is SessionState.SUSPECTED:
            self._reconnect_at = trio.current_time() + RECONNECT_SECONDS
            self._store.time_changed()

    def _end(self) -> list[Watch]:
        self._link.listeners.pop(self._link_changed, None)
        self._change(SessionState.EXPIRED)
        return self._drop_watches()

    def _change(self, state: SessionState) -> None:
        super()._change(state)
        self._store.time_changed()

    # --- watches ------------------------------------------------------------------------------------------------------

    def notify(self, event: WatchEvent) -> None:
        """Call, once, the watches that this change is for; later, while the link is cut."""
        if self._link.silent_since is not None:
            self._held_events.append(event)
            return
        self._watches.fire(event)

    def _take_held_events(self) -> None:
        held, self._held_events = self._held_events, []
        for event in held:
            self.notify(event)

    def _drop_watches(self) -> list[Watch]:
        self._held_events.clear()
        return self._watches.drop()
