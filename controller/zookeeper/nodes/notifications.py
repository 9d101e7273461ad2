"""Change notifications between brokers: numbered znodes that name the data to read again.

A broker that changes something writes it and, in the same transaction, a notification that names it. Every broker watches the
parent node. Notifications older than 15 minutes are removed by whichever broker looks next, as in Kafka
(``ZkNodeChangeNotificationListener``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ....base.seams import Clock
from ..store.cluster_store import ClusterStore, ConnectionLossError, Delete, NoNodeError, Watch, ZnodeWithStat
from .decoding import decoded

T = TypeVar("T")

NOTIFICATION_LIFETIME_MS = 15 * 60 * 1000


class Notifications:
    """The notifications below one node, as one broker follows them."""

    def __init__(self, store: ClusterStore, clock: Clock, folder: str, watch: Watch) -> None:
        self._store = store
        self._clock = clock
        self._folder = folder
        self._watch = watch
        self._last_seen = -1
        self._listed: Sequence[str] = ()

    async def skip(self) -> None:
        """Take all that are there as seen, because everything is about to be read. Raises StoreError."""
        self._listed = await self._store.children(self._folder, self._watch)
        self._last_seen = max(map(_number, self._listed), default=-1)

    async def unseen(self) -> list[tuple[str, ZnodeWithStat]]:
        """Those that came since, in their order, each with its path. Raises StoreError; then everything has to be read."""
        # The watch is set by the same read: what comes behind it calls the watch, so nothing is missed in between.
        self._listed = await self._store.children(self._folder, self._watch)
        names = sorted((name for name in self._listed if _number(name) > self._last_seen), key=_number)
        paths = [f"{self._folder}/{name}" for name in names]
        nodes = await self._store.get_many(paths)
        if names:
            self._last_seen = _number(names[-1])
        return [(path, node) for path, node in zip(paths, nodes, strict=True) if node is not None]

    async def remove_old(self) -> None:
        """Remove those that every broker has seen long ago. Raises StoreError."""
        paths = [f"{self._folder}/{name}" for name in self._listed]
        limit = self._clock.now_ms() - NOTIFICATION_LIFETIME_MS
        for path, node in zip(paths, await self._store.get_many(paths), strict=True):
            if node is not None and node.stat.created_ms < limit:
                try:
                    await self._store.multi([Delete(path)])
                except (NoNodeError, ConnectionLossError):
                    pass  # gone already, or it is removed another time


async def notifications(store: ClusterStore, folder: str, watch: Watch) -> list[str]:
    """The paths of the notifications below a node, in the order they came in; ``watch`` hears of the next one."""
    return [f"{folder}/{name}" for name in sorted(await store.children(folder, watch))]


async def read_notifications(
    store: ClusterStore, folder: str, decode: Callable[[bytes], T], watch: Watch
) -> dict[str, T | None]:
    """The notifications below a node by path, None for one that is not understood."""
    paths = await notifications(store, folder, watch)
    nodes = await store.get_many(paths)
    return {path: decoded(path, node, decode) for path, node in zip(paths, nodes, strict=True) if node is not None}


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1
