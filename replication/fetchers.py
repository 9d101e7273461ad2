"""The fetchers of this broker: a ``Fetcher`` for each broker that leads partitions followed here.

One fetcher per leader, whatever num.replica.fetchers says: they share one loop, and a second one would not be faster. Kafka:
ReplicaFetcherManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import trio

from ..base.partitions import NO_LEADER
from .broker_client import BrokerClient
from .fetcher import Fetcher
from .partition import Partition
from .quotas import Quota
from .settings import ReplicationSettings

logger = logging.getLogger(__name__)


class Fetchers:
    """Starts and ends fetchers as the replica manager says who leads; they fetch while ``run`` does."""

    def __init__(
        self,
        broker_id: int,
        connect: Callable[[int], BrokerClient],
        settings: ReplicationSettings,
        broker_epoch: Callable[[], int],
        quota: Quota,
    ) -> None:
        """``connect`` gives the way to a broker by its id and raises PeerUnavailableError where there is none.

        ``quota`` is for all leaders together.
        """
        self._broker_id = broker_id
        self._connect = connect
        self._settings = settings
        self._broker_epoch = broker_epoch
        self._quota = quota
        self._fetchers: dict[int, Fetcher] = {}
        self._scopes: dict[int, trio.CancelScope] = {}
        self._sources: dict[Partition, Fetcher] = {}
        self._nursery: trio.Nursery | None = None

    @property
    def all(self) -> Collection[Fetcher]:
        """One for each leader that is followed now."""
        return self._fetchers.values()

    def follow(self, partition: Partition) -> None:
        """Fetch from ``partition.leader_id`` under ``partition.leader_epoch`` from now on."""
        leader_id = partition.leader_id
        source = self._sources.get(partition)
        if source is not None and source.leader_id != leader_id:
            self.unfollow(partition)
        if leader_id == NO_LEADER:
            return
        fetcher = self._fetchers.get(leader_id) or self._start(leader_id)
        self._sources[partition] = fetcher
        fetcher.follow(partition)

    def unfollow(self, partition: Partition) -> None:
        """Fetch this partition no more, if it was; nothing that is under way is appended."""
        fetcher = self._sources.pop(partition, None)
        if fetcher is None:
            return
        fetcher.unfollow(partition)
        if fetcher.is_idle and self._fetchers.get(fetcher.leader_id) is fetcher:
            del self._fetchers[fetcher.leader_id]
            scope = self._scopes.pop(fetcher.leader_id, None)
            if scope is not None:
                scope.cancel()

    def _start(self, leader_id: int) -> Fetcher:
        fetcher = Fetcher(leader_id, self._broker_id, self._connect, self._settings, self._broker_epoch, self._quota)
        self._fetchers[leader_id] = fetcher
        if self._nursery is not None:
            self._begin(fetcher, self._nursery)
        return fetcher

    def _begin(self, fetcher: Fetcher, nursery: trio.Nursery) -> None:
        scope = self._scopes[fetcher.leader_id] = trio.CancelScope()

        async def fetch() -> None:
            with scope:
                await fetcher.run()

        nursery.start_soon(fetch)

    async def run(self) -> None:
        """Fetch until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for fetcher in self._fetchers.values():
                    self._begin(fetcher, nursery)
                await trio.sleep_forever()
            finally:
                self._nursery = None
