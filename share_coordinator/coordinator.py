"""The share coordinator of a broker: its shards, the requests of leaders and of groups' coordinators, and the upkeep of the log.

A *shard* (``shard.py``) is one partition of ``__share_group_state`` that this broker leads. A request changes the state at once,
and gives an ``Applied``; whoever asked is told when that is ``committed``. So a request for many share partitions is written
before the first wait.

Upkeep: the topic is not compacted. Records below the oldest snapshot that a share partition needs are deleted. Share partitions
without changes would hold that back, so they get another snapshot. Those of deleted topics are forgotten.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..replication.coordinator_log import CoordinatorLog, Flush, as_seen_by_clients, partition_of
from ..replication.coordinator_shards import CoordinatorShards
from ..wire.messages.share_group_state import ShareSnapshotValue, ShareUpdateValue
from . import share_group_offset as transitions
from .records import ShareRecord
from .settings import TOPIC, ShareCoordinatorSettings
from .shard import ShareCoordinatorShard
from .state import SharePartitionKey, ShareState, StateBatch

logger = logging.getLogger(__name__)

R = TypeVar("R")

_KEYS_PER_STEP = 50
_BATCHES_PER_STEP = 1000


class ShareStateLog(CoordinatorLog, Protocol):
    """The partitions of ``__share_group_state`` that this broker leads."""

    def delete_records(self, partition: int, offset: int) -> None:
        """Let the log begin at ``offset``, which is committed. KafkaError when this broker does not lead the partition."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Applied(Generic[R]):
    """A change that was made, or what was found where nothing had to be changed."""

    shard: ShareCoordinatorShard
    offset: int
    """The log must be committed up to here before ``result`` may be told."""
    result: R


async def no_flush() -> None:
    """The flush where no client waits: there are no answers to send first."""


