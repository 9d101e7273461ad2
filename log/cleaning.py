"""One compaction of one log: the dirty part is read, the newest offset of each key kept, and the log rewritten.

1. The records from ``first_dirty_offset`` up to ``first_uncleanable_offset`` are put into an ``OffsetMap``. When it is
   full, the cleaning ends there, and the next one goes on.
2. The segments from the start of the log up to there are grouped, so that a group is no larger than one segment may be.
   Each group is filtered (``batch_filter``) into one new segment, which is synced and takes its place
   (``segment_swap``). A group whose segments have been deleted or truncated meanwhile ends the cleaning.

Files are read and written in worker threads, a buffer's length at a time, each followed by the throttle; what is shared
with the rest of the broker, the list of segments above all, is touched on the loop only. A segment is pinned while it is
read, so clients go on reading it, and deletion doesn't take it away.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from ..wire.records import RecordBatch
from .batch_filter import BatchFilter, last_records
from .cleaned_transactions import CleanedTransactions
from .disk import Disk
from .files import CLEANED_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX
from .offset_index import MAX_RELATIVE_OFFSET
from .offset_map import OffsetMap
from .partition_log import PartitionLog
from .scan import scan_batches
from .segment import LogSegment
from .segment_swap import remove_cleaned
from .transactional_reads import aborted_between
from .validation import MAX_DECOMPRESSED_BYTES

logger = logging.getLogger(__name__)


class Throttle(Protocol):
    async def took(self, nbytes: int) -> None:
        """Wait until so many bytes more are within the limit."""
        ...


class CleaningAborted(Exception):
    """The log was truncated or deleted, or lost segments, while it was being cleaned."""


@dataclass(slots=True)
class CleaningStats:
    """What a cleaning did, over all its segments."""

    bytes_read: int = 0
    bytes_written: int = 0


class Cleaning:
    """Cleans ``partition_log`` once: ``await run()``. Raises CleaningAborted, OSError, KafkaError for damaged records."""

    def __init__(
        self,
        partition_log: PartitionLog,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        offset_map: OffsetMap,
        throttle: Throttle,
        buffer_size: int,
    ) -> None:
        """``first_uncleanable_offset`` is where a segment begins."""
        self._log = partition_log
        self._first_dirty_offset = first_dirty_offset
        self._end_offset = first_uncleanable_offset
        self._map = offset_map
        self._throttle = throttle
        self._buffer_size = buffer_size
        self._truncations = partition_log.truncations
        self._now_ms = partition_log.folder.clock.now_ms()
        self.stats = CleaningStats()

    async def run(self) -> int:
        """Returns the offset up to which the log is clean now."""
        log = self._log
        if log.cleaned_offset is None:
            # On disk before the first swap, because recovery takes gaps for lost records in a log never compacted.
            log.update_cleaned_offset(self._first_dirty_offset)
            log.folder.checkpoint_now()
        await self._fill_map()
        clean_to = self._map.latest_offset + 1
        segments = [segment for segment in log.segments if segment.base_offset < clean_to]
        transactions = CleanedTransactions()
        for group in await self._group(segments):
            await self._clean_group(group, transactions)
        self._check()
        return max(clean_to, self._first_dirty_offset)

    def _check(self, *segments: LogSegment) -> None:
        """Raise CleaningAborted or KafkaError if the log changed during the last wait; to be called after each.

        A truncation counts in ``truncations``; retention and deletion close the files of their segments.
        """
        log = self._log
        if log.is_closed or log.truncations != self._truncations or any(segment.file.is_closed for segment in segments):
            raise CleaningAborted
        log.folder.check_online()

    # --- the map ------------------------------------------------------------------------------------------------------

    async def _fill_map(self) -> None:
        segments, start, end = self._log.segments, self._first_dirty_offset, self._end_offset
        first = max((slot for slot, segment in enumerate(segments) if segment.base_offset <= start), default=0)
        dirty = [segment for segment in segments[first:] if segment.base_offset < end]
        transactions = CleanedTransactions()
        transactions.add(aborted_between(self._log.segments, start, end))
        for segment, following in itertools.zip_longest(dirty, dirty[1:]):
            self._check(segment)
            filling = _Filling(segment, start, self._map, transactions, self._buffer_size)
            await self._work(segment, filling)
            if filling.is_full:
                return
            self._map.latest_offset = (end if following is None else following.base_offset) - 1

    async def _work(self, segment: LogSegment, work: _Filling | _Filtering) -> None:
        """Go through a segment in steps."""
        with segment.file.pinned():
            while not work.is_done:
                await self._throttle.took(await self._log.folder.workers.run(work.step))
                self._check(segment)

    # --- groups -------------------------------------------------------------------------------------------------------

    async def _group(self, segments: list[LogSegment]) -> list[list[LogSegment]]:
        paths = [(segment.file.path_of(INDEX_SUFFIX), segment.file.path_of(TIME_INDEX_SUFFIX)) for segment in segments]
        log = self._log
        sizes = await log.folder.workers.run(_index_sizes, log.folder.disk, paths)
        self._check(*segments)
        ends = [segment.base_offset for segment in segments[1:]] + [self._end_offset]
        groups: list[list[LogSegment]] = []
        totals = [0, 0, 0]
        limits = (log.settings.segment_bytes, log.settings.segment_index_bytes, log.settings.segment_index_bytes)
        for segment, (index_size, time_index_size), end in zip(segments, sizes, ends, strict=True):
            added = [segment.size, index_size, time_index_size]
            grown = [total + size for total, size in zip(totals, added, strict=True)]
            fits = all(size <= limit for size, limit in zip(grown, limits, strict=True))
            # Index entries are int32, relative to where the group begins.
            if groups and fits and (not segment.size or end - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET):
                groups[-1].append(segment)
                totals = grown
            else:
                groups.append([segment])
                totals = added
        return groups

    async def _clean_group(self, group: list[LogSegment], transactions: CleanedTransactions) -> None:
        log = self._log
        known = last_records(log.producer_state.producers.values(), log.high_watermark, log.log_end_offset)
        batch_filter = BatchFilter(
            self._map, transactions, known, self._end_offset, log.settings.delete_retention_ms, self._now_ms
        )
        async with self._new_segment(group[0].base_offset) as cleaned:
            transactions.redirect(cleaned.aborted.append)
            try:
                for segment in group:
                    self._check(*group)
                    transactions.add(aborted_between(log.segments, segment.base_offset, segment.next_offset))
                    filtering = _Filtering(segment, cleaned, batch_filter, self._buffer_size, log, self.stats)
                    await self._work(segment, filtering)
                await log.folder.workers.run(_finish, cleaned, group[-1].path)
            except OSError:
                self._check(*group)  # files that have gone with a change of the log are no error
                raise
            self._check(*group)
            cleaned.drop_indexes()
            # Where the next segment begins, even if the last records were not kept: segments leave no gaps.
            cleaned.next_offset = group[-1].next_offset
            log.replace_segments(group, cleaned)
        # The swap is on disk before ``cleaned_offset`` moves: keys below that are not put into the map again.
        await log.folder.workers.run(log.folder.disk.sync_dir, log.directory)

    @asynccontextmanager
    async def _new_segment(self, base_offset: int) -> AsyncIterator[LogSegment]:
        """An empty segment with open ``.cleaned`` files, which are gone afterwards unless they have been renamed."""
        log = self._log
        cleaned = LogSegment(log.folder, log.directory, base_offset, self._now_ms)
        file = cleaned.file
        file.suffix = CLEANED_SUFFIX
        with file.pinned():
            try:
                cleaned.create()
                yield cleaned
            finally:
                if file.suffix == CLEANED_SUFFIX:
                    file.close()
                    with suppress(OSError):  # the next start removes what is left
                        remove_cleaned(file)


class _Filling:
    """Puts the keys of a segment into the map; ``is_full`` when not all of them had room. Raises OSError, KafkaError."""

    def __init__(
        self,
        segment: LogSegment,
        start_offset: int,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        buffer_size: int,
    ) -> None:
        self._start_offset = start_offset
        self._map = offset_map
        self._transactions = transactions
        self._buffer_size = buffer_size
        self._batches = _batches(segment, segment.position_of(start_offset), buffer_size)
        self.is_done = False
        self.is_full = False

    def step(self) -> int:
        """Take about a buffer's length; returns the bytes read. In a worker."""
        nbytes = 0
        for batch in self._batches:
            nbytes += batch.size
            if not self._put(batch):
                self.is_done = self.is_full = True
                return nbytes
            if nbytes >= self._buffer_size:
                return nbytes
        self.is_done = True
        return nbytes

    def _put(self, batch: RecordBatch) -> bool:
        batch.check_crc()
        if batch.is_control:
            self._transactions.may_drop_marker(batch)  # for what it ends; a marker has no key for the map
        elif not self._transactions.may_drop_data(batch):
            for record in batch.records(MAX_DECOMPRESSED_BYTES):
                if record.key is None or record.offset < self._start_offset:
                    continue
                if not self._map.put(record.key, record.offset):
                    return False
        if batch.last_offset >= self._start_offset:
            self._map.latest_offset = batch.last_offset
        return True


