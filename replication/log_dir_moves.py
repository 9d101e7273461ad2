"""Moves of partitions between this broker's log directories while they are written and read (KIP-113).

A move makes a future log in the other folder, fills it in the background, and lets it take the place of the partition's log
when both are the same. Where the cluster knows in which folder a replica is (KIP-858), it is told before that: if the new folder
failed first, no other leader would be elected. A broker that ends meanwhile goes on with it after its start, as soon as the
partition is there. While a log is moved it is not compacted.
"""

from __future__ import annotations

import logging
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..log.files import log_future_dir_name
from ..log.log_copy import CopyAborted, LogCopy
from ..log.log_directory import LogDirectory
from ..log.log_manager import LogManager
from ..log.partition_log import PartitionLog
from .metadata_cache import MetadataCache
from .partition import Partition
from .quotas import Quota
from .replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 1.0
"""How long a move sleeps at once while the quota is exceeded: the limit may change meanwhile."""


class MoveNotices(Protocol):
    """Tells the cluster in which folder a replica is."""

    async def announce(self, partition: Partition, folder: LogDirectory) -> None:
        """Return once the cluster knows that the partition's log will be in ``folder``."""

    def settle(self, partition: Partition) -> None:
        """The move has ended, or was given up: the log is where it is."""


class LogDirMoves:
    """The moves of one broker. ``run`` carries them out, as many at a time as there are folders, like Kafka.

    ``notices``: None where the cluster does not know of folders.
    """

    def __init__(
        self, replicas: ReplicaManager, logs: LogManager, metadata: MetadataCache, notices: MoveNotices | None
    ) -> None:
        self._notices = notices
        self._replicas = replicas
        self._logs = logs
        self._metadata = metadata
        self._wanted: list[tuple[Partition, LogCopy]] = []
        self._copies: dict[PartitionLog, LogCopy] = {}
        self._changed = trio.Event()
        self._limiter = trio.CapacityLimiter(len(logs.folders))
        self._quota = replicas.quotas.log_dirs
        replicas.future_listeners.append(self._resume)

    def alter(self, topic: str, number: int, path: str) -> None:
        """Put a partition's log into the folder with the absolute path ``path``; it moves there if need be.

        For a partition that does not exist yet the folder is remembered, and KafkaError raised, as for other refusals.
        """
        folder = self._logs.log_dir_at(path)
        if folder is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of this broker's log directories")
        if log_future_dir_name(topic, number, folder.randomness) is None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        folder.check_online()
        partition = self._find(topic, number, folder)
        future = self._logs.future(topic, number)
        if future is not None and future.folder is not folder:
            self._logs.delete_future(topic, number)
            future = None
        if future is None and partition.log.folder is not folder:
            self._begin(partition, self._logs.create_future(partition.log, folder))

    def _find(self, topic: str, number: int, folder: LogDirectory) -> Partition:
        try:
            return self._replicas.partition(topic, number)
        except KafkaError as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                raise
            self._logs.prefer(topic, number, folder)
            if self._metadata.partition(topic, number) is None:
                raise
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, error.message) from error

    def _resume(self, partition: Partition) -> None:
        topic, number = partition.topic, partition.log.partition
        future = self._logs.future(topic, number)
        if future is not None:
            if future.topic_id == partition.topic_id:
                self._begin(partition, future)
            else:
                self._logs.delete_future(topic, number)

    def _begin(self, partition: Partition, future: PartitionLog) -> None:
        current = partition.log
        logger.info("%s moves to %s", current.directory, future.folder.path)
        self._logs.cleaner.paused.add(current)
        self._copies[current] = copy = LogCopy(current, future)
        self._wanted.append((partition, copy))
        self._changed.set()

    async def run(self) -> None:
        """Move until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._changed.wait()
                self._changed = trio.Event()
                wanted, self._wanted = self._wanted, []
                for partition, copy in wanted:
                    nursery.start_soon(self._move, partition, copy)

    async def _move(self, partition: Partition, copy: LogCopy) -> None:
        current, future = copy.current, copy.future
        try:
            async with self._limiter:
                await self._logs.cleaner.wait_until_idle(current)
                await _fill(copy, self._quota)
                if self._notices is not None:
                    await self._notices.announce(partition, future.folder)
                # Once more: the notice took time, and records came. No other task runs between its last step and the swap.
                await _fill_to_the_end(copy, self._quota)
                partition.replace_log(self._logs.replace_with_future(partition.topic, current.partition))
                logger.info("%s-%d is in %s now", partition.topic, current.partition, future.folder.path)
        except CopyAborted:
            logger.info("the move of %s to %s was given up", current.directory, future.folder.path)
        except KafkaError as error:
            failed = current.folder if current.folder.is_offline else future.folder
            failed.log_failed(f"{current.directory} cannot be moved to {future.folder.path}", error)
            if self._logs.future(partition.topic, current.partition) is future:
                self._logs.delete_future(partition.topic, current.partition)
        finally:
            if self._copies.get(current) is copy:
                del self._copies[current]
                self._logs.cleaner.paused.discard(current)
            if self._notices is not None:
                self._notices.settle(partition)


async def _fill(copy: LogCopy, quota: Quota) -> None:
    """Return when nothing is left to copy; more may come."""
    while await _step(copy, quota):
        pass


async def _fill_to_the_end(copy: LogCopy, quota: Quota) -> None:
    """Return when both logs are the same and neither is being flushed."""
    while True:
        await _fill(copy, quota)
        await copy.future.flush()
        for partition_log in (copy.current, copy.future):
            while partition_log.flushing is not None:
                await partition_log.flushing.wait()
        if copy.current.flushing is None and copy.future.flushing is None and copy.finish():
            return


async def _step(copy: LogCopy, quota: Quota) -> bool:
    """Copy what comes next, once the quota allows it; False when there was nothing."""
    while pause := quota.seconds_exceeded(trio.current_time()):
        await trio.sleep(min(pause, _LONGEST_PAUSE_SECONDS))
    before = copy.future.size
    has_more = await copy.step()
    quota.record(max(copy.future.size - before, 0), trio.current_time())
    return has_more
