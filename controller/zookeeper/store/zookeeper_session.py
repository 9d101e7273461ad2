"""A broker's ZooKeeper session: requests in order, watches, and the states of the session.

The connection is kept by another thread (``kazoo_client``), whose events arrive on the loop in the order in which they
happened. What follows from them is decided here, by the rules of ZooKeeper's own client (ClientCnxn).

Rules
-----
1. Requests go out in the order in which they were made, at most ``window`` without an answer. While there is no connection
   they wait; when the session has expired they all end, with SessionExpiredError.
2. When a connection is lost, so are its watches, without a call, and its answers: a read that was under way is sent again,
   before all that waits; a transaction ends with ConnectionLossError, whether it was carried out or not. A later request is
   carried out later, even if the loss was noticed late, so a read after a ConnectionLossError tells what happened.
3. A session that was not answered for two thirds of its time-out is *suspected*, whatever the connection looks like. The time
   counts from the sending of the last request that was answered, when ZooKeeper certainly knew the broker. A process that was
   stopped for that long sends nothing before it has connected again. While there are no requests the root is read, often
   enough for several reads within that time.
4. An answer arms its watch in the same step in which it arrives, so no event overtakes it.
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, cast

import trio

from .cluster_store import (
    ConnectionLossError,
    EventType,
    NoNodeError,
    Operation,
    Result,
    SessionExpiredError,
    Stat,
    StoreError,
    Watch,
    WatchEvent,
    ZnodeWithStat,
)
from .session import SessionState
from .session_life import SUSPECTED_AFTER, SessionLife, WatchTable

logger = logging.getLogger(__name__)

ASK_AFTER = 1 / 3
"""The part of the time-out after which ZooKeeper is asked for a sign of life, as by its own client (``ClientCnxn``).

If it were asked more often, the session of a killed broker would end later: the time-out counts from the last request.
"""

CLOSE_SECONDS = 5.0
"""How long closing a session may take; otherwise ZooKeeper ends it when its time-out is over."""


class Get(NamedTuple):
    """A node's data and its Stat, as a ``ZnodeWithStat``."""

    path: str


class Exists(NamedTuple):
    """A node's Stat; None where there is no node."""

    path: str


class Children(NamedTuple):
    """The names below a node."""

    path: str


class Multi(NamedTuple):
    """A transaction; its result is those of its operations."""

    operations: Sequence[Operation]


Request = Get | Exists | Children | Multi
Answer = object
Answered = Callable[[Answer, StoreError | None], None]


class ZooKeeperConnection(Protocol):
    """What a session needs of the client that keeps its connection. Only ``end_session`` waits.

    The client calls ``on_connected``, ``on_lost``, ``on_expired`` and ``on_event`` of the session, on the loop.
    """

    @property
    def session_id(self) -> int: ...

    @property
    def timeout(self) -> float:
        """Seconds, as agreed with ZooKeeper."""
        ...

    def send(self, request: Request, is_watched: bool, answered: Answered) -> None:
        """``answered`` is called once, on the loop. An error that ends the session is a SessionExpiredError."""
        ...

    def drop(self) -> None:
        """Break the connection; another one is made."""
        ...

    def stop(self) -> None:
        """Connect no more, in the background."""
        ...

    async def end_session(self, limit: float) -> None:
        """Tell ZooKeeper that the session is over and stop, within ``limit`` seconds."""
        ...


class _PendingRequest:
    """A request and its outcome."""

    __slots__ = ("answer", "done", "error", "is_given_up", "request", "sent_at", "watch")

    def __init__(self, request: Request, watch: Watch | None) -> None:
        self.request = request
        self.watch = watch
        self.sent_at = 0.0
        self.done = trio.Event()
        self.answer: Answer = None
        self.error: StoreError | None = None
        self.is_given_up = False

    def settle(self, answer: Answer, error: StoreError | None) -> None:
        self.answer, self.error = answer, error
        self.done.set()


