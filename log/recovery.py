"""Crash recovery of a log: a scan for the last valid batch, and truncation after it.

Everything from the beginning of the segment that holds the recovery point may be damaged: those segments are scanned, their
indexes and the producers' state rebuilt, and at the first thing that is no valid batch the log is cut and later
segments are dropped. A segment that ends before the next one begins has lost its end, unless the log was compacted once.
Segments below the recovery point are believed.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import LEGACY_CRC_END, LEGACY_HEADER, LENGTH_PREFIX_SIZE, MAGIC
from ..wire.records import RecordBatch
from .disk import Disk, OpenFile
from .files import SEGMENT_SUFFIXES
from .leader_epochs import LeaderEpochCache
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError, OffsetIndex
from .producer_state import ProducerStateManager
from .scan import scan_batches
from .segment import LogSegment
from .transaction_index import AbortedTxn

logger = logging.getLogger(__name__)

_MAX_LEGACY_MESSAGE = 1 << 30


class UnsupportedLogError(Exception):
    """A log that is sound, but that Ottla cannot read. ``str()`` is one line for people."""


class LogRecovery:
    """Recovers one log, whose ``segments``, ``producers`` and ``leader_epochs`` it changes. Raises OSError."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segments: list[LogSegment],
        producers: ProducerStateManager,
        leader_epochs: LeaderEpochCache,
        index_interval_bytes: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._segments = segments
        self._producers = producers
        self._leader_epochs = leader_epochs
        self._index_interval_bytes = index_interval_bytes

    def run(self, recovery_point: int, *, was_compacted: bool) -> None:
        """Scan the doubtful segments and cut the log after the last valid batch. Raises UnsupportedLogError."""
        segments, producers = self._segments, self._producers
        first = max((i for i, s in enumerate(segments) if s.base_offset <= recovery_point), default=0)
        doubtful = segments[first:]  # the first one whole: its indexes are synced only after it is rolled
        producers.load_newest_snapshot(segments[0].base_offset, doubtful[0].base_offset)
        replay_files(producers, segments[:first], doubtful[0].base_offset)
        for slot, segment in enumerate(doubtful, first):
            if slot > first and segment.base_offset < segments[slot - 1].next_offset:
                # A truncation took it away, but its removal did not last.
                logger.warning("%s begins before offset %d", segment.path, segments[slot - 1].next_offset)
                self._drop(slot)
                return
            # Where each segment begins there is a snapshot: a truncation and the next recovery go on from it.
            producers.map_end_offset = max(producers.map_end_offset, segment.base_offset)
            producers.take_snapshot()
            size = segment.size
            self._recover_segment(segment)
            following = segments[slot + 1] if slot + 1 < len(segments) else None
            has_gap = following is not None and segment.next_offset < following.base_offset
            if segment.size < size or (has_gap and not was_compacted):
                logger.warning(
                    "%s: cut from %d to %d bytes, at offset %d", segment.path, size, segment.size, segment.next_offset
                )
                self._drop(slot + 1)
                return
            if following is not None and has_gap:
                # Compaction took the batches between: segments leave no gaps.
                segment.next_offset = following.base_offset

    def _recover_segment(self, segment: LogSegment) -> None:
        """Scan one segment: cut it after its last valid batch, build its indexes, follow producers and epochs."""
        epochs = self._leader_epochs
        file = self._disk.open(segment.path)
        try:
            segment.indexes.clear()
            segment.aborted.clear()
            valid_size = 0
            next_offset = segment.base_offset
            for position, batch in self._valid_batches(file, segment):
                segment.indexes.add(
                    batch.last_offset, batch.max_timestamp, position, batch.size, self._index_interval_bytes
                )
                valid_size = position + batch.size
                next_offset = batch.next_offset
                epochs.correct(batch.partition_leader_epoch, batch.base_offset, batch.last_offset)
                aborted = _follow(self._producers, batch)
                if aborted is not None:
                    segment.aborted.append(aborted)
            segment.next_offset = next_offset
            if valid_size < segment.size:
                file.truncate(valid_size)
                file.sync()  # the recovery point may already be at the cut
                segment.file.size = valid_size
        finally:
            file.close()
        segment.indexes.write()
        segment.drop_indexes()

    def _valid_batches(self, file: OpenFile, segment: LogSegment) -> Iterable[tuple[int, RecordBatch]]:
        """The batches of a segment up to the first thing that is none."""
        next_offset = segment.base_offset
        position = -1
        try:
            for position, batch in scan_batches(file, 0, segment.size):
                batch.check_crc()
                check_order(batch, segment.base_offset, next_offset)
                yield position, batch
                next_offset = batch.next_offset
        except KafkaError as error:
            if position < 0 and _is_legacy_message(file):
                raise UnsupportedLogError(
                    f"{segment.path} is of message format 0 or 1, which is not supported"
                ) from None
            logger.warning("%s: no valid batch follows offset %d: %s", segment.path, next_offset, error)

    def _drop(self, first: int) -> None:
        """Remove the segments from the list's place ``first`` on."""
        for segment in self._segments[first:]:
            remove_segment(self._disk, segment, self._producers)
        del self._segments[first:]
        self._disk.sync_dir(self._directory)


