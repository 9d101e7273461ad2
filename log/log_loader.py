"""Loading of an existing log from disk, after a clean shutdown or a crash.

After a clean stop the files are what they were; only the end of the active segment is looked up. After a crash the log is
recovered (``recovery``). A missing or damaged index of a segment that is believed is rebuilt when it is used.

Runs in a worker thread, on files that are not used otherwise yet.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection

from ..base.errors import KafkaError
from .checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CorruptFileError,
    read_leader_epochs,
    read_topic_id,
)
from .disk import join
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
from .log_directory import LogDirectory
from .log_state import LogState
from .offset_index import CorruptIndexError
from .producer_state import ProducerStateManager
from .recovery import LogRecovery, batches_of, find_clean_end, remove_segment, replay_files
from .segment import LogSegment
from .segment_swap import finish_swaps
from .transaction_index import decode_transaction_index

logger = logging.getLogger(__name__)

_TEMPORARY_SUFFIXES = (DELETED_SUFFIX, ".tmp")
_COMPACTION_SUFFIXES = (CLEANED_SUFFIX, SWAP_SUFFIX)


class LogLoader:
    """Loads one partition's folder."""

    def __init__(
        self,
        folder: LogDirectory,
        directory: str,
        index_interval_bytes: int,
        *,
        is_clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        cleaned_offset: int | None = None,
        may_be_compacted: bool = True,
    ) -> None:
        """The offsets are those of the checkpoints. Of a log that is never compacted, what is behind a gap is no part."""
        self._folder = folder
        self._disk = folder.disk
        self._directory = directory
        self._index_interval_bytes = index_interval_bytes
        self._is_clean = self._was_stopped_cleanly = is_clean
        self._recovery_point = self._checkpointed_recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._high_watermark = high_watermark
        self._cleaned_offset = cleaned_offset
        self._was_compacted = cleaned_offset is not None
        self._may_be_compacted = may_be_compacted
        self._transaction_indexes: set[int] = set()

    def load(self) -> LogState:
        """What there is. Raises OSError, UnsupportedLogError."""
        base_offsets, snapshots = self._list_files()
        topic_id = self._read_topic_id()
        epochs, epochs_are_known = self._read_leader_epochs()
        producers = ProducerStateManager(self._disk, self._directory, 0, snapshots)
        state = LogState(producers, topic_id, leader_epochs=epochs, cleaned_offset=self._cleaned_offset)
        if not base_offsets:
            self._warn_of_lost_end(0)
            producers.truncate_fully(0)
            if self._log_start_offset:
                state.log_start_offset = self._log_start_offset
                self._start_empty(state, 0)
            return state
        segments = [self._segment(base_offset) for base_offset in base_offsets]
        segments[-1].created_ms = self._disk.modified_ms(segments[-1].path)  # only an active one is ever asked
        for segment, following in itertools.pairwise(segments):
            segment.next_offset = following.base_offset
        state.segments = segments
        state.log_start_offset = max(self._log_start_offset, base_offsets[0])
        producers.remove_stray_snapshots(base_offsets)
        self._check_transaction_indexes(segments)
        if not self._is_clean or not self._find_end(segments[-1]):
            recovery = LogRecovery(self._disk, self._directory, segments, producers, epochs, self._index_interval_bytes)
            recovery.run(self._recovery_point, was_compacted=self._was_compacted)
        self._finish(state, epochs_are_known)
        return state

    # --- what there is ------------------------------------------------------------------------------------------------

    def _list_files(self) -> tuple[list[int], list[int]]:
        """Base offsets of segments and offsets of snapshots; what is left of deletions is removed."""
        disk = self._disk
        names = set(disk.names(self._directory))
        self._was_compacted |= self._may_be_compacted and _has_compacted_files(names)
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
        segment.file.size = self._disk.file_size(segment.path)
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

    def _check_transaction_indexes(self, segments: list[LogSegment]) -> None:
        """Have the log recovered from the first segment on whose transaction index is damaged: it is rebuilt from batches."""
        for segment in segments:
            if segment.base_offset not in self._transaction_indexes:
                continue
            path = segment.aborted.path
            try:
                decode_transaction_index(self._disk.read_file(path), segment.base_offset)
            except CorruptIndexError as error:
                logger.warning("%s is rebuilt: %s", path, error)
                self._recovery_point = min(self._recovery_point, segment.base_offset)
                self._is_clean = False
                return

    def _find_end(self, segment: LogSegment) -> bool:
        """Set the end of the active segment by its index and headers; False when they do not fit together."""
        try:
            segment.next_offset = find_clean_end(
                self._disk, segment.path, segment.file.path_of(INDEX_SUFFIX), segment.base_offset
            )
            return True
        except (CorruptIndexError, KafkaError, FileNotFoundError) as error:
            logger.warning("%s does not have the form of a clean stop: %s", segment.path, error)
            self._recovery_point = segment.base_offset
            self._is_clean = False
            return False

    # --- what follows from the segments -------------------------------------------------------------------------------

    def _finish(self, state: LogState, epochs_are_known: bool) -> None:
        producers, epochs = state.producer_state, state.leader_epochs
        end_offset = state.segments[-1].next_offset
        self._warn_of_lost_end(end_offset)
        if end_offset < state.log_start_offset:
            self._start_empty(state, end_offset)
            end_offset = state.log_start_offset
        if self._is_clean and not producers.snapshots:
            producers.map_end_offset = producers.last_snapshot_offset = end_offset  # there were no producers
        elif self._is_clean:
            producers.load_newest_snapshot(state.segments[0].base_offset, end_offset)
            replay_files(producers, state.segments, end_offset)
        else:  # recovery has followed the producers already
            for offset in [offset for offset in producers.snapshots if offset > end_offset]:
                producers.remove_snapshot(offset)
        state.recovery_point = end_offset if self._is_clean else min(self._recovery_point, end_offset)
        state.high_watermark = min(max(self._high_watermark, state.log_start_offset), end_offset)
        if not epochs_are_known:
            for segment in state.segments:
                for batch in batches_of(segment):
                    if batch.partition_leader_epoch > epochs.latest_epoch:
                        epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(state.log_start_offset)

    def _warn_of_lost_end(self, end_offset: int) -> None:
        """Say so where a clean stop left a higher recovery point or high watermark: files were changed since, or lost."""
        recovery_point, high_watermark = self._checkpointed_recovery_point, self._high_watermark
        if self._was_stopped_cleanly and end_offset < max(recovery_point, high_watermark):
            logger.warning(
                "%s ends at offset %d, although it was stopped cleanly with a recovery point of %d and a high watermark of %d: "
                "records were lost since",
                self._directory,
                end_offset,
                recovery_point,
                high_watermark,
            )

    def _start_empty(self, state: LogState, end_offset: int) -> None:
        """The files end before the log starts: some were taken away. Begin an empty segment at the start."""
        start_offset = state.log_start_offset
        logger.warning("%s ends at %d, before its start %d", self._directory, end_offset, start_offset)
        for old in state.segments:
            remove_segment(self._disk, old, state.producer_state)
        self._disk.sync_dir(self._directory)
        segment = LogSegment(self._folder, self._directory, start_offset, self._folder.clock.now_ms())
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._disk.open(segment.file.path_of(suffix), create=True).close()
        state.segments = [segment]
        state.leader_epochs.clear()
        state.producer_state.truncate_fully(start_offset)


def _has_compacted_files(names: Collection[str]) -> bool:
    """Whether a compaction was going on, or has ended a moment ago: then offsets may be missing between segments.

    A compacted segment begins where the first of those that it replaces began, so the deleted ones are not below the log's first
    segment. Those that retention deletes are; they say nothing of gaps.
    """
    offsets = [found[0] for name in names if (found := parse_file_name(name)) is not None and found[1] == LOG_SUFFIX]
    first = min(offsets, default=0)
    deleted = (parse_file_name(name.removesuffix(DELETED_SUFFIX)) for name in names if name.endswith(DELETED_SUFFIX))
    return any(name.endswith(_COMPACTION_SUFFIXES) for name in names) or any(
        found is not None and found[0] >= first for found in deleted
    )
