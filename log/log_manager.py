"""All logs of the broker's data folder: opening them, their upkeep, and a stop that leaves them clean.

Start: lock the folder, see whose it is, take the clean mark away, open every log (in worker threads, cutting what a
crash left behind), and only then serve. Stop: flush, checkpoints, and last of all the clean mark, which an I/O error
withholds. Upkeep between: retention, compaction, flushes, checkpoints, removal of deleted files, expiry of idle producers.
"""

from __future__ import annotations

import functools
import heapq
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Iterable

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock, Workers
from .checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    CorruptFileError,
    TopicPartition,
    read_meta_properties,
    read_offsets,
    take_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
    write_topic_id,
)
from .disk import Disk, Lock, join
from .files import DELETED_FOLDER_SUFFIX, deleted_folder_name, parse_partition_folder
from .log_cleaner import LogCleaner
from .log_folder import LogFolder
from .partition_log import ZERO_UUID, PartitionLog
from .recovery import LogLoader, UnsupportedLogError
from .settings import LogCleanerSettings, LogManagerSettings, LogSettings

logger = logging.getLogger(__name__)

_INITIAL_DELAY_SECONDS = 30.0
_LOGS_PER_TURN = 20
_FLUSHES_AT_ONCE = 8  # file systems commit several syncs together
_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)

Offsets = dict[TopicPartition, int]


class LogStartError(Exception):
    """The data folder cannot be used. ``str()`` is one line for people."""


