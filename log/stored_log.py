"""A log as it lies on disk: its state, and the changes that keep all of it together.

A log consists of its segments (``log_segments``), the recovery point (``flush``), leader epochs, producers with their
snapshots, and the offsets between which it holds records. What adds or takes away segments changes several of these; it is
done here, each change one plain function. OSErrors pass through; ``PartitionLog`` turns them into errors for clients.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import trio

from ..base.wording import counted
from ..wire.schema import ZERO_UUID
from .checkpoints import PARTITION_METADATA, write_topic_id
from .disk import join
from .files import FUTURE_FOLDER_SUFFIX, partition_folder_name
from .flush import LogFlusher
from .log_directory import LogFolder
from .log_segments import LogSegments
from .log_state import LogState
from .producer_state import ProducerStateManager
from .segment import LogSegment
from .segment_swap import decide_swap, finish_swap
from .settings import LogSettings

logger = logging.getLogger(__name__)


class LogListener(Protocol):
    """What is told of a log's changes that it has not made itself."""

    def flushed(self) -> None:
        """The recovery point has moved."""
        ...

    def bounds_changed(self) -> None:
        """The log starts at a later offset, or its end was cut off."""
        ...


class StoredLog:
    """The state of a ``PartitionLog``. Methods raise OSError where they do not say otherwise."""

    __slots__ = (
        "_flusher",
        "cleaned_offset",
        "directory",
        "folder",
        "high_watermark",
        "leader_epochs",
        "listener",
        "log_end_offset",
        "log_start_offset",
        "partition",
        "producer_state",
        "segments",
        "settings",
        "topic",
        "topic_id",
        "truncations",
    )

    def __init__(
        self,
        folder: LogFolder,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        settings: LogSettings,
        *,
        folder_name: str | None = None,
        state: LogState | None = None,
    ) -> None:
        """No file is touched. ``folder_name`` where it is not the partition's; ``state`` for a log that has files."""
        self.folder = folder
        self.topic = topic
        self.partition = partition
        self.settings = settings
        self.directory = join(folder.path, folder_name or partition_folder_name(topic, partition))
        state = state or LogState(ProducerStateManager(folder.disk, self.directory, 0))
        self.topic_id = topic_id or state.topic_id or ZERO_UUID
        self.segments = LogSegments(folder, self.directory, state.segments)
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.segments[-1].next_offset if state.segments else 0
        self.high_watermark = state.high_watermark
        self.cleaned_offset = state.cleaned_offset
        self.leader_epochs = state.leader_epochs
        self.producer_state = state.producer_state
        self.truncations = 0
        self.listener: LogListener | None = None
        self._flusher = LogFlusher(self.segments, self.leader_epochs, state.recovery_point, self._flushed)

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, [{self.log_start_offset}, {self.log_end_offset}))"

    @property
    def is_closed(self) -> bool:
        return self.segments.is_closed

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self.segments.size

    @property
    def recovery_point(self) -> int:
        return self._flusher.recovery_point

    @property
    def checkpointed_high_watermark(self) -> int:
        """The high watermark for the checkpoint, which must not cover records that a power loss may bring back."""
        truncation = self._flusher.unflushed_truncation
        return self.high_watermark if truncation is None else min(self.high_watermark, truncation)

    @property
    def flushing(self) -> trio.Event | None:
        """Set at the end of the flush that is running; None while none is."""
        return self._flusher.under_way

    @property
    def is_future(self) -> bool:
        """Whether this log is being filled, to replace that of another folder."""
        return self.directory.endswith(FUTURE_FOLDER_SUFFIX)

    def rename_folder(self, name: str) -> None:
        """Give the log's folder another name; what is open stays open."""
        directory = join(self.folder.path, name)
        self.folder.disk.rename(self.directory, directory)
        self.directory = self.producer_state.directory = directory
        self.segments.rename_folder(directory)

    # --- rolling ------------------------------------------------------------------------------------------------------

    def start_first_segment(self) -> LogSegment:
        """Make the partition's folder and its first segment."""
        disk = self.folder.disk
        self.folder.starting_log()
        disk.make_dir(self.directory)
        if self.topic_id != ZERO_UUID:
            write_topic_id(disk, join(self.directory, PARTITION_METADATA), self.topic_id)
        return self.segments.begin(self.log_end_offset, self.settings)

    def roll(self) -> LogSegment:
        """Close the active segment and begin a new one at the log's end."""
        old = self.segments[-1]
        # Once there is a segment that begins at the recovery point, the one before it is neither flushed nor scanned.
        old.seal(sync=old.next_offset <= self.recovery_point)
        segment = self.segments.begin(self.log_end_offset, self.settings)
        old.drop_indexes()
        self.producer_state.map_end_offset = self.log_end_offset
        self.producer_state.take_snapshot()
        logger.debug("%s-%d: rolled a segment at offset %d", self.topic, self.partition, self.log_end_offset)
        self.request_flush(inactive_only=True)
        return segment

    # --- the start of the log -----------------------------------------------------------------------------------------

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset, and with it what cannot be below."""
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self._bounds_changed()

    def raise_high_watermark(self, offset: int) -> None:
        """Let the high watermark be at least ``offset``, as far as the log reaches; for a copy, which is not replicated."""
        self.high_watermark = max(self.high_watermark, min(offset, self.log_end_offset))

    def delete_first(self, count: int) -> None:
        """Delete the first segments; the log starts after them then."""
        if count == len(self.segments):
            self.roll()  # a log keeps a segment, whose name says where it ends
        deleted = self.segments.take_first(count)
        start = self.segments[0].base_offset
        size = sum(segment.size for segment in deleted)
        segments = counted(count, "segment")
        logger.info("%s: deleting %s below offset %d, %d bytes", self.directory, segments, start, size)
        if start > self.log_start_offset:
            self.advance_log_start_offset(start)
        for segment in deleted:
            self._delete(segment)

    def _delete(self, segment: LogSegment, *, keeps_snapshot: bool = False) -> None:
        """Delete a segment that the list no longer has; slices of it can still be read."""
        segment.rename_to_deleted(self.settings.file_delete_delay_ms)
        if not keeps_snapshot:
            self.producer_state.remove_snapshot(segment.base_offset)
        segment.file.close()

    # --- the end of the log -------------------------------------------------------------------------------------------

    def truncate_stored(self, offset: int) -> None:
        """Remove the batches from ``offset`` on, where one begins. Raises KafkaError, too, for a damaged batch."""
        segments, producers = self.segments, self.producer_state
        logger.info("%s: truncating to offset %d", self.directory, offset)
        self._lower_checkpoints(min(self.log_start_offset, offset), offset)
        while segments[-1].base_offset > offset:
            self._delete(segments.take_last())
        segments[-1].truncate_to(offset)
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.leader_epochs.truncate_from_end(offset)
        had_producers = bool(producers.producers)
        producers.load_newest_snapshot(segments[0].base_offset, offset)
        if had_producers:
            producers.replay(segments.batches_from(producers.map_end_offset), offset)
        producers.map_end_offset = offset
        self._bounds_changed()

    def empty_stored(self, offset: int) -> None:
        """Remove everything; the next record gets ``offset``."""
        logger.info("%s: starting again at offset %d", self.directory, offset)
        self._lower_checkpoints(0, 0)
        for segment in self.segments.take_all():
            self._delete(segment)
        self.producer_state.truncate_fully(offset)
        self.leader_epochs.clear()
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self._flusher.start_at(offset)
        self._bounds_changed()
        self.start_first_segment()
        self.folder.checkpoint_soon()

    def _lower_checkpoints(self, log_start_offset: int, recovery_point: int) -> None:
        """Before the log changes below them: the checkpoints must not cover what is written there later."""
        self.truncations += 1
        before = self.log_start_offset, self.recovery_point, self.cleaned_offset
        self.log_start_offset = min(self.log_start_offset, log_start_offset)
        self._flusher.lower(recovery_point)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, recovery_point)
        if (self.log_start_offset, self.recovery_point, self.cleaned_offset) != before:
            self.folder.checkpoint_now()

    # --- compaction ---------------------------------------------------------------------------------------------------

    def note_cleaned(self, cleaned_offset: int | None) -> None:
        """Everything below ``cleaned_offset`` has been compacted; None when that is not known."""
        self.cleaned_offset = cleaned_offset

    def replace_segments(self, old: Sequence[LogSegment], cleaned: LogSegment) -> None:
        """Let ``cleaned``, which is on stable storage, replace ``old``, which lie in a row."""
        decide_swap(cleaned.file)
        self.segments.replace(old, cleaned)
        for segment in old:
            self._delete(segment, keeps_snapshot=segment is old[0])
        finish_swap(cleaned.file)

    # --- to disk ------------------------------------------------------------------------------------------------------

    async def flush(self, *, inactive_only: bool = False) -> None:
        """Return once every record there is, or those of inactive segments, is on stable storage.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        await self._flusher.flush(inactive_only=inactive_only)

    def flush_at_once(self) -> None:
        """``flush`` without waiting, which holds up the loop. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self._flusher.flush_at_once()

    def request_flush(self, *, inactive_only: bool = False) -> None:
        """Have ``flush`` called in the background."""
        if self.folder.wants_flush is not None:
            self.folder.wants_flush(self, inactive_only)

    def _flushed(self) -> None:
        if self.listener is not None:
            self.listener.flushed()

    def _bounds_changed(self) -> None:
        if self.listener is not None:
            self.listener.bounds_changed()

    def close(self) -> None:
        """Close every file; nothing is written."""
        self.segments.close()
