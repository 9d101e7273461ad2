"""One partition on one disk: an ordered list of segments, and what is known of its producers and leaders.

Offsets: ``log_start_offset`` <= ``high_watermark`` <= ``log_end_offset`` (the offset of the next record). Segments
cover the log without gaps, the last one is active; a log that was never written has none, and no folder either.
``recovery_point``: everything below it is on stable storage. ``cleaned_offset``: everything below it has been compacted;
None when nothing ever was. Replication owns ``high_watermark``, and is told by ``on_flush`` of a new recovery point.

State changes only after the write returned in full: a failed append leaves the log as it was, and the folder offline.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import trio

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import NO_TIMESTAMP, RecordBatch, iter_batches
from .checkpoints import PARTITION_METADATA, write_topic_id
from .disk import Bytes, join
from .files import FUTURE_FOLDER_SUFFIX, partition_folder_name
from .flush import flush_up_to
from .leader_epochs import LeaderEpochCache
from .log_folder import LogFolder
from .producer_state import BatchMetadata, ProducerState, ProducerStateManager
from .retention import delete_old_segments
from .segment import LogSegment, SegmentSlice
from .settings import LONG_MAX, LogSettings
from .timestamps import find_max_timestamp, find_timestamp
from .transaction_index import AbortedTransaction
from .truncation import truncate, truncate_fully
from .validation import check_batch, prepare_batch

logger = logging.getLogger(__name__)

ZERO_UUID = bytes(16)
_base_offset = attrgetter("base_offset")


@dataclass(slots=True)
class AppendResult:
    """Where an append went. ``log_append_time_ms`` is -1 unless the topic uses LogAppendTime.

    ``flush_due``: ``flush.messages`` is reached, so the answer is to wait for ``PartitionLog.flush``.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False
    flush_due: bool = False