class LogManager:
    """The logs of one data folder."""

    def __init__(
        self,
        disk: Disk,
        directories: Iterable[str],
        settings: LogSettings,
        manager_settings: LogManagerSettings,
        clock: Clock,
        workers: Workers,
        rng: random.Random,
        cleaner_settings: LogCleanerSettings | None = None,
    ) -> None:
        """``directories`` is one folder; ``settings`` are the broker's defaults for a topic."""
        (path,) = directories
        self.settings = settings
        self.manager_settings = manager_settings
        self.folder = LogFolder(disk, path, clock, workers, rng=rng)
        self.folder.wants_flush = self._want_flush
        self.folder.write_checkpoints = self._write_checkpoints_now
        self.cluster_id: str | None = None
        self.broker_id = -1
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self.cleaner = LogCleaner(self._logs.values(), cleaner_settings or LogCleanerSettings())
        self._lock: Lock | None = None
        self._is_loaded = False
        self._flushes: dict[PartitionLog, bool] = {}
        self._flush_wanted = trio.Event()
        self._checkpoint_lock = threading.Lock()
        self._checkpoint_ticket = 0
        self._written_ticket = 0
        self._written: tuple[Offsets, ...] = ()

    @property
    def is_offline(self) -> bool:
        """Whether the data folder has failed; it stays so until the broker starts again."""
        return self.folder.is_offline

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    # --- start --------------------------------------------------------------------------------------------------------

    async def start(self, broker_id: int) -> None:
        """Take the folder and open every log in it. Raises LogStartError."""
        folder = self.folder
        folder.max_open_files = folder.disk.max_open_files()
        try:
            folder.disk.make_dir(folder.path)
            self._lock = folder.disk.lock(join(folder.path, LOCK))
            self._identify(broker_id)
            await self._load()
        except BlockingIOError:
            raise LogStartError(f"the data folder {folder.path} is in use by another process") from None
        except OSError as error:
            raise LogStartError(f"the data folder {folder.path} cannot be used: {error}") from error
        except (CorruptFileError, UnsupportedLogError) as error:
            raise LogStartError(str(error)) from None

    def _identify(self, broker_id: int) -> None:
        folder = self.folder
        meta = read_meta_properties(folder.disk, folder.path)
        if meta is not None and meta.broker_id not in (None, broker_id):
            raise LogStartError(
                f"the data folder {folder.path} belongs to broker {meta.broker_id}, but this is broker {broker_id}"
            )
        self.broker_id = broker_id
        self.cluster_id = meta.cluster_id if meta else None

    async def set_cluster_id(self, cluster_id: str) -> None:
        """Write ``meta.properties`` unless it says so already. Raises LogStartError when it names another cluster."""
        if self.cluster_id == cluster_id:
            return
        folder = self.folder
        if self.cluster_id is not None:
            raise LogStartError(
                f"the data folder {folder.path} belongs to cluster {self.cluster_id}, but this is {cluster_id}"
            )
        self.cluster_id = cluster_id
        await folder.workers.run(write_meta_properties, folder.disk, folder.path, self.broker_id, cluster_id)

    async def _load(self) -> None:
        folder = self.folder
        is_clean = take_clean_shutdown(folder.disk, folder.path)
        partitions = []
        for name in folder.disk.names(folder.path):
            path = join(folder.path, name)
            if name.endswith(DELETED_FOLDER_SUFFIX):
                folder.call_later(0, functools.partial(folder.delete_now, path))
            elif (topic_partition := parse_partition_folder(name)) is not None and folder.disk.is_dir(path):
                partitions.append(topic_partition)
        if partitions and not is_clean:
            logger.warning("%s was not stopped cleanly; recovering %d logs", folder.path, len(partitions))
        recovery_points, start_offsets, high_watermarks, cleaned_offsets = (
            self._read_checkpoint(name) for name in _CHECKPOINTS
        )
        queue = iter(partitions)
        errors: list[Exception] = []

        async def load_some() -> None:
            for key in queue:
                loader = LogLoader(
                    folder,
                    *key,
                    self.settings,
                    is_clean=is_clean,
                    recovery_point=recovery_points.get(key, 0),
                    log_start_offset=start_offsets.get(key, 0),
                    high_watermark=high_watermarks.get(key, 0),
                    cleaned_offset=cleaned_offsets.get(key),
                )
                try:
                    partition_log = await folder.workers.run(loader.load)
                except (OSError, UnsupportedLogError) as error:
                    errors.append(error)
                    return
                if partition_log.segments:
                    self._logs[key] = partition_log

        async with trio.open_nursery() as nursery:
            for _ in range(self.manager_settings.recovery_threads_per_data_dir):
                nursery.start_soon(load_some)
        if errors:
            raise errors[0]
        if not self._logs.keys() >= recovery_points.keys() | start_offsets.keys():
            folder.deleted_logs += 1
        self._expire_producers()
        self._is_loaded = True

    def _read_checkpoint(self, name: str) -> Offsets:
        try:
            return read_offsets(self.folder.disk, join(self.folder.path, name))
        except CorruptFileError as error:
            logger.warning("%s; doing without it", error)
            return {}

    # --- the logs -----------------------------------------------------------------------------------------------------

    def get_or_create(
        self, topic: str, partition: int, topic_id: bytes | None = None, settings: LogSettings | None = None
    ) -> PartitionLog:
        """The log of a partition; a new one has no file until it is written to.

        A log that belongs to another topic id is what a deleted topic of the same name left behind, and is deleted.
        """
        partition_log = self._logs.get((topic, partition))
        if partition_log is not None and topic_id is not None and partition_log.topic_id != topic_id:
            if partition_log.topic_id == ZERO_UUID:
                self._adopt(partition_log, topic_id)
            else:
                logger.warning("%s is of an earlier topic of that name and is deleted", partition_log.directory)
                self.delete(topic, partition)
                partition_log = None
        if partition_log is None:
            partition_log = PartitionLog(self.folder, topic, partition, topic_id, settings or self.settings)
            self._logs[topic, partition] = partition_log
        elif settings is not None:
            partition_log.update_settings(settings)
        return partition_log

    def _adopt(self, partition_log: PartitionLog, topic_id: bytes) -> None:
        partition_log.topic_id = topic_id
        if partition_log.segments:
            path = join(partition_log.directory, PARTITION_METADATA)
            try:
                write_topic_id(self.folder.disk, path, topic_id)
            except OSError as error:
                raise self.folder.fail(f"cannot write {path}", error) from error

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log; its folder is renamed at once and removed after ``file.delete.delay.ms``. Raises KafkaError."""
        partition_log = self._logs.pop((topic, partition), None)
        if partition_log is None:
            return
        partition_log.close()
        if not partition_log.segments:
            return
        folder = self.folder
        path = join(folder.path, deleted_folder_name(topic, partition, folder.rng))
        try:
            folder.disk.rename(partition_log.directory, path)
        except OSError as error:
            raise folder.fail(f"cannot delete {partition_log.directory}", error) from error
        folder.delete_later(path, partition_log.settings.file_delete_delay_ms)
        folder.deleted_logs += 1
        folder.checkpoint_soon()

    def space(self) -> tuple[int, int]:
        """Total and usable bytes of the volume of the data folder. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        try:
            return self.folder.disk.space(self.folder.path)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    # --- upkeep -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look after the logs until cancelled."""
        manager = self.manager_settings
        start_offset_ms = manager.flush_start_offset_checkpoint_interval_ms
        checkpoint_ms = min(manager.flush_offset_checkpoint_interval_ms, start_offset_ms)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_timers)
            nursery.start_soon(self._run_flushes)
            nursery.start_soon(self.cleaner.run)
            nursery.start_soon(self._run_checkpoints, max(checkpoint_ms, 1) / 1000)
            nursery.start_soon(_repeat, manager.retention_check_interval_ms / 1000, self.delete_old_segments)
            nursery.start_soon(
                _repeat, manager.producer_id_expiration_check_interval_ms / 1000, self._expire_idle_producers
            )

    async def _run_timers(self) -> None:
        """Call what ``LogFolder.call_later`` was given, file removals in a worker."""
        folder = self.folder
        while True:
            due = folder.timers[0][0] if folder.timers else float("inf")
            with trio.move_on_at(due):
                await folder.timers_changed.wait()
            folder.timers_changed = trio.Event()
            while folder.timers and folder.timers[0][0] <= trio.current_time():
                _, _, function = heapq.heappop(folder.timers)
                if isinstance(function, functools.partial):
                    await folder.workers.run(function)
                else:
                    function()

    def _want_flush(self, partition_log: PartitionLog, inactive_only: bool) -> None:
        self._flushes[partition_log] = inactive_only and self._flushes.get(partition_log, True)
        self._flush_wanted.set()

    async def _run_flushes(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                await self._flush_wanted.wait()
                self._flush_wanted = trio.Event()
                wanted, self._flushes = self._flushes, {}
                for partition_log, inactive_only in wanted.items():
                    nursery.start_soon(_flush, partition_log, inactive_only)

    async def _run_checkpoints(self, interval: float) -> None:
        folder = self.folder
        while True:
            with trio.move_on_after(interval):
                await folder.checkpoint_wanted.wait()
            folder.checkpoint_wanted = trio.Event()
            if not folder.is_offline:
                try:
                    await self.write_checkpoints()
                except OSError as error:
                    folder.fail("cannot write the checkpoints", error)

    async def delete_old_segments(self) -> None:
        """Apply retention to every log."""
        for count, partition_log in enumerate(list(self._logs.values())):
            if count % _LOGS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            if self.folder.is_offline:
                return
            if partition_log.segments and not partition_log.is_closed and partition_log not in self.cleaner.in_progress:
                try:
                    partition_log.delete_old_segments(self.folder.clock.now_ms())
                except KafkaError as error:
                    logger.error("retention stops: %s", error)

    async def _expire_idle_producers(self) -> None:
        self._expire_producers()

    def _expire_producers(self) -> None:
        now_ms = self.folder.clock.now_ms()
        for partition_log in self._logs.values():
            if partition_log.producer_state.producers:
                partition_log.producer_state.expire(now_ms, self.manager_settings.producer_id_expiration_ms)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    async def write_checkpoints(self) -> None:
        """Write the offset checkpoints that have changed. Raises OSError."""
        self._checkpoint_ticket += 1
        deleted_logs = self.folder.deleted_logs
        await self.folder.workers.run(self._store_checkpoints, self._checkpoint_ticket, self._gather_offsets())
        self.folder.checkpointed_deletions = max(self.folder.checkpointed_deletions, deleted_logs)

    def _write_checkpoints_now(self) -> None:
        self._checkpoint_ticket += 1
        self._store_checkpoints(self._checkpoint_ticket, self._gather_offsets())
        self.folder.checkpointed_deletions = self.folder.deleted_logs

    def _gather_offsets(self) -> tuple[Offsets, ...]:
        written = [(key, log) for key, log in self._logs.items() if log.segments]
        return (
            {key: log.recovery_point for key, log in written},
            {key: log.log_start_offset for key, log in written if log.log_start_offset > log.segments[0].base_offset},
            {key: log.high_watermark for key, log in written},
            {key: log.cleaned_offset for key, log in written if log.cleaned_offset is not None},
        )

    def _store_checkpoints(self, ticket: int, offsets: tuple[Offsets, ...]) -> None:
        """In a worker or on the loop; offsets gathered earlier never replace later ones. Raises OSError."""
        with self._checkpoint_lock:
            if ticket < self._written_ticket:
                return
            self._written_ticket = ticket
            old = self._written or (None,) * len(offsets)
            self._written = ()
            for name, new_offsets, old_offsets in zip(_CHECKPOINTS, offsets, old, strict=True):
                if new_offsets != old_offsets:
                    write_offsets(self.folder.disk, join(self.folder.path, name), new_offsets)
            self._written = offsets

    # --- stop ---------------------------------------------------------------------------------------------------------

    async def abandon(self) -> None:
        """Let go of the folder after a start that failed somewhere."""
        await self.stop()

    async def stop(self) -> None:
        """Flush everything, mark the folder clean if all of it is on disk, and let go of it."""
        if self._lock is None:
            return
        folder = self.folder
        try:
            if self._is_loaded and await self._write_out():
                await self.write_checkpoints()
                await folder.workers.run(write_clean_shutdown, folder.disk, folder.path)
        except OSError as error:
            folder.fail("cannot write the checkpoints", error)
        finally:
            for partition_log in self._logs.values():
                partition_log.close()
            self._lock.close()
            self._lock = None
        if folder.is_offline:
            logger.error("%s is not marked clean, because it has failed", folder.path)

    async def _write_out(self) -> bool:
        """Bring every log to disk; whether that went well."""
        queue = iter(list(self._logs.values()))

        async def write_some() -> None:
            for partition_log in queue:
                if self.folder.is_offline:
                    return
                try:
                    await partition_log.flush_for_stop()
                except KafkaError:
                    return

        async with trio.open_nursery() as nursery:
            for _ in range(_FLUSHES_AT_ONCE):
                nursery.start_soon(write_some)
        return not self.folder.is_offline


async def _repeat(interval: float, action: Callable[[], Awaitable[None]]) -> None:
    """Call ``action`` every ``interval`` seconds, for the first time soon after the start."""
    await trio.sleep(min(interval, _INITIAL_DELAY_SECONDS))
    while True:
        await action()
        await trio.sleep(interval)


async def _flush(partition_log: PartitionLog, inactive_only: bool) -> None:
    try:
        await partition_log.flush(inactive_only=inactive_only)
    except KafkaError as error:
        logger.error("flush of %s failed: %s", partition_log.directory, error)
