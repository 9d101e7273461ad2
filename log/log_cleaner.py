"""Background compaction of logs with ``cleanup.policy=compact`` (Apache Kafka's ``LogCleaner``).

Every ``log.cleaner.backoff.ms`` each of ``log.cleaner.threads`` tasks looks for the log with the largest part to clean
and cleans it, and goes on as long as it finds one. A log with a damaged record is reported and left alone until the
broker starts again; an I/O error takes the log's folder offline. After each look, retention is applied to logs that are
both compacted and deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import trio

from ..base.errors import KafkaError
from .cleanable import CleanableLog, find_cleanable
from .cleaning import Cleaning, CleaningAborted
from .offset_map import OffsetMap, memory_for
from .partition_log import PartitionLog
from .settings import LogCleanerSettings

logger = logging.getLogger(__name__)

_LOGS_PER_TURN = 20
_MIN_BUFFER_BYTES = 4096
_MIN_MAP_BYTES = 1 << 20


class IoThrottle:
    """Spreads bytes over time, all tasks together."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._paid_until = 0.0

    async def took(self, nbytes: int) -> None:
        """Wait until what was taken before is within the limit."""
        now = trio.current_time()
        self._paid_until = max(self._paid_until, now) + nbytes / self.bytes_per_second
        await trio.sleep_until(self._paid_until)