class ZooKeeperSession(SessionLife):
    """A ``StoreSession``, whose ``changes`` count from its first connection. ``run_timers`` has to run while it lives."""

    def __init__(self, connection: ZooKeeperConnection, window: int) -> None:
        super().__init__(SessionState.SUSPECTED, changes=-1)
        self._connection = connection
        self._window = window
        self._connections = 1
        self._waiting: deque[_PendingRequest] = deque()  # as many as callers wait for
        self._in_flight: dict[_PendingRequest, None] = {}
        self._sent_at = self._known_at = trio.current_time()
        self._watches = WatchTable()

    @property
    def session_id(self) -> int:
        return self._connection.session_id

    @property
    def timeout(self) -> float:
        return self._connection.timeout

    # --- requests -----------------------------------------------------------------------------------------------------

    async def get(self, path: str, watch: Watch | None = None) -> ZnodeWithStat:
        return cast(ZnodeWithStat, await self._result(self._ask(Get(path), watch)))

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[ZnodeWithStat | None]:
        asked = [self._ask(Get(path), watch) for path in paths]
        found: list[ZnodeWithStat | None] = []
        try:
            for one in asked:
                try:
                    found.append(cast(ZnodeWithStat, await self._result(one)))
                except NoNodeError:
                    found.append(None)
        finally:
            for one in asked:
                one.is_given_up = True
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        return cast("Stat | None", await self._result(self._ask(Exists(path), watch)))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return cast("list[str]", await self._result(self._ask(Children(path), watch)))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return cast("list[Result]", await self._result(self._ask(Multi(operations))))

    async def close(self) -> None:
        """End the session, within CLOSE_SECONDS; where ZooKeeper is out of reach it ends when its time is up."""
        if self._state is not SessionState.EXPIRED:
            self._end()
            await self._connection.end_session(CLOSE_SECONDS)

    def _ask(self, request: Request, watch: Watch | None = None) -> _PendingRequest:
        asked = _PendingRequest(request, watch)
        if self._state is SessionState.EXPIRED:
            asked.settle(None, SessionExpiredError())
        else:
            self._waiting.append(asked)
            self._send_waiting()
        return asked

    async def _result(self, asked: _PendingRequest) -> Answer:
        try:
            await asked.done.wait()
        except trio.Cancelled:
            asked.is_given_up = True
            raise
        if asked.error is not None:
            raise asked.error
        return asked.answer

    def _send_waiting(self) -> None:
        if self._state is SessionState.CONNECTED and trio.current_time() >= self._suspected_at:
            self._give_up_connection()
        while self._waiting and len(self._in_flight) < self._window and self._state is SessionState.CONNECTED:
            asked = self._waiting.popleft()
            if not asked.is_given_up:
                self._in_flight[asked] = None
                self._sent_at = asked.sent_at = trio.current_time()
                answered = functools.partial(self._answered, asked, self._connections)
                self._connection.send(asked.request, asked.watch is not None, answered)

    def _answered(self, asked: _PendingRequest, connection: int, answer: Answer, error: StoreError | None) -> None:
        """Take an answer, unless it is of an earlier connection, whose requests have been settled or sent again."""
        if connection != self._connections or self._state is SessionState.EXPIRED:
            return
        if isinstance(error, SessionExpiredError):
            self.on_expired()
        elif isinstance(error, ConnectionLossError):
            self.on_lost()
        else:
            del self._in_flight[asked]
            # ZooKeeper has heard of the session at the earliest when the request was sent, not when the response is read.
            self._known_at = asked.sent_at
            if asked.watch is not None and not asked.is_given_up:
                self._arm(asked.request, asked.watch, error)
            asked.settle(answer, error)
            self._send_waiting()

    # --- its life -----------------------------------------------------------------------------------------------------

    def on_connected(self) -> None:
        """There is a connection again, and the session lives."""
        if self._state is SessionState.SUSPECTED:
            self._sent_at = self._known_at = trio.current_time()
            self._change(SessionState.CONNECTED)
            self._send_waiting()

    def on_lost(self) -> None:
        """There is no connection any more."""
        if self._state is SessionState.CONNECTED:
            self._watches.drop()
            self._connections += 1
            lost, self._in_flight = list(self._in_flight), {}
            for asked in reversed(lost):
                # A write may have been carried out, so only its caller can tell what to do. A read is sent again.
                if isinstance(asked.request, Multi):
                    asked.settle(None, ConnectionLossError(why="the connection to ZooKeeper was lost"))
                else:
                    self._waiting.appendleft(asked)
            self._change(SessionState.SUSPECTED)

    def on_expired(self) -> None:
        """ZooKeeper has ended the session."""
        if self._state is not SessionState.EXPIRED:
            watches = self._end()
            self._connection.stop()
            for watch in watches:
                watch(WatchEvent(EventType.SESSION_EXPIRED, ""))

    def _end(self) -> list[Watch]:
        for asked in (*self._in_flight, *self._waiting):
            asked.settle(None, SessionExpiredError())
        self._in_flight.clear()
        self._waiting.clear()
        self._change(SessionState.EXPIRED)
        return self._watches.drop()

    @property
    def _suspected_at(self) -> float:
        return self._known_at + SUSPECTED_AFTER * self.timeout

    def _give_up_connection(self) -> None:
        logger.warning("ZooKeeper has not answered for %.1f s", trio.current_time() - self._known_at)
        self.on_lost()
        self._connection.drop()

    async def run_timers(self) -> None:
        """Ask for signs of life, and suspect the session when there are none, until it has expired."""
        asked_at = 0.0
        while self._state is not SessionState.EXPIRED:
            if self._state is SessionState.SUSPECTED:
                await self._changed.wait()
                continue
            ask_at = max(self._sent_at, asked_at) + ASK_AFTER * self.timeout
            if trio.current_time() < min(ask_at, self._suspected_at):
                with trio.move_on_at(min(ask_at, self._suspected_at)):
                    await self._changed.wait()
                continue
            await trio.lowlevel.checkpoint()  # lets answers in that arrived while the loop was held up
            asked_at = trio.current_time()
            self._ask(Exists("/"))  # if it is too late for that, this suspects the session instead

    # --- watches ------------------------------------------------------------------------------------------------------

    def on_event(self, event: WatchEvent) -> None:
        """Call, once, the watches that this change is for."""
        self._watches.fire(event)

    def _arm(self, request: Request, watch: Watch, error: StoreError | None) -> None:
        match request:
            case Exists(path):
                self._watches.watch_node(path, watch)
            case Get(path) if error is None:
                self._watches.watch_node(path, watch)
            case Children(path) if error is None:
                self._watches.watch_children(path, watch)