class _Filtering:
    """Writes what is kept of a segment to another one. Raises OSError, KafkaError."""

    def __init__(
        self,
        segment: LogSegment,
        cleaned: LogSegment,
        batch_filter: BatchFilter,
        buffer_size: int,
        partition_log: PartitionLog,
        stats: CleaningStats,
    ) -> None:
        self._cleaned = cleaned
        self._filter = batch_filter
        self._buffer_size = buffer_size
        self._index_interval_bytes = partition_log.settings.index_interval_bytes
        self._stats = stats
        self._batches = _batches(segment, 0, buffer_size)
        self.is_done = False

    def step(self) -> int:
        """Take about a buffer's length; returns the bytes read and written. In a worker."""
        cleaned = self._cleaned
        nbytes = 0
        size = cleaned.size
        for batch in self._batches:
            nbytes += batch.size
            kept = self._filter.keep(batch)
            if kept is not None:
                cleaned.append(kept.view, kept.last_offset, kept.max_timestamp, self._index_interval_bytes)
            if nbytes >= self._buffer_size:
                break
        else:
            self.is_done = True
        self._stats.bytes_read += nbytes
        self._stats.bytes_written += cleaned.size - size
        return nbytes + cleaned.size - size


def _batches(segment: LogSegment, position: int, buffer_size: int) -> Iterator[RecordBatch]:
    """The batches from a position on. The segment must stay pinned. Raises OSError at once, KafkaError later."""
    file = segment.file.open()
    return (batch for _, batch in scan_batches(file, position, segment.size, buffer_size))


def _index_sizes(disk: Disk, paths: list[tuple[str, str]]) -> list[tuple[int, int]]:
    return [(_file_size(disk, index), _file_size(disk, time_index)) for index, time_index in paths]


def _file_size(disk: Disk, path: str) -> int:
    try:
        return disk.file_size(path)
    except FileNotFoundError:
        return 0


def _finish(cleaned: LogSegment, newest_path: str) -> None:
    """Bring a segment to stable storage, with the time of the newest file it replaces. Raises OSError."""
    disk = cleaned.file.disk
    cleaned.file.open().sync()
    cleaned.indexes.write(sync=True)
    cleaned.aborted.sync()
    disk.set_modified_ms(cleaned.path, disk.modified_ms(newest_path))
