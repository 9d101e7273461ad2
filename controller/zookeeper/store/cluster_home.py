"""Where the state of a broker's cluster is kept, and how the broker opens a session at it.

``EmbeddedHome`` is a store of the broker's own, in its first data folder. ``ZooKeeperHome`` is a ZooKeeper, which brokers in
several processes share. ``SharedHome`` is a broker's place at a store that its owner has opened, in memory: a cluster in one
process has one for all of its brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ....base.seams import Clock, Workers
from ....log.disk import Disk, join
from ....log.log_folder import LogFolder
from .cluster_store import StoreFailedError
from .embedded_store import EmbeddedStore
from .session import StoreSession
from .state_files import DiskStateFiles
from .store_link import StoreLink
from .zookeeper_settings import ZooKeeperSettings

if TYPE_CHECKING:
    from .zookeeper import ZooKeeper

STATE_FOLDER = "__cluster_state"
"""The embedded cluster store's folder inside the first data folder; no topic may have this name's form (no partition number)."""

SESSION_TIMEOUT_MS = 18_000
"""How long a shared store keeps a session that it hears nothing of: Kafka's default of ``zookeeper.session.timeout.ms``."""


class ClusterHome(Protocol):
    """The cluster's store, as a broker opens and closes it."""

    def state_folder(self, folders: Sequence[LogFolder]) -> LogFolder | None:
        """The data folder with the cluster's state, without which the broker cannot go on; None when it is elsewhere."""
        ...

    @property
    def zookeeper(self) -> str | None:
        """The ZooKeeper with the cluster's state, as ``zookeeper.connect`` names it; None when it is elsewhere."""
        ...

    async def open(self, folders: Sequence[LogFolder]) -> None:
        """Make the store ready. Raises KafkaError, OSError, SettingError."""
        ...

    async def connect(self) -> StoreSession:
        """A new session. Raises StoreError."""
        ...

    def close(self) -> None:
        """Release what ``open`` took; safe to call when it was not called, or failed."""
        ...


class EmbeddedHome:
    """A store of this broker's own, with its journal in the first data folder."""

    zookeeper = None

    def __init__(self, disk: Disk, clock: Clock, workers: Workers) -> None:
        self._disk = disk
        self._clock = clock
        self._workers = workers
        self._files: DiskStateFiles | None = None
        self._store: EmbeddedStore | None = None

    def state_folder(self, folders: Sequence[LogFolder]) -> LogFolder | None:
        return folders[0]

    async def open(self, folders: Sequence[LogFolder]) -> None:
        folder = folders[0]
        self._files = DiskStateFiles(self._disk, join(folder.path, STATE_FOLDER))
        self._store = EmbeddedStore(self._clock, self._workers, self._files)
        self._store.on_failure = lambda error: _fail(folder, error)
        await self._store.open()

    async def connect(self) -> StoreSession:
        assert self._store is not None, "opened before"
        return self._store.session()

    def close(self) -> None:
        if self._files is not None:
            self._files.close()


class ZooKeeperHome:
    """A ZooKeeper, found by ``zookeeper.connect``. ``open`` makes the client, with its threads."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._zookeeper: ZooKeeper | None = None

    @property
    def zookeeper(self) -> str | None:
        return self._settings.connect

    def state_folder(self, folders: Sequence[LogFolder]) -> LogFolder | None:
        return None

    async def open(self, folders: Sequence[LogFolder]) -> None:
        from .zookeeper import (
            ZooKeeper,  # a slow import, which a broker without ZooKeeper does not need
        )

        self._zookeeper = ZooKeeper(self._settings)

    async def connect(self) -> StoreSession:
        assert self._zookeeper is not None, "opened before"
        return await self._zookeeper.connect()

    def close(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.close()


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

    def state_folder(self, folders: Sequence[LogFolder]) -> LogFolder | None:
        return None

    async def open(self, folders: Sequence[LogFolder]) -> None:
        pass

    async def connect(self) -> StoreSession:
        await self.link.wait_open()
        if self.link.is_left:
            raise StoreFailedError(why="the broker is no more")
        return self._store.session(self.link, self._session_timeout)

    def close(self) -> None:
        self.link.leave()


def _fail(folder: LogFolder, error: OSError) -> None:
    folder.fail("cannot write the cluster's state", error, is_half_done=True)
