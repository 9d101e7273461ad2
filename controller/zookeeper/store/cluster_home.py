"""The location of a cluster's metadata in ZooKeeper, and the opening of a broker's session there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .session import StoreSession
from .zookeeper_settings import ZooKeeperSettings

if TYPE_CHECKING:
    from .zookeeper import ZooKeeper


class ClusterHome(Protocol):
    """The cluster's store, as a broker opens and closes it."""

    @property
    def zookeeper(self) -> str | None:
        """The ZooKeeper with the cluster's state, as ``zookeeper.connect`` names it; None when it is elsewhere."""
        ...

    async def open(self) -> None:
        """Make the store ready. Raises KafkaError, OSError, SettingError."""
        ...

    async def connect(self) -> StoreSession:
        """A new session. Raises StoreError."""
        ...

    def close(self) -> None:
        """Release what ``open`` took; safe to call when it was not called, or failed."""
        ...


class ZooKeeperHome:
    """A ZooKeeper, found by ``zookeeper.connect``. ``open`` makes the client, with its threads."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._zookeeper: ZooKeeper | None = None

    @property
    def zookeeper(self) -> str | None:
        return self._settings.connect

    async def open(self) -> None:
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