class ShareCoordinator:
    """The share partitions of the partitions this broker leads. Every request method raises KafkaError.

    ``partition_count`` gives the number of partitions of the topic with an id, 0 where there is no such topic.
    """

    def __init__(
        self,
        log: ShareStateLog,
        settings: ShareCoordinatorSettings,
        clock: Clock,
        partition_count: Callable[[bytes], int],
    ) -> None:
        self.settings = settings
        self.writes = 0
        """How often the state of a share partition was to be written, with the reads that store the epoch of a new leader."""
        self.last_pruned: dict[int, int] = {}
        """Up to which offset partitions of the topic were pruned last."""
        self._log = log
        self._clock = clock
        self._partition_count = partition_count
        timeout_ms = settings.share_coordinator_write_timeout_ms
        self._shards = CoordinatorShards("Share coordinator", TOPIC, log, self._new_shard, timeout_ms)
        self._topics_deleted = trio.Event()

    # Partitions

    def partition_for(self, key: str) -> int:
        """The partition of ``__share_group_state`` that keeps the share partition with this coordinator key.

        The setting counts only until the topic exists.
        """
        count = self._log.partition_count() or self.settings.share_coordinator_state_topic_num_partitions
        return partition_of(key, count)

    def _new_shard(self, partition: int, leader_epoch: int) -> ShareCoordinatorShard:
        compression = self.settings.share_coordinator_state_topic_compression_codec
        return ShareCoordinatorShard(partition, leader_epoch, self._log, compression)

    async def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on: replay its log, and serve its share partitions.

        Where this broker led it before, and only the leader epoch is new, they are served on without a pause.
        """
        if self._shards.renew(partition, leader_epoch) or not self._shards.is_older(partition, leader_epoch):
            return
        self.unload(partition)
        await self._shards.load(partition, leader_epoch)

    def serves(self, partition: int) -> bool:
        """Whether the share partitions of the partition are served here."""
        return any(shard.partition == partition for shard in self._shards)

    async def wait_loaded(self, partition: int) -> None:
        """Return once the share partitions of the partition are served here."""
        await self._shards.wait_loaded(partition)

    def unload(self, partition: int) -> None:
        """This broker does not lead the partition any more; nothing happens when it did not."""
        self.last_pruned.pop(partition, None)
        self._shards.unload(partition)

    def stop(self) -> None:
        """Unload every partition."""
        for partition in self._shards.partitions():
            self.unload(partition)

    async def committed(self, applied: Applied[R], flush: Flush, timeout_ms: int | None = None) -> R:
        """The result, once it may be told. KafkaError when that takes too long, or the partition has moved.

        ``timeout_ms`` is ``share.coordinator.write.timeout.ms`` where it is not given.
        """
        await self._shards.committed(applied.shard, applied.offset, flush, timeout_ms)
        return applied.result

    # Requests

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Applied[None]:
        """InitializeShareGroupState of one share partition."""
        shard = self._shard(key)
        now_ms = self._clock.now_ms()
        value = transitions.initialize(shard.share_partitions.get(key), state_epoch, start_offset, now_ms)
        self._check_topic(key)
        return self._write(shard, key, value, now_ms)

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Applied[ShareState]:
        """ReadShareGroupState of one share partition."""
        shard = self._shard(key)
        known = transitions.check_read(shard.share_partitions.get(key), leader_epoch)
        self._check_topic(key)
        now_ms = self._clock.now_ms()
        value = transitions.read(known, leader_epoch, self._snapshot_after, now_ms)
        if value is not None:
            self.writes += 1
            self._write(shard, key, value, now_ms)
        return Applied(shard, shard.last_offset, known.as_read())

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Applied[None]:
        """WriteShareGroupState of one share partition."""
        shard = self._shard(key)
        self.writes += 1
        now_ms = self._clock.now_ms()
        change = transitions.change(start_offset, delivery_complete_count, batches)
        known = shard.share_partitions.get(key)
        value = transitions.write(known, state_epoch, leader_epoch, change, self._snapshot_after, now_ms)
        self._check_topic(key)
        return self._write(shard, key, value, now_ms)

    def delete(self, key: SharePartitionKey) -> Applied[None]:
        """DeleteShareGroupState of one share partition."""
        shard = self._shard(key)
        self._check_topic(key)
        if key in shard.share_partitions:
            return self._write(shard, key, None, self._clock.now_ms())
        return Applied(shard, shard.last_offset, None)

    def summary(self, key: SharePartitionKey) -> Applied[tuple[int, int, int, int]]:
        """ReadShareGroupStateSummary of one share partition; its leader epoch is not compared, as in Kafka."""
        shard = self._shard(key)
        self._check_topic(key)
        return Applied(shard, shard.last_offset, transitions.summary(shard.share_partitions.get(key)))

    @property
    def _snapshot_after(self) -> int:
        return self.settings.share_coordinator_snapshot_update_records_per_snapshot

    def _shard(self, key: SharePartitionKey) -> ShareCoordinatorShard:
        coordinator_key = key.coordinator_key()
        shard = self._shards.find(self.partition_for(coordinator_key), coordinator_key)
        if key.partition < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no partition {key.partition}")
        return shard

    def _check_topic(self, key: SharePartitionKey) -> None:
        if key.partition >= self._partition_count(key.topic_id):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key.coordinator_key()} is of no known partition")

    def _write(
        self,
        shard: ShareCoordinatorShard,
        key: SharePartitionKey,
        value: ShareSnapshotValue | ShareUpdateValue | None,
        now_ms: int,
    ) -> Applied[None]:
        try:
            shard.write([ShareRecord(key, value)], now_ms)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        return Applied(shard, shard.last_offset, None)

    # Upkeep

    async def run(self) -> None:
        """Keep the log short, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_pruning)
            nursery.start_soon(self._run_snapshots)
            nursery.start_soon(self._run_cleanup)

    async def _run_pruning(self) -> None:
        while True:
            await trio.sleep(self.settings.share_coordinator_state_topic_prune_interval_ms / 1000)
            await self.prune()

    async def _run_snapshots(self) -> None:
        while True:
            await trio.sleep(self.settings.share_coordinator_cold_partition_snapshot_interval_ms / 1000)
            await self.snapshot_cold_partitions()

    async def _run_cleanup(self) -> None:
        while True:
            await self._topics_deleted.wait()
            self._topics_deleted = trio.Event()
            await self.forget_deleted_topics()

    def topics_deleted(self) -> None:
        """Topics were deleted: what is kept of their share partitions is forgotten soon."""
        self._topics_deleted.set()

    async def prune(self) -> None:
        """Delete the records that no share partition needs."""
        for shard in self._shards:
            end = lowest = shard.last_offset
            for keys in self._steps(shard):
                known = (shard.share_partitions.get(key) for key in keys)
                lowest = min((each.snapshot_offset for each in known if each is not None), default=lowest)
                await trio.lowlevel.checkpoint()
            try:
                # A snapshot that is not committed may be lost with its broker: then the one before is needed.
                await self._shards.committed(shard, end, no_flush)
                self._log.delete_records(shard.partition, lowest)
                if lowest > 0:
                    self.last_pruned[shard.partition] = lowest
            except KafkaError as error:
                self._log_failure("Old records could not be deleted", shard, error)

    async def snapshot_cold_partitions(self) -> None:
        """Write a snapshot of each share partition that has had none for long, unless nothing has changed since the last time."""
        interval_ms = self.settings.share_coordinator_cold_partition_snapshot_interval_ms
        for shard in self._shards:
            if all(each.is_rewritten for each in shard.share_partitions.values()):
                continue
            now_ms = self._clock.now_ms()

            def snapshot(
                key: SharePartitionKey, known: transitions.ShareGroupOffset, now_ms: int = now_ms
            ) -> ShareRecord | None:
                if now_ms - known.written_ms < interval_ms:
                    return None
                return ShareRecord(key, transitions.rewritten(known, now_ms))

            await self._write_each(shard, snapshot, now_ms)

    async def forget_deleted_topics(self) -> None:
        """Forget the share partitions whose topic does not exist any more."""

        def tombstone(key: SharePartitionKey, known: transitions.ShareGroupOffset) -> ShareRecord | None:
            return None if self._partition_count(key.topic_id) else ShareRecord(key, None)

        for shard in self._shards:
            await self._write_each(shard, tombstone, self._clock.now_ms())

    async def _write_each(
        self,
        shard: ShareCoordinatorShard,
        make: Callable[[SharePartitionKey, transitions.ShareGroupOffset], ShareRecord | None],
        now_ms: int,
    ) -> None:
        """Write what ``make`` gives for each share partition, in steps."""
        for keys in self._steps(shard):
            if not self._shards.is_current(shard):
                return
            made = (make(key, shard.share_partitions[key]) for key in keys if key in shard.share_partitions)
            try:
                shard.write([record for record in made if record is not None], now_ms)
            except KafkaError as error:
                self._log_failure("Share partitions could not be kept up", shard, error)
                return
            await trio.lowlevel.checkpoint()

    def _steps(self, shard: ShareCoordinatorShard) -> Iterator[list[SharePartitionKey]]:
        """All share partitions of now, as many at a time as do not hold up the loop, nor fill a batch of records."""
        step: list[SharePartitionKey] = []
        batches = 0
        for key, known in list(shard.share_partitions.items()):
            step.append(key)
            batches += len(known.batches)
            if len(step) >= _KEYS_PER_STEP or batches >= _BATCHES_PER_STEP:
                yield step
                step, batches = [], 0
        if step:
            yield step

    def _log_failure(self, what: str, shard: ShareCoordinatorShard, error: KafkaError) -> None:
        expected = error.code is ErrorCode.NOT_COORDINATOR or not self._shards.is_current(shard)
        logger.log(logging.DEBUG if expected else logging.WARNING, "%s: %s-%d: %s", what, TOPIC, shard.partition, error)