class LogCleaner:
    """Compacts ``logs``, which is looked at again each time."""

    def __init__(self, logs: Collection[PartitionLog], settings: LogCleanerSettings) -> None:
        self._logs = logs
        self._settings = settings
        self._throttle = IoThrottle(settings.log_cleaner_io_max_bytes_per_second)
        self._uncleanable: set[PartitionLog] = set()
        self._finished = trio.Event()
        self._settings_changed = trio.Event()
        self._running: set[int] = set()
        self.runs = 0
        """Compactions that came to their end."""
        self.bytes_read = 0
        self.bytes_written = 0
        """The bytes that those compactions retained."""
        self.in_progress: set[PartitionLog] = set()
        """The logs that are being cleaned now."""
        self.paused: set[PartitionLog] = set()
        """The logs that are to be left alone because they are being moved."""

    @property
    def uncleanable_count(self) -> int:
        """How many logs are left alone because of a damaged record."""
        return len(self._uncleanable)

    def is_given_up(self, partition_log: PartitionLog) -> bool:
        """Whether a log is left alone because of a damaged record."""
        return partition_log in self._uncleanable

    async def run(self) -> None:
        """Clean until cancelled."""
        if not self._settings.log_cleaner_enable:
            return
        async with trio.open_nursery() as nursery:
            while True:
                for number in range(self._settings.log_cleaner_threads):
                    if number not in self._running:
                        self._running.add(number)
                        nursery.start_soon(self._run_one, number)
                await self._settings_changed.wait()

    def update_settings(self, settings: LogCleanerSettings) -> None:
        """Go by other settings from now on; what is being cleaned is cleaned to its end."""
        self._settings = settings
        self._throttle.bytes_per_second = settings.log_cleaner_io_max_bytes_per_second
        self._settings_changed.set()
        self._settings_changed = trio.Event()

    async def _run_one(self, number: int) -> None:
        """Clean for as long as there are to be more than ``number`` tasks."""
        try:
            while number < self._settings.log_cleaner_threads:
                await self._clean_or_wait()
        finally:
            self._running.discard(number)

    async def _clean_or_wait(self) -> None:
        found = await self.clean_dirtiest()
        await self._delete_old_segments()
        if not found:
            with trio.move_on_after(self._settings.log_cleaner_backoff_ms / 1000):
                await self._settings_changed.wait()

    async def clean_dirtiest(self) -> bool:
        """Clean the log with the largest share of uncleaned bytes; False when there is none, or its files fail."""
        cleanable = await self._find_dirtiest()
        if cleanable is None:
            return False
        partition_log = cleanable.partition_log
        self.in_progress.add(partition_log)
        try:
            return await self._clean(cleanable)
        finally:
            self.in_progress.discard(partition_log)
            self._finished.set()
            self._finished = trio.Event()

    async def wait_until_idle(self, partition_log: PartitionLog) -> None:
        """Return once ``partition_log`` is not being cleaned."""
        while partition_log in self.in_progress:
            await self._finished.wait()

    async def _candidates(self) -> list[PartitionLog]:
        """The compacted logs that are not worked on."""
        self._uncleanable.intersection_update(self._logs)
        found = []
        for count, partition_log in enumerate(list(self._logs)):
            if count % _LOGS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            if partition_log.settings.is_compacted and partition_log.segments and self._is_free(partition_log):
                found.append(partition_log)
        return found

    def _is_free(self, partition_log: PartitionLog) -> bool:
        return not (
            partition_log.is_closed
            or partition_log.folder.is_offline
            or partition_log in self.in_progress
            or partition_log in self.paused
            or partition_log in self._uncleanable
        )

    async def _find_dirtiest(self) -> CleanableLog | None:
        dirtiest: CleanableLog | None = None
        for partition_log in await self._candidates():
            if not self._is_free(partition_log):
                continue  # closed, or taken by another task, while ``_candidates`` let others run
            try:
                found = find_cleanable(partition_log, partition_log.folder.clock.now_ms())
            except OSError as error:
                partition_log.folder.fail(f"cannot read {partition_log.directory}", error)
                continue
            except KafkaError as error:
                self._give_up(partition_log, error)
                continue
            if found is not None and (dirtiest is None or found.dirty_ratio > dirtiest.dirty_ratio):
                dirtiest = found
            if found is not None:
                logger.debug(
                    "%s can be compacted from offset %d to %d; of its bytes %.0f %% are new",
                    partition_log.directory,
                    found.first_dirty_offset,
                    found.first_uncleanable_offset,
                    found.dirty_ratio * 100,
                )
        return dirtiest

    def _give_up(self, partition_log: PartitionLog, error: Exception) -> None:
        logger.error("%s cannot be compacted and is left alone: %s", partition_log.directory, error)
        self._uncleanable.add(partition_log)

    async def _clean(self, cleanable: CleanableLog) -> bool:
        """Clean one log; False when its files could not be read or written."""
        partition_log, start = cleanable.partition_log, cleanable.first_dirty_offset
        settings = self._settings
        threads = settings.log_cleaner_threads or 1
        load_factor = settings.log_cleaner_dedupe_buffer_load_factor
        memory = min(
            max(settings.log_cleaner_dedupe_buffer_size // threads, _MIN_MAP_BYTES),
            memory_for(cleanable.first_uncleanable_offset - start, load_factor),
        )
        cleaning = Cleaning(
            partition_log,
            start,
            cleanable.first_uncleanable_offset,
            OffsetMap(memory, load_factor),
            self._throttle,
            # Half of the buffer for reading and half for writing, as in Kafka.
            max(settings.log_cleaner_io_buffer_size // threads // 2, _MIN_BUFFER_BYTES),
        )
        try:
            cleaned_offset = await cleaning.run()
        except CleaningAborted:
            logger.info("%s has changed while it was being compacted; it is left for later", partition_log.directory)
            return True
        except KafkaError as error:
            if not partition_log.folder.is_offline:
                self._give_up(partition_log, error)
            return True
        except OSError as error:
            if not partition_log.is_closed and not partition_log.folder.is_offline:
                partition_log.folder.fail(f"cannot compact {partition_log.directory}", error)
            return False
        partition_log.update_cleaned_offset(cleaned_offset)
        partition_log.folder.checkpoint_soon()
        stats = cleaning.stats
        self.runs += 1
        self.bytes_read += stats.bytes_read
        self.bytes_written += stats.bytes_written
        logger.info(
            "%s: compacted, offsets %d to %d were new; %d bytes became %d",
            partition_log.directory,
            start,
            cleaned_offset,
            stats.bytes_read,
            stats.bytes_written,
        )
        return True

    async def _delete_old_segments(self) -> None:
        for partition_log in await self._candidates():
            if partition_log.settings.deletes_old_segments and self._is_free(partition_log):
                try:
                    partition_log.delete_old_segments(partition_log.folder.clock.now_ms())
                except KafkaError as error:
                    partition_log.folder.log_failed("retention stops", error)