def remove_segment(disk: Disk, segment: LogSegment, producers: ProducerStateManager) -> None:
    """Remove a segment's files at once; the caller syncs the folder. Raises OSError."""
    logger.warning("%s is after the end of the log and is removed", segment.path)
    for suffix in SEGMENT_SUFFIXES:
        disk.remove(segment.file.path_of(suffix))
    producers.remove_snapshot(segment.base_offset)


def _follow(producers: ProducerStateManager, batch: RecordBatch) -> AbortedTxn | None:
    aborted = None
    if batch.next_offset > producers.map_end_offset:
        if batch.producer_id >= 0:
            aborted = producers.update(batch)
        producers.map_end_offset = batch.next_offset
    return aborted


def replay_files(producers: ProducerStateManager, segments: Iterable[LogSegment], end_offset: int) -> None:
    """Follow the producers through sound segments, up to ``end_offset``. Raises OSError."""
    for segment in segments:
        if segment.next_offset > producers.map_end_offset:
            try:
                for batch in batches_of(segment):
                    _follow(producers, batch)
            except KafkaError as error:
                logger.warning("%s has a damaged end marker: %s", segment.path, error)
    producers.map_end_offset = max(producers.map_end_offset, end_offset)


def batches_of(segment: LogSegment) -> Iterable[RecordBatch]:
    """The batches of a segment up to the first damaged one; no descriptor stays open. Raises OSError."""
    file = segment.file.disk.open(segment.path)
    try:
        for _, batch in scan_batches(file, 0, segment.size):
            yield batch
    except KafkaError as error:
        logger.warning("%s is damaged: %s", segment.path, error)
    finally:
        file.close()


def find_clean_end(disk: Disk, log_path: str, index_path: str, base_offset: int) -> int:
    """The offset after the last batch of an active segment that was closed, by its index and the headers that follow it.

    Raises CorruptIndexError, KafkaError or FileNotFoundError where these do not fit together, and OSError.
    """
    file = disk.open(log_path)
    try:
        size = file.size()
        index = OffsetIndex.from_bytes(disk.read_file(index_path), size)
        start = index.positions[-1] if len(index) else 0
        end = base_offset
        for position, batch in scan_batches(file, start, size):
            if start and position == start and batch.last_offset != base_offset + index.relative_offsets[-1]:
                raise CorruptIndexError(f"its last entry does not fit the batch at {start}")
            check_order(batch, base_offset, end)
            end = batch.next_offset
        return end
    finally:
        file.close()


def check_order(batch: RecordBatch, base_offset: int, next_offset: int) -> None:
    """Raise KafkaError(CORRUPT_MESSAGE) for a batch that cannot follow ``next_offset`` in the segment ``base_offset``."""
    if batch.base_offset < next_offset or batch.last_offset_delta < 0:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"its offsets {batch.base_offset} to {batch.last_offset} are out of order"
        )
    if batch.last_offset - base_offset > MAX_RELATIVE_OFFSET:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {batch.last_offset} is too large for the segment")


def _is_legacy_message(file: OpenFile) -> bool:
    """Whether a file begins with a whole message of format 0 or 1, by its CRC."""
    data = file.read(LEGACY_HEADER.size, 0)
    if len(data) < LEGACY_HEADER.size:
        return False
    _, size, crc, magic = LEGACY_HEADER.unpack(data)
    if magic >= MAGIC or size < LEGACY_HEADER.size - LENGTH_PREFIX_SIZE:
        return False
    body = file.read(min(size - 4, _MAX_LEGACY_MESSAGE), LEGACY_CRC_END)
    return len(body) == size - 4 and zlib.crc32(body) == int(crc)
