"""A broker's session at the cluster store: its states, and its replacement after expiry.

A session is *connected*; *suspected* when the store has not answered for two thirds of the session's time-out, so that it
may have ended the session already; and at last *expired*: its ephemeral nodes are gone, and nothing can be done with it
any more. ``BrokerSession`` is what the broker's parts hold: the present session, and after ``renew`` the next one. Watches
do not outlive a session, nor, in ZooKeeper, a suspicion: whatever had set some reads and sets them again (see ``membership``).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Protocol, TypeVar

import trio

from ....base.distribution import Distribution
from .cluster_store import ClusterStore, Operation, Result, SessionExpiredError, Stat, Watch, ZnodeWithStat

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SESSIONS_OF_A_STEP = 10
"""So many sessions a step of the start may need; a store that ends each at once would hold the start up for ever."""


class SessionState(Enum):
    """Where in its life a session is."""

    CONNECTED = "connected"
    SUSPECTED = "suspected"
    EXPIRED = "expired"


class StoreSession(ClusterStore, Protocol):
    """A session that tells its state."""

    @property
    def state(self) -> SessionState: ...

    @property
    def timeout(self) -> float:
        """Seconds for which the store keeps a session that it does not hear; infinite where it never ends by itself."""
        ...

    @property
    def changes(self) -> int:
        """How often the state has changed; two changes in a row can leave it as it was, but without watches."""
        ...

    async def wait_change(self, seen: int) -> int:
        """Return ``changes`` as soon as they are not those that were ``seen``."""
        ...


class BrokerSession:
    """A ``StoreSession`` that lasts: requests go to the present session, which ``renew`` replaces once it has expired.

    ``connects``, ``disconnects`` and ``expirations`` are counted by the ``changes`` of the sessions. Each session begins
    connected, and is connected and suspected in turn until it has expired.
    """

    def __init__(self, connect: Callable[[], Awaitable[StoreSession]], first: StoreSession) -> None:
        self._connect = connect
        self._session = first
        self._changes_before = 0
        self._connects_before = 0
        self._disconnects_before = 0
        self._expirations_before = 0
        self.times = Distribution()
        """How long requests took, in ms."""

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def state(self) -> SessionState:
        return self._session.state

    @property
    def timeout(self) -> float:
        return self._session.timeout

    @property
    def changes(self) -> int:
        return self._changes_before + self._session.changes

    @property
    def connects(self) -> int:
        """How often there was a connection to the store again, the first one counted."""
        return self._connects_before + 1 + (self._session.changes - self._has_expired) // 2

    @property
    def disconnects(self) -> int:
        """How often the connection was lost, or given up; that of a session that ends without having been suspected is not."""
        return self._disconnects_before + (self._session.changes - self._has_expired + 1) // 2

    @property
    def expirations(self) -> int:
        """How many sessions have expired."""
        return self._expirations_before + self._has_expired

    @property
    def _has_expired(self) -> bool:
        return self._session.state is SessionState.EXPIRED

    async def wait_change(self, seen: int) -> int:
        await self._session.wait_change(seen - self._changes_before)
        return self.changes

    async def renew(self) -> None:
        """Open a new session if the present one has expired. Raises StoreError."""
        if self._session.state is SessionState.EXPIRED:
            session = await self._connect()
            self._connects_before = self.connects
            self._disconnects_before = self.disconnects
            self._expirations_before = self.expirations
            # The new session counts from 0. With one more, who has seen the end of the old session hears of the new one.
            self._changes_before = self.changes + 1
            self._session = session

    async def take_step(self, step: Callable[[], Awaitable[T]]) -> T:
        """Take a step of the broker's start; once more, in a new session, when this one ends meanwhile. Raises StoreError.

        A step begins anew, so what it has read is of one session, and so are its watches.
        """
        for _ in range(_SESSIONS_OF_A_STEP - 1):
            await self.renew()
            try:
                return await step()
            except SessionExpiredError:
                logger.warning(
                    "The session at the cluster store ended while the broker started; the broker opens a new one"
                )
        await self.renew()
        return await step()

    async def get(self, path: str, watch: Watch | None = None) -> ZnodeWithStat:
        return await self._timed(self._session.get(path, watch))

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[ZnodeWithStat | None]:
        return await self._timed(self._session.get_many(paths, watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        return await self._timed(self._session.exists(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return await self._timed(self._session.children(path, watch))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return await self._timed(self._session.multi(operations))

    async def _timed(self, request: Awaitable[T]) -> T:
        began = trio.current_time()
        try:
            return await request
        finally:
            self.times.note((trio.current_time() - began) * 1000)

    async def close(self) -> None:
        await self._session.close()
