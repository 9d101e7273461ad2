"""A broker's place at the double of a ZooKeeper, which its owner has opened, in memory."""

from __future__ import annotations

from ottla.controller.zookeeper.store.cluster_store import StoreFailedError
from ottla.controller.zookeeper.store.session import StoreSession

from .embedded_store import EmbeddedStore
from .store_link import StoreLink

SESSION_TIMEOUT_MS = 18_000
"""How long the store keeps a session that it hears nothing of: Kafka's default of ``zookeeper.session.timeout.ms``."""


class SharedHome:
    """The place of one broker, from its start to its end, at a store that several brokers use and none of them owns.

    The sessions it opens go over ``link``. A test kills a broker with ``link.leave`` first: the sessions are left open, and the
    store removes their ephemeral nodes after the session timeout. ``EmbeddedStore.run`` has to run for that.
    """

    zookeeper = None

    def __init__(
        self, store: EmbeddedStore, link: StoreLink | None = None, session_timeout_ms: int = SESSION_TIMEOUT_MS
    ) -> None:
        self.link = link or StoreLink()
        self._store = store
        self._session_timeout = session_timeout_ms / 1000

    async def open(self) -> None:
        pass

    async def connect(self) -> StoreSession:
        await self.link.wait_open()
        if self.link.is_left:
            raise StoreFailedError(why="the broker is no more")
        return self._store.session(self.link, self._session_timeout)

    def close(self) -> None:
        self.link.leave()
