"""The log manager: startup, upkeep and clean shutdown of all logs of the broker.

Start: take the folders, say whose they are, and open every log in them (``log_directories``), and only then serve. Stop: flush,
checkpoints, and last of all the clean marks, which an I/O error withholds. Upkeep between: retention, compaction, flushes,
checkpoints, removal of deleted files, expiry of idle producers.

Several folders
---------------

A new partition goes to the folder with the fewest, and gets its files at once, so that a start finds it where it was. A
folder that fails goes *offline*: its logs are gone until the broker starts again, the others serve. While one is offline
it is not known what is in it, so a log that should exist is not created elsewhere.

A log moves to another folder by a *future* log there, which is filled until it is the same (``log_copy``) and then takes the
name of the old one (``log_replacement``); a start that finds a future log alone gives it the plain name.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.seams import Clock, Workers
from ..wire.schema import ZERO_UUID
from .background_flushes import BackgroundFlushes, flush_for_stop
from .directory_logs import DirectoryLogs
from .disk import Disk
from .files import log_future_dir_name
from .log_cleaner import LogCleaner
from .log_directories import LogDirectories, LogStartError
from .log_directory import LogDirectory
from .log_replacement import exchange_names, finish_replacement
from .partition_log import PartitionLog
from .settings import LogCleanerSettings, LogManagerSettings, LogSettings

logger = logging.getLogger(__name__)

_INITIAL_DELAY_SECONDS = 30.0
_LOGS_PER_TURN = 20
_MAX_PREFERRED = 10_000


class LogManager:
    """The logs of the log directories."""

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
        metadata_directory: str | None = None,
    ) -> None:
        """``directories`` are those of log.dirs; ``settings`` are the broker's defaults for a topic.

        ``metadata_directory`` is that of the metadata log where it is none of them.
        """
        self.settings = settings
        self.manager_settings = manager_settings
        self._clock = clock
        folders = [LogDirectory(disk, path, clock, workers, randomness=randomness) for path in directories]
        self.metadata_log_dir: LogDirectory | None = None
        if metadata_directory is not None:
            self.metadata_log_dir = LogDirectory(disk, metadata_directory, clock, workers, randomness=randomness)
        self._folders = LogDirectories(folders, self.metadata_log_dir)
        self._flushes = BackgroundFlushes()
        for part in self._folders.all_parts:
            part.folder.enqueue_flush = self._flushes.want
            part.folder.on_offline = self._handle_log_dir_failure
        self.offline_listeners: list[Callable[[LogDirectory], None]] = []
        """Called with a log directory that fails, after its logs are closed."""
        self.is_loaded = False
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._futures: dict[TopicPartition, PartitionLog] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self.cleaner = LogCleaner(self._logs.values(), cleaner_settings or LogCleanerSettings())

    @property
    def folders(self) -> Sequence[LogDirectory]:
        """The entries of log.dirs, in that order."""
        return self._folders.folders

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folders belong to; None when none says so yet."""
        return self._folders.cluster_id

    @property
    def broker_id(self) -> int | None:
        """The broker that the folders belong to; None when none says so yet."""
        return self._folders.broker_id

    @property
    def zookeeper(self) -> str | None:
        """Where the state of the folders' cluster was at their last start; None if it was no ZooKeeper."""
        return self._folders.zookeeper

    @property
    def has_offline_log_dir(self) -> bool:
        return len(self._folders.online) < len(self._folders)

    @property
    def is_offline(self) -> bool:
        """Whether every log directory has failed; a failed one stays so until the broker starts again."""
        return not self._folders.online

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get(TopicPartition(topic, partition))

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    @property
    def has_logs(self) -> bool:
        """Whether there is any."""
        return bool(self._logs)

    def future(self, topic: str, partition: int) -> PartitionLog | None:
        """The log that is being filled to replace the partition's."""
        return self._futures.get(TopicPartition(topic, partition))

    def logs_in(self, folder: LogDirectory) -> Iterable[PartitionLog]:
        """The logs in a folder, future ones too."""
        return self._folders.part(folder).logs.values()

    def log_dir_at(self, path: str) -> LogDirectory | None:
        """The folder with this absolute path."""
        return self._folders.at(path)

    # --- start --------------------------------------------------------------------------------------------------------

    def take(self, broker_id: int | None, *, is_on_zookeeper: bool = False) -> None:
        """Lock the folders, and see whose they are (``LogDirectories.take``). Raises LogStartError."""
        self._folders.take(broker_id, is_on_zookeeper=is_on_zookeeper)

    async def identify(self, broker_id: int, cluster_id: str, zookeeper: str | None = None) -> None:
        """Write ``meta.properties`` where it does not say so already (``LogDirectories.identify``). Raises LogStartError."""
        await self._folders.identify(broker_id, cluster_id, zookeeper)

    def reopen(self) -> None:
        """See whose the folders are after some were formatted (``LogDirectories.reopen``). Raises LogStartError."""
        self._folders.reopen()

    def check_formatted(self) -> None:
        """Check that each folder is one of a node of KRaft (``LogDirectories.check_formatted``). Raises LogStartError."""
        self._folders.check_formatted()

    def complete_directory_ids(self, make: Callable[[], bytes]) -> None:
        """Give each folder an id that has none (``LogDirectories.complete_directory_ids``). Raises LogStartError."""
        self._folders.complete_directory_ids(make)

    def directory_id(self, folder: LogDirectory) -> bytes:
        """The id of a log directory; zeros for one that could not be read."""
        meta = self._folders.part(folder).meta
        return ZERO_UUID if meta is None or meta.directory_id is None else meta.directory_id

    async def load(self) -> None:
        """Open every log. Raises LogStartError."""
        await self._folders.load(self.settings, self.manager_settings.recovery_threads_per_data_dir)
        self._gather_logs()
        self._expire_producers()
        self.is_loaded = True

    def _gather_logs(self) -> None:
        """Find the partitions in the folders. Raises LogStartError for one in two of them: an operator has to choose."""
        for part in self._folders:
            for key, partition_log in part.logs.items():
                logs = self._futures if partition_log.is_future else self._logs
                if (other := logs.get(key)) is not None:
                    raise LogStartError(
                        f"{key[0]}-{key[1]} is in two log directories, {other.directory} and {partition_log.directory}; "
                        "remove one of them, preferably from a directory that failed recently"
                    )
                logs[key] = partition_log
        # A future log alone: a crash fell between the two renames of its replacement. While a log directory is offline, the
        # current log may be in there instead.
        if not self.has_offline_log_dir:
            for key in self._futures.keys() - self._logs.keys():
                future = self._futures.pop(key)
                if finish_replacement(future):
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

        A log that belongs to another topic id is what a deleted topic of the same name left behind, or it came with a folder of
        another cluster. It is set aside as Kafka does with a stray log, and is never removed.
        Raises KafkaError KAFKA_STORAGE_ERROR, also when the partition is not new and may be in a folder that is offline.
        """
        partition_log = self._logs.get(TopicPartition(topic, partition))
        if partition_log is not None and topic_id is not None and partition_log.topic_id != topic_id:
            if partition_log.topic_id == ZERO_UUID:
                partition_log.assign_topic_id(topic_id)
            else:
                self.rename_to_stray(topic, partition)
                partition_log = None
        if partition_log is None:
            if not is_new:
                self._check_all_log_dirs_online(topic, partition)
            partition_log = self._create(topic, partition, topic_id, settings or self.settings)
        elif settings is not None:
            partition_log.update_settings(settings)
            if partition_log.safe_end_offset < partition_log.log_end_offset:
                # ``DirectoryLogs.load`` went by the broker's settings; by the topic's, what a crash left is to be flushed as
                # well.
                partition_log.flush_at_once()
        return partition_log

    def _check_all_log_dirs_online(self, topic: str, partition: int) -> None:
        offline = self._folders.offline_log_dirs
        if offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"cannot create a log for {topic}-{partition} because {', '.join(offline)} is offline",
            )

    def _create(self, topic: str, partition: int, topic_id: bytes | None, settings: LogSettings) -> PartitionLog:
        refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        for part in self._places(topic, partition):
            partition_log = PartitionLog(part.folder, topic, partition, topic_id, settings)
            if len(self._folders) > 1:
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

    def _places(self, topic: str, partition: int) -> list[DirectoryLogs]:
        """Where to make a new log: the preferred folder, else the one with the fewest logs first."""
        online = self._folders.online
        preferred = self._preferred.get(TopicPartition(topic, partition))
        if preferred is not None and not preferred.is_offline:
            return [self._folders.part(preferred)]
        return sorted(online, key=lambda part: len(part.logs)) if len(online) > 1 else online

    def prefer(self, topic: str, partition: int, folder: LogDirectory) -> None:
        """Remember where a log is to be made that does not exist yet."""
        if len(self._preferred) >= _MAX_PREFERRED:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[TopicPartition(topic, partition)] = folder

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log; its folder is renamed at once and removed after ``file.delete.delay.ms``. Raises KafkaError."""
        self.delete_future(topic, partition)  # first: alone it would be taken for the partition's log
        partition_log = self._logs.pop(TopicPartition(topic, partition), None)
        if partition_log is not None:
            self._folders.part(partition_log.folder).delete(partition_log)

    def rename_to_stray(self, topic: str, partition: int) -> None:
        """Forget a log, and one that was to replace it; both folders stay, under another name. Raises KafkaError."""
        key = TopicPartition(topic, partition)
        for logs in (self._futures, self._logs):  # a future log first: alone it would be taken for the partition's log
            partition_log = logs.pop(key, None)
            if partition_log is not None:
                self._folders.part(partition_log.folder).rename_to_stray(partition_log)

    # --- moving a log to another folder -------------------------------------------------------------------------------

    def create_future(self, current: PartitionLog, folder: LogDirectory) -> PartitionLog:
        """An empty log in another folder, to be filled from ``current``.

        Raises KafkaError KAFKA_STORAGE_ERROR, also while a folder is offline, where there may be such a log already.
        """
        topic, partition = current.topic, current.partition
        self._check_all_log_dirs_online(topic, partition)
        name = log_future_dir_name(topic, partition, folder.randomness)
        if name is None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        future = PartitionLog(folder, topic, partition, current.topic_id, current.settings, folder_name=name)
        try:
            future.start_first_segment()
        except OSError as error:
            raise folder.fail(f"cannot create {future.directory}", error) from error
        key = TopicPartition(topic, partition)
        self._folders.part(folder).logs[key] = self._futures[key] = future
        return future

    def delete_future(self, topic: str, partition: int) -> None:
        """Forget the log that was to replace another one. Raises KafkaError."""
        future = self._futures.pop(TopicPartition(topic, partition), None)
        if future is not None:
            self._folders.part(future.folder).delete(future)

    def replace_with_future(self, topic: str, partition: int) -> PartitionLog:
        """Let the future log, which has all that the partition's log has, take its place. Neither is being flushed.

        When the future log's folder fails, the old log stays. Raises KafkaError KAFKA_STORAGE_ERROR.
        """
        key = TopicPartition(topic, partition)
        current, future = self._logs[key], self._futures[key]
        # A flush under way would write to the old paths.
        assert current.flushing is None
        assert future.flushing is None
        source = self._folders.part(current.folder)
        exchange_names(source, current, future)
        self._logs[key] = self._futures.pop(key)
        future.update_settings(current.settings)
        del source.logs[key]
        current.close()
        source.remove_deleted(current)
        return future

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
            for part in self._folders.all_parts:
                nursery.start_soon(part.run_timers)
            for part in self._folders:
                nursery.start_soon(part.run_checkpoints, max(checkpoint_ms, 1) / 1000)
                nursery.start_soon(part.run_high_watermarks, manager.high_watermark_checkpoint_interval_ms / 1000)
            nursery.start_soon(self._flushes.run)
            nursery.start_soon(self.cleaner.run)
            nursery.start_soon(_repeat, manager.retention_check_interval_ms / 1000, self.delete_old_segments)
            nursery.start_soon(
                _repeat, manager.producer_id_expiration_check_interval_ms / 1000, self._expire_idle_producers
            )

    def _handle_log_dir_failure(self, folder: LogDirectory) -> None:
        """Close the logs of a folder that has failed; what is in their files is not known any more."""
        self._folders.part(folder).close_logs()
        for logs in (self._logs, self._futures):
            for key in [key for key, partition_log in logs.items() if partition_log.folder is folder]:
                del logs[key]
        for listener in self.offline_listeners:
            listener(folder)

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
        for part in self._folders.online:
            await part.write_checkpoints()

    # --- stop ---------------------------------------------------------------------------------------------------------

    async def stop(self, broker_epoch: int = -1) -> None:
        """Flush everything, mark each folder clean if all of it is on disk, and let go of them.

        ``broker_epoch`` goes into the marks: it is that of the broker's registration at a quorum.
        """
        try:
            await flush_for_stop(partition_log for part in self._folders for partition_log in part.logs.values())
            for part in self._folders:
                await part.mark_clean(broker_epoch)
        finally:
            for part in self._folders.all_parts:
                part.release()


async def _repeat(interval: float, action: Callable[[], Awaitable[None]]) -> None:
    """Call ``action`` every ``interval`` seconds, for the first time soon after the start."""
    await trio.sleep(min(interval, _INITIAL_DELAY_SECONDS))
    while True:
        await action()
        await trio.sleep(interval)
