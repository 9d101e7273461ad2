"""Opening a log that is already on disk, after a clean stop or after a crash.

After a clean stop the files are what they were; only the end of the active segment is looked up. After a crash,
everything from the beginning of the segment that holds the recovery point is doubtful: those segments are scanned, their
indexes and the producers' state built anew, and at the first thing that is no valid batch the log is cut and later
segments are dropped. A segment that ends before the next one begins has lost its end, unless the log was compacted once.
Segments below the recovery point are believed; a missing or damaged index of theirs is rebuilt when it is used.

Runs in a worker thread, on a log nobody else knows yet.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import LEGACY_CRC_END, LEGACY_HEADER, LENGTH_PREFIX_SIZE, MAGIC
from ..wire.records import RecordBatch
from .checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CorruptFileError,
    read_leader_epochs,
    read_topic_id,
)
from .disk import Disk, OpenFile, join
from .files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_file_name,
)
from .leader_epochs import LeaderEpochCache
from .log_folder import LogFolder
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError, OffsetIndex
from .partition_log import PartitionLog
from .producer_state import ProducerStateManager
from .scan import scan_batches
from .segment import LogSegment
from .segment_swap import finish_swaps
from .settings import LogSettings
from .transaction_index import AbortedTransaction, decode_transaction_index

logger = logging.getLogger(__name__)

_TEMPORARY_SUFFIXES = (DELETED_SUFFIX, ".tmp")
_COMPACTION_SUFFIXES = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
_MAX_LEGACY_MESSAGE = 1 << 30


class UnsupportedLogError(Exception):
    """A log that is sound, but that Ottla cannot read. ``str()`` is one line for people."""


class LogLoader:
    """Loads one partition's folder."""

    def __init__(
        self,
        folder: LogFolder,
        topic: str,
        partition: int,
        settings: LogSettings,
        *,
        folder_name: str | None = None,
        is_clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        cleaned_offset: int | None = None,
    ) -> None:
        """The offsets are those of the checkpoints; ``folder_name`` as in PartitionLog."""
        self._folder = folder
        self._disk = folder.disk
        self._log = PartitionLog(folder, topic, partition, None, settings, folder_name=folder_name)
        self._directory = self._log.directory
        self._is_clean = is_clean
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._high_watermark = high_watermark
        self._log.cleaned_offset = cleaned_offset
        self._was_compacted = cleaned_offset is not None
        self._transaction_indexes: set[int] = set()

    def load(self) -> PartitionLog:
        """Open the log. Raises OSError, UnsupportedLogError."""
        log, disk = self._log, self._disk
        base_offsets, snapshots = self._look_around()
        log.topic_id = self._read_topic_id() or log.topic_id
        log.leader_epochs, epochs_are_known = self._read_leader_epochs()
        log.producer_state = ProducerStateManager(disk, self._directory, 0, snapshots)
        if not base_offsets:
            log.producer_state.truncate_fully(0)
            if self._log_start_offset:
                log.log_start_offset = self._log_start_offset
                self._start_anew()
            return log
        log.segments = [self._segment(base_offset) for base_offset in base_offsets]
        log.segments[-1].created_ms = disk.modified_ms(log.segments[-1].path)  # only an active one is ever asked
        for segment, following in zip(log.segments, log.segments[1:], strict=False):
            segment.next_offset = following.base_offset
        log.log_start_offset = max(self._log_start_offset, base_offsets[0])
        log.producer_state.remove_stray_snapshots(base_offsets)
        self._check_transaction_indexes()
        if not self._is_clean or not self._find_end(log.segments[-1]):
            self._recover()
        self._finish(epochs_are_known)
        return log

    # --- what there is ------------------------------------------------------------------------------------------------

    def _look_around(self) -> tuple[list[int], list[int]]:
        """Base offsets of segments and offsets of snapshots; what is left of deletions is removed."""
        disk = self._disk
        names = set(disk.names(self._directory))
        self._was_compacted |= any(name.endswith(_COMPACTION_SUFFIXES) for name in names)
        for name in [name for name in names if name.endswith(_TEMPORARY_SUFFIXES)]:
            disk.remove(join(self._directory, name))
            names.remove(name)
        names = finish_swaps(disk, self._directory, names)
        parsed = {found: name for name in names if (found := parse_file_name(name)) is not None}
        base_offsets = sorted(offset for offset, suffix in parsed if suffix == LOG_SUFFIX)
        self._transaction_indexes = {offset for offset, suffix in parsed if suffix == TRANSACTION_INDEX_SUFFIX}
        for (offset, suffix), name in parsed.items():
            if suffix in SEGMENT_SUFFIXES and (offset, LOG_SUFFIX) not in parsed:
                disk.remove(join(self._directory, name))
        return base_offsets, [offset for offset, suffix in parsed if suffix == SNAPSHOT_SUFFIX]

    def _segment(self, base_offset: int) -> LogSegment:
        segment = LogSegment(self._folder, self._directory, base_offset, 0)
        segment.size = self._disk.file_size(segment.path)
        return segment

    def _read_topic_id(self) -> bytes | None:
        try:
            return read_topic_id(self._disk, join(self._directory, PARTITION_METADATA))
        except CorruptFileError as error:
            logger.warning("%s", error)
            return None

    def _read_leader_epochs(self) -> tuple[LeaderEpochCache, bool]:
        try:
            return LeaderEpochCache(
                read_leader_epochs(self._disk, join(self._directory, LEADER_EPOCH_CHECKPOINT))
            ), True
        except CorruptFileError as error:
            logger.warning("%s; it is rebuilt from the log", error)
            return LeaderEpochCache(), False

    def _check_transaction_indexes(self) -> None:
        """Doubt everything from the first segment on whose index is damaged: only the batches can make it anew."""
        for segment in self._log.segments:
            if segment.base_offset not in self._transaction_indexes:
                continue
            path = segment.path_of(TRANSACTION_INDEX_SUFFIX)
            try:
                decode_transaction_index(self._disk.read_file(path), segment.base_offset)
            except CorruptIndexError as error:
                logger.warning("%s is rebuilt: %s", path, error)
                self._recovery_point = min(self._recovery_point, segment.base_offset)
                self._is_clean = False
                return

    # --- the end of a clean log ---------------------------------------------------------------------------------------

    def _find_end(self, segment: LogSegment) -> bool:
        """Set the end of the active segment by its index and headers; False when they do not fit together."""
        try:
            segment.next_offset = find_clean_end(
                self._disk, segment.path, segment.path_of(INDEX_SUFFIX), segment.base_offset
            )
            return True
        except (CorruptIndexError, KafkaError, FileNotFoundError) as error:
            logger.warning("%s is not what a clean stop leaves: %s", segment.path, error)
            self._recovery_point = segment.base_offset
            self._is_clean = False
            return False

    # --- recovery -----------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Scan the doubtful segments and cut the log behind the last valid batch."""
        log = self._log
        segments = log.segments
        first = max((i for i, s in enumerate(segments) if s.base_offset <= self._recovery_point), default=0)
        doubtful = segments[first:]
        producers = log.producer_state
        producers.load_newest_snapshot(segments[0].base_offset, doubtful[0].base_offset)
        self._replay(producers, segments[:first], doubtful[0].base_offset)
        for slot, segment in enumerate(doubtful, first):
            if slot > first and segment.base_offset < segments[slot - 1].next_offset:
                # A truncation took it away, but its removal did not last.
                logger.warning("%s begins before offset %d", segment.path, segments[slot - 1].next_offset)
                self._drop(slot)
                return
            producers.map_end_offset = max(producers.map_end_offset, segment.base_offset)
            producers.take_snapshot()
            size = segment.size
            self._recover_segment(segment)
            following = segments[slot + 1] if slot + 1 < len(segments) else None
            has_gap = following is not None and segment.next_offset < following.base_offset
            if segment.size < size or (has_gap and not self._was_compacted):
                logger.warning(
                    "%s: cut from %d to %d bytes, at offset %d", segment.path, size, segment.size, segment.next_offset
                )
                self._drop(slot + 1)
                return
            if following is not None and has_gap:
                segment.next_offset = following.base_offset

    def _recover_segment(self, segment: LogSegment) -> None:
        """Scan one segment: cut it behind its last valid batch, build its indexes, follow producers and epochs."""
        log = self._log
        file = self._disk.open(segment.path)
        try:
            segment.clear_indexes()
            segment.clear_aborted()
            valid_size = 0
            next_offset = segment.base_offset
            for position, batch in self._valid_batches(file, segment):
                segment.index_batch(
                    batch.last_offset, batch.max_timestamp, position, batch.size, log.settings.index_interval_bytes
                )
                valid_size = position + batch.size
                next_offset = batch.next_offset
                if batch.partition_leader_epoch > log.leader_epochs.latest_epoch:
                    log.leader_epochs.assign(batch.partition_leader_epoch, batch.base_offset)
                aborted = self._note_producer(log.producer_state, batch)
                if aborted is not None:
                    segment.add_aborted(aborted)
            segment.next_offset = next_offset
            if valid_size < segment.size:
                file.truncate(valid_size)
                file.sync()  # the recovery point may already be at the cut
                segment.size = valid_size
        finally:
            file.close()
        segment.write_indexes()
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

    @staticmethod
    def _note_producer(producers: ProducerStateManager, batch: RecordBatch) -> AbortedTransaction | None:
        aborted = None
        if batch.next_offset > producers.map_end_offset:
            if batch.producer_id >= 0:
                aborted = producers.update(batch)
            producers.map_end_offset = batch.next_offset
        return aborted

    def _replay(self, producers: ProducerStateManager, segments: Iterable[LogSegment], end_offset: int) -> None:
        """Follow the producers through sound segments, up to ``end_offset``."""
        for segment in segments:
            if segment.next_offset <= producers.map_end_offset:
                continue
            file = self._disk.open(segment.path)
            try:
                for _, batch in scan_batches(file, 0, segment.size):
                    self._note_producer(producers, batch)
            except KafkaError as error:
                logger.warning("%s is damaged: %s", segment.path, error)
            finally:
                file.close()
        producers.map_end_offset = max(producers.map_end_offset, end_offset)

    def _drop(self, first: int) -> None:
        """Remove the segments from the list's place ``first`` on."""
        for segment in self._log.segments[first:]:
            logger.warning("%s is behind the end of the log and is removed", segment.path)
            for suffix in SEGMENT_SUFFIXES:
                self._disk.remove(segment.path_of(suffix))
            self._log.producer_state.remove_snapshot(segment.base_offset)
        del self._log.segments[first:]
        self._disk.sync_dir(self._directory)

    # --- what follows from the segments -------------------------------------------------------------------------------

    def _finish(self, epochs_are_known: bool) -> None:
        log = self._log
        producers = log.producer_state
        log.log_end_offset = log.segments[-1].next_offset
        if log.log_end_offset < log.log_start_offset:
            self._start_anew()
        if self._is_clean and not producers.snapshots:
            producers.map_end_offset = producers.last_snapshot_offset = log.log_end_offset  # there were no producers
        elif self._is_clean:
            producers.load_newest_snapshot(log.segments[0].base_offset, log.log_end_offset)
            self._replay(producers, log.segments, log.log_end_offset)
        else:
            for offset in [offset for offset in producers.snapshots if offset > log.log_end_offset]:
                producers.remove_snapshot(offset)
        log.size = sum(segment.size for segment in log.segments)
        log.recovery_point = log.log_end_offset if self._is_clean else min(self._recovery_point, log.log_end_offset)
        log.high_watermark = min(max(self._high_watermark, log.log_start_offset), log.log_end_offset)
        if not epochs_are_known:
            self._rebuild_leader_epochs()
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        log.leader_epochs.truncate_from_start(log.log_start_offset)

    def _start_anew(self) -> None:
        """The files end before the log starts: somebody took them away. Begin an empty segment at the start."""
        log = self._log
        logger.warning("%s ends at %d, before its start %d", self._directory, log.log_end_offset, log.log_start_offset)
        self._drop(0)
        segment = LogSegment(self._folder, self._directory, log.log_start_offset, self._folder.clock.now_ms())
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._disk.open(segment.path_of(suffix), create=True).close()
        log.segments = [segment]
        log.log_end_offset = log.log_start_offset
        log.leader_epochs.clear()
        log.producer_state.truncate_fully(log.log_start_offset)

    def _rebuild_leader_epochs(self) -> None:
        log = self._log
        for segment in log.segments:
            file = self._disk.open(segment.path)
            try:
                for _, batch in scan_batches(file, 0, segment.size):
                    if batch.partition_leader_epoch > log.leader_epochs.latest_epoch:
                        log.leader_epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            except KafkaError as error:
                logger.warning("%s is damaged: %s", segment.path, error)
            finally:
                file.close()


def find_clean_end(disk: Disk, log_path: str, index_path: str, base_offset: int) -> int:
    """The offset behind the last batch of an active segment that was closed, by its index and the headers that follow it.

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