class PartitionLog:
    """The log of one partition; see the module."""

    __slots__ = (
        "cleaned_offset",
        "directory",
        "flushing",
        "folder",
        "high_watermark",
        "is_closed",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "on_flush",
        "partition",
        "producer_state",
        "recovery_point",
        "segments",
        "settings",
        "size",
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
    ) -> None:
        """A log that was never written; no file is touched. ``folder_name`` where it is not the partition's."""
        self.folder = folder
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id or ZERO_UUID
        self.settings = settings
        self.directory = join(folder.path, folder_name or partition_folder_name(topic, partition))
        self.segments: list[LogSegment] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.size = 0
        self.truncations = 0
        self.cleaned_offset: int | None = None
        self.flushing: trio.Event | None = None
        self.on_flush: Callable[[], None] | None = None
        self.is_closed = False
        self.leader_epochs = LeaderEpochCache()
        self.producer_state = ProducerStateManager(folder.disk, self.directory, 0)

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, [{self.log_start_offset}, {self.log_end_offset}))"

    @property
    def is_future(self) -> bool:
        """Whether this log is being filled, to replace that of another folder."""
        return self.directory.endswith(FUTURE_FOLDER_SUFFIX)

    def rename_folder(self, name: str) -> None:
        """Give the log's folder another name; what is open stays open. Raises OSError."""
        directory = join(self.folder.path, name)
        self.folder.disk.rename(self.directory, directory)
        self.directory = self.producer_state.directory = directory
        for segment in self.segments:
            segment.directory = directory

    @property
    def last_stable_offset(self) -> int:
        """The end of what a read_committed consumer may see: where the first unstable transaction begins."""
        producers = self.producer_state
        if producers.ongoing or producers.unreplicated:
            unstable = producers.first_unstable_offset(self.high_watermark)
            if unstable is not None:
                return max(min(unstable, self.high_watermark), self.log_start_offset)
        return self.high_watermark

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch that wrote to this log; -1 when none did."""
        return self.leader_epochs.latest_epoch

    def active_producers(self) -> list[ProducerState]:
        return list(self.producer_state.producers.values())

    def update_settings(self, settings: LogSettings) -> None:
        self.settings = settings

    def become_leader(self, leader_epoch: int) -> None:
        """Note that this broker writes the log under ``leader_epoch`` from here on."""
        self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    # --- appending ----------------------------------------------------------------------------------------------------

    def append_as_leader(
        self, records: Bytes, leader_epoch: int, now_ms: int, *, internal: bool = False
    ) -> AppendResult:
        """Validate a produced batch, give it offsets and the leader epoch, and write it.

        ``records`` is exactly one batch and is stamped in place if writable. ``internal`` is for the coordinators: any
        number of batches, control and transactional ones too, sound by construction. Raises KafkaError.
        """
        self.folder.check_online()
        view = memoryview(records)
        if view.readonly:
            view = memoryview(bytearray(view))
        if internal:
            return self._append_internal(view, leader_epoch, now_ms)
        batch = RecordBatch(view)
        if batch.size != len(view):
            raise KafkaError(
                ErrorCode.INVALID_RECORD, "Produce requests are only allowed to contain one record batch per partition"
            )
        settings = self.settings
        check_batch(batch, settings, self.topic)
        batch = prepare_batch(batch, settings, self.topic, now_ms)
        if batch.producer_id >= 0 and (known := self.producer_state.check(batch)) is not None:
            return self._duplicate(known)
        first_offset = self.log_end_offset
        self._write(batch, leader_epoch, now_ms)
        append_time = now_ms if settings.message_timestamp_type != "CreateTime" else NO_TIMESTAMP
        return AppendResult(
            first_offset,
            self.log_end_offset - 1,
            append_time,
            self.log_start_offset,
            False,
            self._is_flush_due(first_offset),
        )

    def _duplicate(self, known: BatchMetadata) -> AppendResult:
        append_time = known.timestamp if self.settings.message_timestamp_type != "CreateTime" else NO_TIMESTAMP
        return AppendResult(known.first_offset, known.last_offset, append_time, self.log_start_offset, True)

    def append_end_marker(
        self, marker: bytearray, leader_epoch: int, now_ms: int, transaction_version: int = 0
    ) -> AppendResult:
        """Write the control batch that ends a producer's transaction here, whether it has one or not.

        Raises KafkaError INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED for a marker that is out of date.
        """
        self.folder.check_online()
        return self._append_internal(memoryview(marker), leader_epoch, now_ms, transaction_version)

    def _append_internal(
        self, view: memoryview, leader_epoch: int, now_ms: int, transaction_version: int = 0
    ) -> AppendResult:
        first_offset = self.log_end_offset
        batches = list(iter_batches(view))
        for batch in batches:
            if batch.producer_id >= 0:
                self.producer_state.check_coordinators(batch, transaction_version)
            if batch.size > self.settings.max_message_bytes:
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {batch.size} bytes is too large")
        for batch in batches:
            self._write(batch, leader_epoch, now_ms)
        return AppendResult(
            first_offset,
            self.log_end_offset - 1,
            NO_TIMESTAMP,
            self.log_start_offset,
            False,
            self._is_flush_due(first_offset),
        )

    def _write(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> None:
        """Append one batch at the end of the log: stamp, roll, write, and then take note of it."""
        if batch.size > self.settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {batch.size} bytes, which exceeds the maximum configured segment size of "
                f"{self.settings.segment_bytes}.",
            )
        batch.stamp(self.log_end_offset, leader_epoch)
        self.write_stamped(batch, leader_epoch, now_ms)

    def write_stamped(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> None:
        """Append a batch that has its offsets, at or behind the log's end, and its leader epoch. Raises KafkaError."""
        settings = self.settings
        size = batch.size
        last_offset = batch.last_offset
        max_timestamp = batch.max_timestamp
        try:
            segment = self.segments[-1] if self.segments else self.start_first_segment()
            if segment.should_roll(settings, size, last_offset, max_timestamp, now_ms):
                segment = self.roll()
            segment.append(batch.view, last_offset, max_timestamp, settings.index_interval_bytes)
        except OSError as error:
            raise self._write_failed(error) from error
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, batch.base_offset)
        self.log_end_offset = end_offset = last_offset + 1
        self.size += size
        producer_state = self.producer_state
        if batch.producer_id >= 0 and (aborted := producer_state.update(batch)) is not None:
            self._note_aborted(segment, aborted)
        producer_state.map_end_offset = end_offset

    def _note_aborted(self, segment: LogSegment, aborted: AbortedTransaction) -> None:
        try:
            segment.add_aborted(aborted)
        except OSError as error:
            raise self.folder.fail(f"cannot write to {self.directory}", error) from error

    def _write_failed(self, error: OSError) -> KafkaError:
        """Cut what the failed write left, then take the folder offline."""
        if self.segments:
            try:
                self.segments[-1].cut_failed_write()
            except OSError as second:
                logger.error("%s: the rest of a failed write could not be cut: %s", self.segments[-1].path, second)
        return self.folder.fail(f"cannot write to {self.directory}", error)

    def _is_flush_due(self, first_offset: int) -> bool:
        settings = self.settings
        if settings.flush_ms != LONG_MAX and self.recovery_point >= first_offset:
            self.folder.call_later(settings.flush_ms, self.request_flush)
        if self.log_end_offset - self.recovery_point < settings.flush_messages:
            return False
        self.request_flush()
        return True

    @property
    def safe_end_offset(self) -> int:
        """The offset up to which no record waits for a flush that ``flush.messages`` asks for before it is committed."""
        end_offset = self.log_end_offset
        if end_offset - self.recovery_point < self.settings.flush_messages:
            return end_offset
        return self.recovery_point

    def request_flush(self, *, inactive_only: bool = False) -> None:
        """Have ``flush`` called in the background."""
        if self.folder.wants_flush is not None:
            self.folder.wants_flush(self, inactive_only)

    # --- rolling ------------------------------------------------------------------------------------------------------

    def start_first_segment(self) -> LogSegment:
        """Make the partition's folder and its first segment. Raises OSError."""
        disk = self.folder.disk
        self.folder.starting_log()
        disk.make_dir(self.directory)
        if self.topic_id != ZERO_UUID:
            write_topic_id(disk, join(self.directory, PARTITION_METADATA), self.topic_id)
        return self._new_segment(self.log_end_offset)

    def _new_segment(self, base_offset: int) -> LogSegment:
        segment = LogSegment(self.folder, self.directory, base_offset, self.folder.clock.now_ms())
        jitter = min(self.settings.segment_jitter_ms, self.settings.segment_ms)
        segment.roll_jitter_ms = self.folder.randomness.randrange(jitter) if jitter else 0
        segment.create()
        self.segments.append(segment)
        return segment

    def roll(self) -> LogSegment:
        """Close the active segment and begin a new one at the log's end. Raises OSError."""
        old = self.segments[-1]
        is_flushed = old.next_offset <= self.recovery_point
        # Once there is a segment that begins at the recovery point, the one before it is neither flushed nor scanned.
        old.write_indexes(sync=is_flushed)
        if is_flushed:
            old.file().sync()  # it may have been truncated after it was flushed
            old.sync_aborted()
        segment = self._new_segment(self.log_end_offset)
        old.drop_indexes()
        self.producer_state.map_end_offset = self.log_end_offset
        self.producer_state.take_snapshot()
        logger.debug("%s-%d: rolled a segment at offset %d", self.topic, self.partition, self.log_end_offset)
        self.request_flush(inactive_only=True)
        return segment

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> SegmentSlice | None:
        """Whole batches of one segment, the first one holding ``offset``, all below the offset ``up_to``.

        At most ``max_bytes``, but the first batch whole when ``at_least_one``; None when there is nothing to give. The
        caller releases the slice. KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        if offset >= up_to or not self.segments:
            return None
        self.folder.check_online()
        segments = self.segments
        slot = len(segments) - 1
        if offset < segments[slot].base_offset:
            slot = max(bisect_right(segments, offset, key=_base_offset) - 1, 0)
        try:
            while slot < len(segments):
                segment = segments[slot]
                if segment.base_offset >= up_to:
                    return None
                slot += 1
                end = segments[slot].base_offset if slot < len(segments) else self.log_end_offset
                found = segment.read(offset, max_bytes, None if up_to >= end else up_to, at_least_one)
                if found is not None or segment.position_of(offset) < segment.size:
                    return found
        except OSError as error:
            raise self.folder.fail(f"cannot read {self.directory}", error) from error
        return None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the newest epoch at or below ``leader_epoch`` (KIP-320); (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that wrote ``offset``; -1 when unknown."""
        return self.leader_epochs.epoch_for_offset(offset)

    async def offset_for_timestamp(self, timestamp_ms: int, up_to: int) -> tuple[int, int, int]:
        """(offset, timestamp, leader epoch) of the first record at or after a time, below the offset ``up_to``.

        (-1, -1, -1) when there is none. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        return await find_timestamp(self, timestamp_ms, up_to)

    async def max_timestamp(self, up_to: int) -> tuple[int, int, int]:
        """(offset, timestamp, leader epoch) of the record with the largest timestamp (KIP-734), as above."""
        return await find_max_timestamp(self, up_to)

    # --- the start of the log -----------------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Let the log start at ``offset`` (-1: the high watermark) if it starts before it; returns where it starts.

        The records are gone for clients at once, their segments with the next look at retention. Raises KafkaError
        OFFSET_OUT_OF_RANGE when ``offset`` is above the high watermark.
        """
        self.folder.check_online()
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic}-{self.partition} "
                f"since it is larger than the high watermark {self.high_watermark}",
            )
        if offset > self.log_start_offset:
            self.advance_log_start_offset(offset)
            self.folder.checkpoint_soon()
        return self.log_start_offset

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset, and with it what cannot be below."""
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)

    def delete_old_segments(self, now_ms: int) -> int:
        """Apply retention; returns how many segments went. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.folder.check_online()
        try:
            count = delete_old_segments(self, now_ms)
        except OSError as error:
            what = f"cannot delete old segments of {self.directory}"
            raise self.folder.fail(what, error, is_half_done=True) from error
        for segment in self.segments:
            segment.drop_indexes()
        return count

    # --- the end of the log -------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove every record at or above ``offset``. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        assert offset >= 0
        self.folder.check_online()
        if offset >= self.log_end_offset:
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        try:
            truncate(self, offset)
        except (OSError, KafkaError) as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets ``offset``. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.folder.check_online()
        try:
            truncate_fully(self, offset)
        except OSError as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    # --- to disk ------------------------------------------------------------------------------------------------------

    async def flush(self, *, inactive_only: bool = False) -> None:
        """Return once every record there is, or those of inactive segments, is on stable storage.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        wanted = self._flush_target(inactive_only)
        while min(wanted, self.log_end_offset) > self.recovery_point and not self.is_closed:
            if self.flushing is not None:
                await self.flushing.wait()
                continue
            self.folder.check_online()
            self.flushing = trio.Event()
            try:
                await flush_up_to(self, self._flush_target(inactive_only))
            finally:
                self.flushing.set()
                self.flushing = None

    def _flush_target(self, inactive_only: bool) -> int:
        return self.segments[-1].base_offset if inactive_only and self.segments else self.log_end_offset

    async def flush_for_stop(self) -> None:
        """Bring to stable storage all that a clean stop leaves. Nobody writes any more. Raises KafkaError."""
        while self.flushing is not None:
            await self.flushing.wait()
        if not self.segments or self.is_closed:
            return
        self.folder.check_online()
        active = self.segments[-1]
        wants_snapshot = self.producer_state.wants_snapshot
        is_changed = active.indexes_are_dirty or wants_snapshot or self.leader_epochs.is_dirty
        if not is_changed and self.recovery_point >= self.log_end_offset:
            return
        try:
            if active.indexes_are_dirty:
                active.write_indexes()
            if wants_snapshot:
                self.producer_state.take_snapshot()
        except OSError as error:
            raise self.folder.fail(f"cannot write to {self.directory}", error) from error
        await flush_up_to(self, self.log_end_offset, is_last=True)

    def close(self) -> None:
        """Close every file; nothing is written."""
        self.is_closed = True
        for segment in self.segments:
            segment.close()
