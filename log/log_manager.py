"""All logs of the broker: opening those of every data folder, their upkeep, and a stop that leaves them clean.

Start: lock the folders, see whose they are, take the clean marks away, open every log (in worker threads, cutting what a
crash left behind), and only then serve. Stop: flush, checkpoints, and last of all the clean marks, which an I/O error
withholds. Upkeep between: retention, compaction, flushes, checkpoints, removal of deleted files, expiry of idle producers.

Several folders
---------------

A new partition goes to the folder with the fewest, and gets its files at once, so that a start finds it where it was. A
folder that fails goes *offline*: its logs are gone until the broker starts again, the others serve. While one is offline
nobody knows what is in it, so a log that should exist is not made anew elsewhere.

A log moves to another folder by a *future* log there, ``<topic>-<partition>.<32 hex digits>-future``, which is filled
until it is the same (``log_copy``). Then the old folder is renamed to a deleted one's name, and after that the new one to
the plain name, each made durable before the next; a start that finds a future log alone gives it the plain name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.seams import Clock, Workers
from ..wire.schema import ZERO_UUID
from .checkpoints import CorruptFileError, write_meta_properties
from .disk import Disk
from .files import future_folder_name, partition_folder_name
from .folder_logs import FolderLogs
from .log_cleaner import LogCleaner
from .log_folder import Flushable, LogFolder
from .partition_log import PartitionLog
from .recovery import UnsupportedLogError
from .settings import LogCleanerSettings, LogManagerSettings, LogSettings

logger = logging.getLogger(__name__)

_INITIAL_DELAY_SECONDS = 30.0
_LOGS_PER_TURN = 20
_FLUSHES_AT_ONCE = 8  # file systems commit several syncs together
_MAX_PREFERRED = 10_000


class LogStartError(Exception):
    """The data folders cannot be used. ``str()`` is one line for people."""


class LogManager:
    """The logs of the data folders. ``offline_listeners`` are told of a folder that fails, after its logs are closed."""

    def __init__(
        self,
        disk: Disk,
        directories: Iterable[str],
        settings: LogSettings,
        manager_settings: LogManagerSettings,
        clock: Clock,
        workers: Workers,
        randomness: random.Random,
        cleaner_settings: LogCleanerSettings | None = None,
    ) -> None:
        """``directories`` are those of log.dirs; ``settings`` are the broker's defaults for a topic."""
        self.settings = settings
        self.manager_settings = manager_settings
        self._clock = clock
        self._parts = [FolderLogs(LogFolder(disk, path, clock, workers, randomness=randomness)) for path in directories]
        for folder in self.folders:
            folder.wants_flush = self._want_flush
            folder.on_offline = self._folder_failed
        self.offline_listeners: list[Callable[[LogFolder], None]] = []
        self.is_loaded = False
        self.cluster_id: str | None = None
        self.broker_id = -1
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._futures: dict[TopicPartition, PartitionLog] = {}
        self._preferred: dict[TopicPartition, LogFolder] = {}
        self.cleaner = LogCleaner(self._logs.values(), cleaner_settings or LogCleanerSettings())
        self._flushes: dict[Flushable, bool] = {}
        self._flush_wanted = trio.Event()

    @property
    def folders(self) -> Sequence[LogFolder]:
        """The entries of log.dirs, in that order."""
        return [part.folder for part in self._parts]

    @property
    def has_offline_folder(self) -> bool:
        return any(part.folder.is_offline for part in self._parts)

    @property
    def is_offline(self) -> bool:
        """Whether every data folder has failed; a failed one stays so until the broker starts again."""
        return all(part.folder.is_offline for part in self._parts)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get(TopicPartition(topic, partition))

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    def future(self, topic: str, partition: int) -> PartitionLog | None:
        """The log that is being filled to replace the partition's."""
        return self._futures.get(TopicPartition(topic, partition))

    def logs_in(self, folder: LogFolder) -> Iterable[PartitionLog]:
        """The logs in a folder, future ones too."""
        return self._part(folder).logs.values()

    def folder_at(self, path: str) -> LogFolder | None:
        """The folder with this absolute path."""
        return next((folder for folder in self.folders if os.path.abspath(folder.path) == path), None)

    def _part(self, folder: LogFolder) -> FolderLogs:
        return next(part for part in self._parts if part.folder is folder)

    # --- start --------------------------------------------------------------------------------------------------------

    async def start(self, broker_id: int) -> None:
        """Take the folders and open every log in them. Raises LogStartError."""
        for part in self._parts:
            self._take(part)
        self._identify(broker_id)
        refusals: list[Exception] = []
        async with trio.open_nursery() as nursery:
            for part in self._parts:
                if not part.folder.is_offline:
                    nursery.start_soon(self._load, part, refusals)
        if refusals:
            raise LogStartError(str(refusals[0])) from refusals[0]
        self._check_online()
        self._gather_logs()
        self._expire_producers()
        self.is_loaded = True

    def _take(self, part: FolderLogs) -> None:
        folder = part.folder
        try:
            folder.max_open_files = folder.disk.max_open_files() // len(self._parts)
            part.take()
        except BlockingIOError:
            raise LogStartError(f"the data folder {folder.path} is in use by another process") from None
        except OSError as error:
            folder.fail("it cannot be used", error, is_half_done=True)
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None

    async def _load(self, part: FolderLogs, refusals: list[Exception]) -> None:
        try:
            await part.load(self.settings, self.manager_settings.recovery_threads_per_data_dir)
        except (OSError, KafkaError) as error:
            part.folder.fail("it cannot be read", error, is_half_done=True)
        except UnsupportedLogError as error:
            refusals.append(error)

    def _check_online(self) -> None:
        if self.is_offline:
            failed = "; ".join(f"the data folder {f.path} cannot be used: {f.failure}" for f in self.folders)
            raise LogStartError(failed)

    def _identify(self, broker_id: int) -> None:
        self.broker_id = broker_id
        first: FolderLogs | None = None
        for part in self._parts:
            meta = part.meta
            if meta is None:
                continue
            path = part.folder.path
            if meta.broker_id not in (None, broker_id):
                raise LogStartError(
                    f"the data folder {path} belongs to broker {meta.broker_id}, but this is broker {broker_id}"
                )
            if meta.cluster_id is None:
                continue
            if first is not None and meta.cluster_id != self.cluster_id:
                raise LogStartError(
                    f"the data folder {path} belongs to cluster {meta.cluster_id}, "
                    f"but {first.folder.path} to cluster {self.cluster_id}"
                )
            first = first or part
            self.cluster_id = meta.cluster_id

    async def set_cluster_id(self, cluster_id: str) -> None:
        """Write ``meta.properties`` where it does not say so already. Raises LogStartError when one names another cluster."""
        if self.cluster_id not in (None, cluster_id):
            paths = ", ".join(folder.path for folder in self.folders)
            raise LogStartError(
                f"the data folder {paths} belongs to cluster {self.cluster_id}, but this is {cluster_id}"
            )
        self.cluster_id = cluster_id
        for part in self._parts:
            folder = part.folder
            if folder.is_offline or (part.meta is not None and part.meta.cluster_id is not None):
                continue
            try:
                await folder.workers.run(write_meta_properties, folder.disk, folder.path, self.broker_id, cluster_id)
            except OSError as error:
                folder.fail("cannot write meta.properties", error, is_half_done=True)
        self._check_online()

    def _gather_logs(self) -> None:
        """Find the partitions in the folders; one that is in two of them is for people to decide about."""
        for part in self._parts:
            for key, partition_log in part.logs.items():
                logs = self._futures if partition_log.is_future else self._logs
                if (other := logs.get(key)) is not None:
                    raise LogStartError(
                        f"{key[0]}-{key[1]} is in two data folders, {other.directory} and {partition_log.directory}; "
                        "one of them has to be removed, rather the one of a folder that has failed lately"
                    )
                logs[key] = partition_log
        if not self.has_offline_folder:
            for key in self._futures.keys() - self._logs.keys():
                self._finish_replacement(key)

    def _finish_replacement(self, key: TopicPartition) -> None:
        """A crash came between the two renames of a move."""
        future = self._futures.pop(key)
        logger.info("%s: finishing the move of %s-%d", future.directory, *key)
        try:
            future.rename_folder(partition_folder_name(*key))
            future.folder.disk.sync_dir(future.folder.path)
        except OSError as error:
            future.folder.fail(f"cannot rename {future.directory}", error)
        else:
            self._logs[key] = future

    # --- the logs -----------------------------------------------------------------------------------------------------

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        settings: LogSettings | None = None,
        *,
        is_new: bool = True,
    ) -> PartitionLog:
        """The log of a partition. In an only folder a new one has no file until it is written to.

        A log that belongs to another topic id is what a deleted topic of the same name left behind, and is deleted.
        Raises KafkaError KAFKA_STORAGE_ERROR, also when the partition is not new and may be in a folder that is offline.
        """
        partition_log = self._logs.get(TopicPartition(topic, partition))
        if partition_log is not None and topic_id is not None and partition_log.topic_id != topic_id:
            if partition_log.topic_id == ZERO_UUID:
                partition_log.take_topic_id(topic_id)
            else:
                logger.warning("%s is of an earlier topic of that name and is deleted", partition_log.directory)
                self.delete(topic, partition)
                partition_log = None
        if partition_log is None:
            if not is_new:
                self._check_no_folder_offline(topic, partition)
            partition_log = self._create(topic, partition, topic_id, settings or self.settings)
        elif settings is not None:
            partition_log.update_settings(settings)
        return partition_log

    def _check_no_folder_offline(self, topic: str, partition: int) -> None:
        offline = [folder.path for folder in self.folders if folder.is_offline]
        if offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"cannot create a log for {topic}-{partition} because {', '.join(offline)} is offline",
            )

    def _create(self, topic: str, partition: int, topic_id: bytes | None, settings: LogSettings) -> PartitionLog:
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every data folder is offline")
        for part in self._places(topic, partition):
            partition_log = PartitionLog(part.folder, topic, partition, topic_id, settings)
            if len(self._parts) > 1:
                try:
                    partition_log.start_first_segment()
                except OSError as error:
                    refusal = part.folder.fail(f"cannot create {partition_log.directory}", error)
                    continue
            key = TopicPartition(topic, partition)
            part.logs[key] = self._logs[key] = partition_log
            self._preferred.pop(key, None)
            return partition_log
        raise refusal

    def _places(self, topic: str, partition: int) -> list[FolderLogs]:
        """Where to make a new log: the preferred folder, else the one with the fewest logs first."""
        online = [part for part in self._parts if not part.folder.is_offline]
        preferred = self._preferred.get(TopicPartition(topic, partition))
        if preferred is not None and not preferred.is_offline:
            return [self._part(preferred)]
        return sorted(online, key=lambda part: len(part.logs)) if len(online) > 1 else online

    def prefer(self, topic: str, partition: int, folder: LogFolder) -> None:
        """Remember where a log is to be made that does not exist yet."""
        if len(self._preferred) >= _MAX_PREFERRED:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[TopicPartition(topic, partition)] = folder

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log; its folder is renamed at once and removed after ``file.delete.delay.ms``. Raises KafkaError."""
        self.delete_future(topic, partition)  # first: alone it would be taken for the partition's log
        partition_log = self._logs.pop(TopicPartition(topic, partition), None)
        if partition_log is not None:
            self._part(partition_log.folder).delete(partition_log)

    # --- moving a log to another folder -------------------------------------------------------------------------------

    def create_future(self, current: PartitionLog, folder: LogFolder) -> PartitionLog:
        """An empty log in another folder, to be filled from ``current``.

        Raises KafkaError KAFKA_STORAGE_ERROR, also while a folder is offline, where there may be such a log already.
        """
        topic, partition = current.topic, current.partition
        self._check_no_folder_offline(topic, partition)
        name = future_folder_name(topic, partition, folder.randomness)
        if name is None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        future = PartitionLog(folder, topic, partition, current.topic_id, current.settings, folder_name=name)
        try:
            future.start_first_segment()
        except OSError as error:
            raise folder.fail(f"cannot create {future.directory}", error) from error
        key = TopicPartition(topic, partition)
        self._part(folder).logs[key] = self._futures[key] = future
        return future

    def delete_future(self, topic: str, partition: int) -> None:
        """Forget the log that was to replace another one. Raises KafkaError."""
        future = self._futures.pop(TopicPartition(topic, partition), None)
        if future is not None:
            self._part(future.folder).delete(future)

    def replace_with_future(self, topic: str, partition: int) -> PartitionLog:
        """Let the future log, which has all that the partition's log has, take its place. Neither is being flushed.

        When the future log's folder fails, the old log stays. Raises KafkaError KAFKA_STORAGE_ERROR.
        """
        key = TopicPartition(topic, partition)
        current, future = self._logs[key], self._futures[key]
        assert current.flushing is None
        assert future.flushing is None
        source = self._part(current.folder)
        future_name = os.path.basename(future.directory)
        try:
            source.rename_to_deleted(current)
            source.folder.disk.sync_dir(source.folder.path)
        except OSError as error:
            raise source.folder.fail(f"cannot rename {current.directory}", error, is_half_done=True) from error
        try:
            future.rename_folder(partition_folder_name(topic, partition))
            future.folder.disk.sync_dir(future.folder.path)
        except OSError as error:
            self._take_back(current, future, future_name)
            raise future.folder.fail(f"cannot rename {future.directory}", error, is_half_done=True) from error
        self._logs[key] = self._futures.pop(key)
        future.update_settings(current.settings)
        del source.logs[key]
        current.close()
        source.remove_deleted(current)
        return future

    @staticmethod
    def _take_back(current: PartitionLog, future: PartitionLog, future_name: str) -> None:
        """Undo the renames, the last one first, so that a crash does not leave the partition in two folders."""
        with contextlib.suppress(OSError):
            future.rename_folder(future_name)
        try:
            current.rename_folder(partition_folder_name(current.topic, current.partition))
        except OSError as error:
            current.folder.fail(f"cannot rename {current.directory}", error, is_half_done=True)

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def update_settings(
        self, settings: LogSettings, manager_settings: LogManagerSettings, cleaner_settings: LogCleanerSettings
    ) -> None:
        """Go by other settings from now on; each log is told of its own with ``PartitionLog.update_settings``."""
        self.settings = settings
        self.manager_settings = manager_settings
        self.cleaner.update_settings(cleaner_settings)

    async def run(self) -> None:
        """Look after the logs until cancelled."""
        manager = self.manager_settings
        start_offset_ms = manager.flush_start_offset_checkpoint_interval_ms
        checkpoint_ms = min(manager.flush_offset_checkpoint_interval_ms, start_offset_ms)
        async with trio.open_nursery() as nursery:
            for part in self._parts:
                nursery.start_soon(part.run_timers)
                nursery.start_soon(part.run_checkpoints, max(checkpoint_ms, 1) / 1000)
                nursery.start_soon(part.run_high_watermarks, manager.high_watermark_checkpoint_interval_ms / 1000)
            nursery.start_soon(self._run_flushes)
            nursery.start_soon(self.cleaner.run)
            nursery.start_soon(_repeat, manager.retention_check_interval_ms / 1000, self.delete_old_segments)
            nursery.start_soon(
                _repeat, manager.producer_id_expiration_check_interval_ms / 1000, self._expire_idle_producers
            )

    def _folder_failed(self, folder: LogFolder) -> None:
        """Close the logs of a folder that has failed; nobody knows what is in their files any more."""
        self._part(folder).close_logs()
        for logs in (self._logs, self._futures):
            for key in [key for key, partition_log in logs.items() if partition_log.folder is folder]:
                del logs[key]
        for listener in self.offline_listeners:
            listener(folder)

    def _want_flush(self, partition_log: Flushable, inactive_only: bool) -> None:
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

    async def delete_old_segments(self) -> None:
        """Apply retention to every log."""
        for count, partition_log in enumerate(list(self._logs.values())):
            if count % _LOGS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            if partition_log.segments and not partition_log.is_closed and partition_log not in self.cleaner.in_progress:
                try:
                    partition_log.delete_old_segments(self._clock.now_ms())
                except KafkaError as error:
                    partition_log.folder.log_failed("retention stops", error)

    async def _expire_idle_producers(self) -> None:
        self._expire_producers()

    def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        for partition_log in self._logs.values():
            if partition_log.producer_state.producers:
                partition_log.producer_state.expire(now_ms, self.manager_settings.producer_id_expiration_ms)

    async def write_checkpoints(self) -> None:
        """Write the offset checkpoints that have changed. Raises OSError."""
        for part in self._parts:
            if not part.folder.is_offline:
                await part.write_checkpoints()

    # --- stop ---------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Flush everything, mark each folder clean if all of it is on disk, and let go of them."""
        try:
            await self._write_out()
            for part in self._parts:
                await part.mark_clean()
        finally:
            for part in self._parts:
                part.let_go()

    async def _write_out(self) -> None:
        """Bring every log to disk; a folder where that does not succeed is offline afterwards."""
        queue = iter([partition_log for part in self._parts for partition_log in part.logs.values()])

        async def write_some() -> None:
            for partition_log in queue:
                if not partition_log.folder.is_offline:
                    try:
                        await partition_log.flush_for_stop()
                    except KafkaError as error:
                        partition_log.folder.fail(f"cannot flush {partition_log.directory}", error)

        async with trio.open_nursery() as nursery:
            for _ in range(_FLUSHES_AT_ONCE):
                nursery.start_soon(write_some)


async def _repeat(interval: float, action: Callable[[], Awaitable[None]]) -> None:
    """Call ``action`` every ``interval`` seconds, for the first time soon after the start."""
    await trio.sleep(min(interval, _INITIAL_DELAY_SECONDS))
    while True:
        await action()
        await trio.sleep(interval)


async def _flush(partition_log: Flushable, inactive_only: bool) -> None:
    try:
        await partition_log.flush(inactive_only=inactive_only)
    except KafkaError as error:
        partition_log.folder.log_failed(f"flush of {partition_log.directory} failed", error)
