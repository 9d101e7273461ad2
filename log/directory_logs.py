"""The logs of one log directory: lock, identity, loading, checkpoints and shutdown.

A partition has at most one log in a folder: the one that is read and written, or a *future* one, which is being filled
to replace that of another folder. Both are in the checkpoints, under the partition's name.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator

import trio

from ..base.partitions import TopicPartition
from ..base.wording import counted
from .checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    OFFSET_CHECKPOINTS,
    RECOVERY_POINT_CHECKPOINT,
    CorruptFileError,
    MetaProperties,
    consume_clean_shutdown,
    read_meta_properties,
    read_offsets,
    write_clean_shutdown,
    write_offsets,
)
from .disk import Lock, join
from .files import (
    DELETE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    log_delete_dir_name,
    log_stray_dir_name,
    parse_topic_partition_name,
)
from .log_directory import LogDirectory
from .log_loader import LogLoader
from .partition_log import PartitionLog
from .settings import LogSettings

logger = logging.getLogger(__name__)

_LOGS_PER_CALL = 16  # a call of a worker costs as much as opening a log

Offsets = dict[TopicPartition, int]


class DirectoryLogs:
    """The logs of one entry of log.dirs."""

    def __init__(self, folder: LogDirectory) -> None:
        self.folder = folder
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.meta: MetaProperties | None = None
        """The content of its ``meta.properties`` once it is taken; None if there is no such file."""
        self._lock: Lock | None = None
        self._is_loaded = False
        self._checkpoint_lock = threading.Lock()
        self._checkpoint_ticket = 0
        self._written: dict[str, tuple[int, Offsets | None]] = {}  # ticket and content, by checkpoint
        folder.write_checkpoints = self._write_checkpoints_now

    # --- start --------------------------------------------------------------------------------------------------------

    def take(self) -> None:
        """Make the folder, lock it, read whose it is. Raises BlockingIOError, OSError, CorruptFileError."""
        folder = self.folder
        folder.disk.make_dir(folder.path)
        self._lock = folder.disk.lock(join(folder.path, LOCK))
        self.meta = read_meta_properties(folder.disk, folder.path)

    async def load(self, settings: LogSettings, threads: int) -> None:
        """Open every log. Raises OSError, KafkaError, UnsupportedLogError."""
        folder = self.folder
        is_clean = consume_clean_shutdown(folder.disk, folder.path)
        found = list(self._find_logs())
        if found and not is_clean:
            logger.warning("%s was not stopped cleanly; recovering %s", folder.path, counted(len(found), "log"))
        openers = self._openers(found, settings, is_clean=is_clean)
        chunks = iter(lambda: list(itertools.islice(openers, _LOGS_PER_CALL)), [])
        errors: list[Exception] = []

        async def load_some() -> None:
            try:
                for chunk in chunks:
                    for partition_log in await folder.workers.run(_open_each, chunk):
                        self._add(partition_log)
                        await self._flush_found(partition_log)
            except Exception as error:
                errors.append(error)  # raised here, the nursery would wrap it in a group, and callers go by its class

        async with trio.open_nursery() as nursery:
            for _ in range(threads):
                nursery.start_soon(load_some)
        if errors:
            raise errors[0]
        self._is_loaded = True
        logger.debug("%s: opened %s", folder.path, counted(len(self.logs), "log"))

    def _find_logs(self) -> Iterator[tuple[TopicPartition, str]]:
        """Partition and name of every folder with a log; those of deleted ones are removed in the background.

        What was set aside is left alone: only an operator can say whether it is still needed.
        """
        folder = self.folder
        for name in folder.disk.names(folder.path):
            path = join(folder.path, name)
            if name.endswith(DELETE_DIR_SUFFIX):
                folder.call_later(0, functools.partial(folder.delete_now, path))
                continue
            if name.endswith(STRAY_DIR_SUFFIX):
                logger.warning("%s was set aside because it is of no topic of this cluster, and is left alone", path)
                continue
            topic_partition = parse_topic_partition_name(name)
            if topic_partition is not None and folder.disk.is_dir(path):
                yield topic_partition, name

    def _openers(
        self, found: Iterable[tuple[TopicPartition, str]], settings: LogSettings, *, is_clean: bool
    ) -> Iterator[Callable[[], PartitionLog]]:
        """What opens a log, for each of those found; to be called in a worker."""
        recovery_points, start_offsets, high_watermarks, cleaned_offsets = (
            self._read_checkpoint(name) for name in OFFSET_CHECKPOINTS
        )
        if not {key for key, _ in found} >= recovery_points.keys() | start_offsets.keys():
            # Entries without a log go before a new log of that name gets files (``LogDirectory.starting_log``).
            self.folder.deleted_logs += 1
        for key, name in found:
            loader = LogLoader(
                self.folder,
                join(self.folder.path, name),
                settings.index_interval_bytes,
                is_clean=is_clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=start_offsets.get(key, 0),
                high_watermark=high_watermarks.get(key, 0),
                cleaned_offset=cleaned_offsets.get(key),
            )
            yield functools.partial(_open, loader, self.folder, key, name, settings)

    def _read_checkpoint(self, name: str) -> Offsets:
        try:
            return read_offsets(self.folder.disk, join(self.folder.path, name))
        except CorruptFileError as error:
            logger.warning("%s; continuing without it", error)
            return {}

    def _add(self, partition_log: PartitionLog) -> None:
        """Take a loaded log, if it is needed: of two in this folder one is a future log that is not.

        A crash in the middle of making a log, or of emptying it, leaves a folder without a segment. There is nothing in it,
        and the partition may be on other brokers or in another folder by now, so it is removed. Kafka's ``LogLoader`` begins
        a segment there, and in ZooKeeper mode the log stays when the partition does not come back.
        """
        key = TopicPartition(partition_log.topic, partition_log.partition)
        if not partition_log.segments:
            logger.info("%s has no segment, and is removed", partition_log.directory)
            self._remove(partition_log)
            return
        other = self.logs.get(key)
        if other is not None:
            current, future = (partition_log, other) if other.is_future else (other, partition_log)
            partition_log = current
            self._remove(future)
        self.logs[key] = partition_log

    async def _flush_found(self, partition_log: PartitionLog) -> None:
        """Flush what a crash left and ``flush.messages`` asks to flush before it counts. Raises KafkaError.

        It was flushed before it was acknowledged, but the checkpoint may not say so yet. Without this the high watermark would
        be below what clients have seen, until the first flush has ended.
        """
        if not partition_log.is_closed and partition_log.safe_end_offset < partition_log.log_end_offset:
            await partition_log.flush()

    # --- the logs -----------------------------------------------------------------------------------------------------

    def delete(self, partition_log: PartitionLog) -> None:
        """Forget a log; its folder is renamed at once and removed after ``file.delete.delay.ms``. Raises KafkaError."""
        del self.logs[TopicPartition(partition_log.topic, partition_log.partition)]
        partition_log.close()
        if partition_log.segments:
            self._remove(partition_log)

    def rename_to_stray(self, partition_log: PartitionLog) -> None:
        """Forget a log and keep its folder, under a name that every start leaves alone. Raises KafkaError."""
        del self.logs[TopicPartition(partition_log.topic, partition_log.partition)]
        partition_log.close()
        if not partition_log.segments:
            return
        before = partition_log.directory
        name = log_stray_dir_name(partition_log.topic, partition_log.partition, self.folder.randomness)
        try:
            partition_log.rename_dir(name)
        except OSError as error:
            raise self.folder.fail(f"cannot set {before} aside", error) from error
        logger.warning(
            "%s is of no replica that the cluster has here, and is set aside as %s", before, partition_log.directory
        )
        self._log_removed()

    def _remove(self, partition_log: PartitionLog) -> None:
        try:
            self.rename_to_deleted(partition_log)
        except OSError as error:
            raise self.folder.fail(f"cannot delete {partition_log.directory}", error) from error
        self.remove_deleted(partition_log)

    def rename_to_deleted(self, partition_log: PartitionLog) -> None:
        """Give a log's folder the name of a deleted one, which every start removes. Raises OSError."""
        partition_log.rename_dir(
            log_delete_dir_name(partition_log.topic, partition_log.partition, self.folder.randomness)
        )

    def remove_deleted(self, partition_log: PartitionLog) -> None:
        """Have the folder of a log removed that was renamed as a deleted one."""
        self.folder.delete_later(partition_log.directory, partition_log.settings.file_delete_delay_ms)
        self._log_removed()

    def _log_removed(self) -> None:
        """A log is gone: have the checkpoints written without it."""
        self.folder.deleted_logs += 1
        self.folder.checkpoint_soon()

    # --- upkeep -------------------------------------------------------------------------------------------------------

    async def run_timers(self) -> None:
        """Call what ``LogDirectory.call_later`` was given, file removals in a worker."""
        folder = self.folder
        while True:
            due = folder.timers[0][0] if folder.timers else float("inf")
            with trio.move_on_at(due):
                await folder.timers_changed.wait()
            folder.timers_changed = trio.Event()
            while folder.timers and folder.timers[0][0] <= trio.current_time():
                _, _, function = heapq.heappop(folder.timers)
                # A partial removes files, which may take long. Other functions change logs, so they stay on the loop.
                if isinstance(function, functools.partial):
                    await folder.workers.run(function)
                else:
                    function()

    async def run_checkpoints(self, interval: float) -> None:
        """Write the checkpoints every ``interval`` seconds, and when asked to."""
        folder = self.folder
        while not folder.is_offline:
            with trio.move_on_after(interval):
                await folder.checkpoint_wanted.wait()
            folder.checkpoint_wanted = trio.Event()
            if not folder.is_offline:
                try:
                    await self.write_checkpoints()
                except OSError as error:
                    folder.fail("cannot write the checkpoints", error)

    async def run_high_watermarks(self, interval: float) -> None:
        """Write the high watermarks every ``interval`` seconds; a follower that crashed goes on with what they say."""
        folder = self.folder
        while not folder.is_offline:
            await trio.sleep(interval)
            if not folder.is_offline:
                for log in self.logs.values():
                    if log.checkpointed_high_watermark < log.high_watermark:
                        log.request_flush()  # which may be hours away otherwise; the next checkpoint has it
                try:
                    await self._write({HIGH_WATERMARK_CHECKPOINT: self._high_watermarks()})
                except OSError as error:
                    folder.fail("cannot write the checkpoints", error)

    async def write_checkpoints(self) -> None:
        """Write the offset checkpoints that have changed. Raises OSError."""
        deleted_logs = self.folder.deleted_logs  # read now: what is gathered still has a log deleted during the wait
        await self._write(self._gather_offsets())
        self.folder.checkpointed_deletions = max(self.folder.checkpointed_deletions, deleted_logs)

    async def _write(self, gathered: dict[str, Offsets]) -> None:
        self._checkpoint_ticket += 1
        await self.folder.workers.run(self._store_checkpoints, self._checkpoint_ticket, gathered)

    def _write_checkpoints_now(self) -> None:
        """For a log that is about to change. The log of the cluster's metadata may do so before and after the others are open."""
        if not self._is_loaded:
            return  # which logs there are is not known, and the metadata log is in no checkpoint
        self._checkpoint_ticket += 1
        self._store_checkpoints(self._checkpoint_ticket, self._gather_offsets())
        self.folder.checkpointed_deletions = self.folder.deleted_logs

    def _gather_offsets(self) -> dict[str, Offsets]:
        """The content of each checkpoint by its name."""
        written = [(key, log) for key, log in self.logs.items() if log.segments]
        starts = {
            key: log.log_start_offset for key, log in written if log.log_start_offset > log.segments[0].base_offset
        }
        return {
            RECOVERY_POINT_CHECKPOINT: {key: log.recovery_point for key, log in written},
            LOG_START_OFFSET_CHECKPOINT: starts,
            HIGH_WATERMARK_CHECKPOINT: self._high_watermarks(),
            CLEANER_OFFSET_CHECKPOINT: {
                key: log.cleaned_offset for key, log in written if log.cleaned_offset is not None
            },
        }

    def _high_watermarks(self) -> Offsets:
        return {key: log.checkpointed_high_watermark for key, log in self.logs.items() if log.segments}

    def _store_checkpoints(self, ticket: int, gathered: dict[str, Offsets]) -> None:
        """In a worker or on the loop; offsets gathered earlier never replace later ones. Raises OSError."""
        with self._checkpoint_lock:
            for name, offsets in gathered.items():
                written_ticket, written = self._written.get(name, (0, None))
                if ticket < written_ticket:
                    continue
                # After a failed write nothing counts as written, so the next one writes.
                self._written[name] = (ticket, None)
                if offsets != written:
                    write_offsets(self.folder.disk, join(self.folder.path, name), offsets)
                self._written[name] = ticket, offsets

    # --- stop ---------------------------------------------------------------------------------------------------------

    def close_logs(self) -> None:
        """Close every file and forget the logs; nothing is written, now or later."""
        self._is_loaded = False
        logs, self.logs = self.logs, {}
        for partition_log in logs.values():
            partition_log.close()

    async def mark_clean(self, broker_epoch: int = -1) -> None:
        """Write the checkpoints and the clean mark, if everything else is on disk and nothing has failed."""
        folder = self.folder
        if self._lock is None or not self._is_loaded or folder.is_offline:
            return
        try:
            await self.write_checkpoints()
            await folder.workers.run(write_clean_shutdown, folder.disk, folder.path, broker_epoch)
        except OSError as error:
            folder.fail("cannot write the checkpoints", error)

    def release(self) -> None:
        """Close what is open and let others use the folder."""
        self.close_logs()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            if self.folder.is_offline:
                logger.info("%s is not marked clean, because it has failed", self.folder.path)


def _open(
    loader: LogLoader, folder: LogDirectory, key: TopicPartition, name: str, settings: LogSettings
) -> PartitionLog:
    return PartitionLog(folder, *key, None, settings, folder_name=name, state=loader.load())


def _open_each(openers: Iterable[Callable[[], PartitionLog]]) -> list[PartitionLog]:
    return [open_log() for open_log in openers]
