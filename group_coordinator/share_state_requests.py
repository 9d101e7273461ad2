"""The requests of the group coordinator to the share coordinator: to begin with partitions, to delete states, to sum up.

Heartbeats do not wait for it. A member that joins makes its partitions *initializing*, which is a record; once that is committed,
the share coordinator is asked, and what it has begun is *initialized* by the next record. Where it refuses or takes too long
(``group.share.initialize.retry.interval.ms``), the partitions are taken out of the record, and the next heartbeat begins again. A
coordinator that takes the group over finds nobody at work, so its first heartbeat asks for all that is not initialized.

What is asked for one group has its turn, so that a deletion and a beginning of the same state do not cross.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..replication.coordinator_log import CoordinatorTime, Flush
from ..replication.coordinator_shards import CoordinatorShards
from ..share_coordinator.state import NOT_BEGUN, SharePartitionKey, ShareStateStore
from .shard import GroupCoordinatorShard
from .share_group_records import ShareGroupChange
from .share_group_writes import write_share_change
from .share_state_partitions import NO_PARTITIONS, NamedPartitions, Partitions, StatePartitions

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 64
"""Partitions that are asked for at the same time, for one group."""


class ShareStateRequests:
    """Of the share groups of one broker. ``run`` in a task of its own.

    ``store`` is the share coordinator, None where the cluster has none: then there are no share groups. It has
    ``timeout_ms`` for each partition.
    """

    def __init__(
        self,
        shards: CoordinatorShards[GroupCoordinatorShard],
        now: Callable[[], CoordinatorTime],
        store: ShareStateStore | None,
        timeout_ms: int,
    ) -> None:
        self._shards = shards
        self._now = now
        self._store = store
        self._timeout_ms = timeout_ms
        self._turns: dict[str, trio.Lock] = {}
        """By group id, while somebody has it or waits for it."""
        self._nursery: trio.Nursery | None = None

    @property
    def store(self) -> ShareStateStore:
        """The share coordinator. KafkaError COORDINATOR_NOT_AVAILABLE where there is none."""
        if self._store is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the cluster has no share coordinator")
        return self._store

    async def run(self) -> None:
        """Ask for what members wait for, for ever."""
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    @asynccontextmanager
    async def turn(self, group_id: str) -> AsyncIterator[None]:
        """The time in which nobody else asks for anything of the group."""
        lock = self._turns.setdefault(group_id, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and self._turns.get(group_id) is lock:
                del self._turns[group_id]

    # Beginnings

    def begin(
        self,
        shard: GroupCoordinatorShard,
        group_id: str,
        topics: Mapping[bytes, NamedPartitions],
        state_epoch: int,
    ) -> None:
        """A heartbeat has made these partitions initializing: ask for them once that is committed."""
        if not topics or self._nursery is None:
            return
        partitions = {topic_id: topic.partitions for topic_id, topic in topics.items()}
        asked = shard.asked_states.setdefault(group_id, {})
        for topic_id, numbers in partitions.items():
            asked[topic_id] = asked.get(topic_id, NO_PARTITIONS) | numbers
        self._nursery.start_soon(self._begin, shard, group_id, partitions, state_epoch)

    async def _begin(
        self, shard: GroupCoordinatorShard, group_id: str, partitions: Partitions, state_epoch: int
    ) -> None:
        try:
            await self._shards.committed(shard, shard.depends_on(group_id), _nothing_to_send)
            async with self.turn(group_id):
                await self._initialize_waiting(shard, group_id, partitions, state_epoch)
        except KafkaError as error:
            logger.warning("Share group %s: its partitions are not initialized: %s", group_id, error)
        finally:
            _no_longer_asked(shard, group_id, partitions)

    async def _initialize_waiting(
        self, shard: GroupCoordinatorShard, group_id: str, partitions: Partitions, state_epoch: int
    ) -> None:
        group = shard.share_group(group_id)
        if group is None:
            return
        # Some may not be waited for any more: the group was deleted meanwhile, and made again.
        keys = {
            key: NOT_BEGUN
            for key in keys_of(group_id, partitions)
            if (waiting := group.states.initializing.get(key.topic_id)) is not None
            and key.partition in waiting.partitions
        }
        failures = await self.initialize(keys, state_epoch)
        self.note_initialized(shard, group_id, keys, failures)
        for error in dict.fromkeys(map(str, failures.values())):
            logger.warning(
                "Share group %s: %s of %d not initialized: %s",
                group_id,
                counted(len(failures), "partition"),
                len(keys),
                error,
            )

    async def initialize(
        self, offsets: Mapping[SharePartitionKey, int], state_epoch: int
    ) -> dict[SharePartitionKey, KafkaError]:
        """Begin at these start offsets; why partitions were refused, or REQUEST_TIMED_OUT for those that took too long."""
        store = self.store
        return await self.each(offsets, lambda key: store.initialize(key, state_epoch, offsets[key]))

    def note_initialized(
        self,
        shard: GroupCoordinatorShard,
        group_id: str,
        asked: Iterable[SharePartitionKey],
        failures: Mapping[SharePartitionKey, KafkaError],
    ) -> None:
        """Write which partitions members may have now, and which are not asked for any more. Raises KafkaError."""
        group = shard.share_group(group_id)
        if group is None or not self._shards.is_current(shard):
            return
        states = group.states.with_initialized(_partitions(key for key in asked if key not in failures))
        self.write_states(shard, group_id, states.without_initializing(_partitions(failures)))

    def write_states(self, shard: GroupCoordinatorShard, group_id: str, states: StatePartitions) -> None:
        """Write the states of a group, unless they are as they were. Raises KafkaError."""
        group = shard.share_group(group_id)
        if group is None or group.states != states:
            write_share_change(shard, ShareGroupChange(group_id, states=states), self._now())

    # Deletions

    async def delete_states_of(self, shard: GroupCoordinatorShard, group_id: str, flush: Flush) -> None:
        """Before a group is deleted, so are its states. Nothing happens where it is no share group, or has members.

        Raises KafkaError where a state stays; the next attempt takes it up.
        """
        async with self.turn(group_id):
            group = shard.share_group(group_id)
            if group is None or not group.is_empty:
                return
            topics = shard.context.topics
            partitions: dict[bytes, frozenset[int]] = {}
            names = dict(group.states.deleting)
            for part in (group.states.initialized, group.states.initializing):
                for topic_id, topic in part.items():
                    partitions[topic_id] = partitions.get(topic_id, NO_PARTITIONS) | topic.partitions
                    names[topic_id] = topic.topic_name
            for topic_id in group.states.deleting:
                found = topics.find_by_id(topic_id)
                if found is not None:
                    partitions[topic_id] = frozenset(range(found[1]))
            if not partitions:
                return
            self.write_states(shard, group_id, group.states.with_deleting(names))
            await self._shards.committed(shard, shard.depends_on(group_id), flush)
            for error in (await self.delete(keys_of(group_id, partitions))).values():
                raise error

    async def delete(self, keys: Iterable[SharePartitionKey]) -> dict[SharePartitionKey, KafkaError]:
        """Delete states; why those that stay do."""
        return await self.each(keys, self.store.delete)

    async def each(
        self, keys: Iterable[SharePartitionKey], ask: Callable[[SharePartitionKey], Awaitable[None]]
    ) -> dict[SharePartitionKey, KafkaError]:
        """Ask for each, several at once; why those failed that did, with REQUEST_TIMED_OUT where it took too long."""
        failures: dict[SharePartitionKey, KafkaError] = {}
        limit = trio.CapacityLimiter(_MOST_AT_ONCE)

        async def one(key: SharePartitionKey) -> None:
            async with limit:
                try:
                    with trio.fail_after(self._timeout_ms / 1000):
                        await ask(key)
                except trio.TooSlowError:
                    failures[key] = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the share coordinator has not answered")
                except KafkaError as error:
                    failures[key] = error

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(one, key)
        return failures


def keys_of(group_id: str, partitions: Partitions) -> list[SharePartitionKey]:
    """The share partitions of a group, in order."""
    return [
        SharePartitionKey(group_id, topic_id, number)
        for topic_id in sorted(partitions)
        for number in sorted(partitions[topic_id])
    ]


def _partitions(keys: Iterable[SharePartitionKey]) -> dict[bytes, set[int]]:
    partitions: dict[bytes, set[int]] = {}
    for key in keys:
        partitions.setdefault(key.topic_id, set()).add(key.partition)
    return partitions


def _no_longer_asked(shard: GroupCoordinatorShard, group_id: str, partitions: Partitions) -> None:
    asked = shard.asked_states.get(group_id, {})
    for topic_id, numbers in partitions.items():
        left = asked.pop(topic_id, NO_PARTITIONS) - numbers
        if left:
            asked[topic_id] = left
    if not asked:
        shard.asked_states.pop(group_id, None)


async def _nothing_to_send() -> None:
    """No response waits for it."""
