"""The log of one partition on one disk: its segments, and what is known of its producers and leaders.

Offsets: ``log_start_offset`` <= ``high_watermark`` <= ``log_end_offset``.

Each part of the state has an owner of its own: the list of segments (``log_segments``), the recovery point (``flush``), leader
epochs and producers with their snapshots. Most changes touch several of them, so only the log's methods make them, each in one
plain function. The one exception is ``high_watermark``, which replication owns and sets.

State changes only after the write returned in full: a failed append leaves the log as it was, and the folder offline.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..wire.records import NO_TIMESTAMP, RecordBatch, iter_batches
from ..wire.schema import ZERO_UUID
from .batch_preparation import LargeBatchError
from .checkpoints import PARTITION_METADATA, write_topic_id
from .disk import Bytes, join
from .files import FUTURE_DIR_SUFFIX, log_dir_name
from .flush import LogFlusher
from .leader_epochs import UNDEFINED_EPOCH
from .log_directory import LogDirectory
from .log_segments import LogSegments
from .log_state import LogState
from .producer_snapshot import BatchMetadata, ProducerStateEntry
from .producer_state import ProducerStateManager
from .retention import count_deletable
from .segment import LogSegment, SegmentSlice
from .segment_swap import decide_swap, finish_swap
from .settings import LONG_MAX, LogSettings
from .timestamps import NOT_FOUND, TimedOffset, find_max_timestamp, find_timestamp
from .transaction_index import AbortedTxn
from .validation import check_batch, prepare_now

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class AppendResult:
    """Where an append went."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 unless the topic uses LogAppendTime."""
    log_start_offset: int
    is_duplicate: bool = False
    flush_due: bool = False
    """``flush.messages`` is reached, so the response has to wait for ``PartitionLog.flush``."""
    producer_id: int = -1
    """That of an idempotent producer, else -1."""


class LogListener(Protocol):
    """What is told of a log's changes that it has not made itself."""

    def flushed(self) -> None:
        """The recovery point has moved."""
        ...

    def bounds_changed(self) -> None:
        """The log starts at a later offset, or its end was cut off."""
        ...


class PartitionLog:
    """The log of one partition; see the module. An OSError takes the folder offline, and clients get a KafkaError for it.

    Methods for the log manager and the cleaner raise OSError instead, where they say so.
    """

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
        folder: LogDirectory,
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
        self.directory = join(folder.path, folder_name or log_dir_name(topic, partition))
        state = state or LogState(ProducerStateManager(folder.disk, self.directory, 0))
        self.topic_id = topic_id or state.topic_id or ZERO_UUID
        self.segments = LogSegments(folder, self.directory, state.segments)
        self.log_start_offset = state.log_start_offset
        self.log_end_offset = state.segments[-1].next_offset if state.segments else 0
        """The offset of the next record."""
        self.high_watermark = state.high_watermark
        self.cleaned_offset = state.cleaned_offset
        """Everything below this offset has been compacted; None when nothing ever was."""
        self.leader_epochs = state.leader_epochs
        self.producer_state = state.producer_state
        self.truncations = 0
        """How often the end was cut off. Who reads in a worker thread meanwhile, such as the cleaner, has to begin again."""
        self.listener: LogListener | None = None
        self._flusher = LogFlusher(self.segments, self.leader_epochs, state.recovery_point, self._flushed)

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic}-{self.partition}, [{self.log_start_offset}, {self.log_end_offset}))"

    @property
    def is_closed(self) -> bool:
        return self.segments.is_closed

    @property
    def is_future(self) -> bool:
        """Whether this log is being filled, to replace that of another folder."""
        return self.directory.endswith(FUTURE_DIR_SUFFIX)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self.segments.size

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is on stable storage."""
        return self._flusher.recovery_point

    @property
    def checkpointed_high_watermark(self) -> int:
        """The high watermark for the checkpoint, which must not cover records that a power loss may bring back."""
        truncation = self._flusher.unflushed_truncation
        return self.high_watermark if truncation is None else min(self.high_watermark, truncation)

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

    def active_producers(self) -> list[ProducerStateEntry]:
        return list(self.producer_state.producers.values())

    def update_settings(self, settings: LogSettings) -> None:
        self.settings = settings

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Learn the topic's id, which was not known when the log was made. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.topic_id = topic_id
        if self.segments.active is not None:
            path = join(self.directory, PARTITION_METADATA)
            try:
                write_topic_id(self.folder.disk, path, topic_id)
            except OSError as error:
                raise self.folder.fail(f"cannot write {path}", error) from error

    def become_leader(self, leader_epoch: int) -> None:
        """Note that this broker writes the log under ``leader_epoch`` from here on."""
        self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    # --- appending ----------------------------------------------------------------------------------------------------

    def append_as_leader(
        self, records: Bytes, leader_epoch: int, now_ms: int, *, internal: bool = False
    ) -> AppendResult:
        """Validate a produced batch, give it offsets and the leader epoch, and write it.

        ``records`` is exactly one batch and is stamped in place if writable. ``internal`` is for the coordinators: any
        number of batches, control and transactional ones too, sound by construction. Raises KafkaError, and LargeBatchError
        for a batch that ``prepare`` must see first.
        """
        folder = self.folder
        if folder.failure is not None:
            folder.check_online()
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
        prepared = prepare_now(batch, settings, self.topic, now_ms)
        if prepared is None:
            raise LargeBatchError(batch)
        return self.append_prepared(prepared, leader_epoch, now_ms)

    async def prepare(self, large: LargeBatchError, now_ms: int) -> RecordBatch:
        """Validate the rest of a large batch, in a worker; returns it for ``append_prepared``. Raises KafkaError."""
        return await self.folder.batch_preparation.run(large.batch, self.settings, self.topic, now_ms)

    def append_prepared(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> AppendResult:
        """Write a batch that has been validated. Raises KafkaError."""
        settings = self.settings
        if self.folder.failure is not None:
            self.folder.check_online()
        # Checked only now: while a worker prepared the batch, the producer may have sent it again, and others before it.
        if batch.producer_id >= 0 and (known := self.producer_state.check(batch)) is not None:
            return self._duplicate(known, batch.producer_id)
        first_offset = self.log_end_offset
        self._write(batch, leader_epoch, now_ms)
        append_time = now_ms if settings.message_timestamp_type != "CreateTime" else NO_TIMESTAMP
        return AppendResult(
            first_offset,
            self.log_end_offset - 1,
            append_time,
            self.log_start_offset,
            False,
            self.is_flush_due(first_offset),
            batch.producer_id,
        )

    def _duplicate(self, known: BatchMetadata, producer_id: int) -> AppendResult:
        append_time = known.timestamp if self.settings.message_timestamp_type != "CreateTime" else NO_TIMESTAMP
        start = self.log_start_offset
        return AppendResult(known.first_offset, known.last_offset, append_time, start, True, False, producer_id)

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
        # Each is checked before the first is written, so that a refusal leaves none of them.
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
            self.is_flush_due(first_offset),
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
        """Append a batch that has its offsets, at or after the log's end, and its leader epoch. Raises KafkaError."""
        settings = self.settings
        size = batch.size
        last_offset = batch.last_offset
        max_timestamp = batch.max_timestamp
        try:
            segment = self.segments.active or self.start_first_segment()
            if segment.should_roll(settings, size, last_offset, max_timestamp, now_ms):
                segment = self.roll()
            segment.append(batch.view, last_offset, max_timestamp, settings.index_interval_bytes)
        except OSError as error:
            raise self._write_failed(error) from error
        epochs = self.leader_epochs.epochs
        if leader_epoch != (epochs[-1] if epochs else UNDEFINED_EPOCH):
            self.leader_epochs.assign(leader_epoch, batch.base_offset)
        self.log_end_offset = end_offset = last_offset + 1
        producer_state = self.producer_state
        if batch.producer_id >= 0 and (aborted := producer_state.update(batch)) is not None:
            self._note_aborted(segment, aborted)
        producer_state.map_end_offset = end_offset

    def write_together(self, batches: list[RecordBatch], data: memoryview) -> None:
        """``write_stamped`` for several batches, end to end in ``data``, that fit into the active segment: with one write."""
        segment = self.segments[-1]
        try:
            segment.append_all(data, batches, self.settings.index_interval_bytes)
        except OSError as error:
            raise self._write_failed(error) from error
        latest_epoch = self.leader_epochs.latest_epoch
        for batch in batches:
            if batch.partition_leader_epoch not in (latest_epoch, -1):
                latest_epoch = batch.partition_leader_epoch
                self.leader_epochs.assign(latest_epoch, batch.base_offset)
        self.log_end_offset = end_offset = batches[-1].next_offset
        producer_state = self.producer_state
        for batch in batches:
            if batch.producer_id >= 0 and (aborted := producer_state.update(batch)) is not None:
                self._note_aborted(segment, aborted)
        producer_state.map_end_offset = end_offset

    def _note_aborted(self, segment: LogSegment, aborted: AbortedTxn) -> None:
        """Write a transaction into the index of its marker's segment. Raises KafkaError(KAFKA_STORAGE_ERROR).

        Where only a descriptor is missing the entry is written later. The marker is in the log, so nothing has failed.
        """
        try:
            segment.aborted.append(aborted)
        except OSError as error:
            failure = self.folder.fail(f"cannot write the transaction index of {self.directory}", error)
            if self.folder.is_offline:
                raise failure from error

    def _write_failed(self, error: OSError) -> KafkaError:
        """Cut what the failed write left, then take the folder offline."""
        active = self.segments.active
        if active is not None:
            try:
                active.cut_failed_write()
            except OSError as second:
                logger.error("%s: the rest of a failed write could not be cut: %s", active.path, second)
        return self.folder.fail(f"cannot write to {self.directory}", error)

    def is_flush_due(self, first_offset: int) -> bool:
        """Whether records from ``first_offset`` on wait for a flush by ``flush.messages``, which is asked for then."""
        settings = self.settings
        recovery_point = self._flusher.recovery_point
        # The first record after a flush starts the timer; the flush then takes the later ones along.
        if settings.flush_ms != LONG_MAX and recovery_point >= first_offset:
            self.folder.call_later(settings.flush_ms, self.request_flush)
        if self.log_end_offset - recovery_point < settings.flush_messages:
            return False
        self.request_flush()
        return True

    @property
    def safe_end_offset(self) -> int:
        """The offset up to which no record waits for a flush that ``flush.messages`` asks for before it is committed."""
        end_offset, recovery_point = self.log_end_offset, self._flusher.recovery_point
        return end_offset if end_offset - recovery_point < self.settings.flush_messages else recovery_point

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, up_to: int, at_least_one: bool) -> SegmentSlice | None:
        """Whole batches of one segment, the first one holding ``offset``, all below the offset ``up_to``.

        At most ``max_bytes``, but the first batch whole when ``at_least_one``; None when there is nothing to give. The
        caller releases the slice. KafkaError: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        if offset >= up_to:
            return None
        folder = self.folder
        if folder.failure is not None:
            folder.check_online()
        try:
            return self.segments.read(offset, max_bytes, up_to, at_least_one)
        except OSError as error:
            raise folder.fail(f"cannot read {self.directory}", error) from error

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the newest epoch at or below ``leader_epoch`` (KIP-320); (-1, -1) when unknown."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that wrote ``offset``; -1 when unknown."""
        return self.leader_epochs.epoch_for_offset(offset)

    async def offset_for_timestamp(self, timestamp_ms: int, up_to: int) -> TimedOffset:
        """(offset, timestamp, leader epoch) of the first record at or after a time, below the offset ``up_to``.

        (-1, -1, -1) when there is none. Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        self.folder.check_online()
        while True:
            found = await find_timestamp(self.segments, timestamp_ms, self.log_start_offset, up_to)
            if found == NOT_FOUND or found[0] >= self.log_start_offset:  # which may have moved meanwhile
                return found

    async def max_timestamp(self, up_to: int) -> TimedOffset:
        """(offset, timestamp, leader epoch) of the record with the largest timestamp (KIP-734), as above."""
        self.folder.check_online()
        return await find_max_timestamp(self.segments, up_to)

    # --- the start of the log -----------------------------------------------------------------------------------------

    def delete_records_before(self, offset: int) -> int:
        """Let the log start at ``offset`` (-1: the high watermark) if it starts before it; returns where it starts.

        Clients cannot read the records any more at once; their segments go with the next retention check. Raises KafkaError
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

    def delete_old_segments(self, now_ms: int) -> int:
        """Apply retention; returns how many segments went. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.folder.check_online()
        try:
            count = count_deletable(self.segments, self.settings, self.log_start_offset, self.high_watermark, now_ms)
            if count:
                self._delete_first(count)
        except OSError as error:
            what = f"cannot delete old segments of {self.directory}"
            raise self.folder.fail(what, error, is_half_done=True) from error
        self.segments.drop_indexes()
        return count

    def _delete_first(self, count: int) -> None:
        """Delete the first segments; the log starts after them then. Raises OSError."""
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

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset, and with it what cannot be below."""
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        self._bounds_changed()

    def raise_high_watermark(self, offset: int) -> None:
        """Let the high watermark be at least ``offset``, as far as the log reaches; for a copy, which is not replicated."""
        self.high_watermark = max(self.high_watermark, min(offset, self.log_end_offset))

    # --- the end of the log -------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove every record at or above ``offset``.

        Raises KafkaError: KAFKA_STORAGE_ERROR, or CORRUPT_MESSAGE when a damaged batch hides where; then nothing has changed.
        """
        assert offset >= 0
        self.folder.check_online()
        if offset >= self.log_end_offset:
            # As leader this broker may have noted an epoch at the end and written nothing in it. Another leader's records
            # contradict that entry (Kafka's ``UnifiedLog.truncateTo``).
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        try:
            offset = self.segments.batch_base_offset(offset)
        except OSError as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error) from error
        try:
            self._truncate_to_batch(offset)
        except (OSError, KafkaError) as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets ``offset``. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.folder.check_online()
        try:
            self._empty(offset)
        except OSError as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    def _truncate_to_batch(self, offset: int) -> None:
        """Remove the batches from ``offset`` on, where one begins. Raises OSError, and KafkaError for a damaged batch."""
        segments, producers = self.segments, self.producer_state
        logger.info("%s: truncating to offset %d", self.directory, offset)
        self._lower_checkpoints(min(self.log_start_offset, offset), offset)
        while segments[-1].base_offset > offset:  # the last one first, so that a crash in between leaves no gap
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

    def _empty(self, offset: int) -> None:
        """Remove everything; the next record gets ``offset``. Raises OSError."""
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
        """Before the log changes below them: the checkpoints must not cover what is written there later.

        Raises OSError.
        """
        self.truncations += 1
        before = self.log_start_offset, self.recovery_point, self.cleaned_offset
        self.log_start_offset = min(self.log_start_offset, log_start_offset)
        self._flusher.lower(recovery_point)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, recovery_point)
        if (self.log_start_offset, self.recovery_point, self.cleaned_offset) != before:
            self.folder.checkpoint_now()

    # --- compaction ---------------------------------------------------------------------------------------------------

    def update_cleaned_offset(self, cleaned_offset: int | None) -> None:
        """Everything below ``cleaned_offset`` has been compacted; None when that is not known."""
        self.cleaned_offset = cleaned_offset

    def replace_segments(self, old: Sequence[LogSegment], cleaned: LogSegment) -> None:
        """Let ``cleaned``, which is on stable storage, replace ``old``, which lie in a row. Raises OSError."""
        decide_swap(cleaned.file)
        # From here on a start puts the new segment in place; before, the old ones are whole, on disk and in the list.
        self.segments.replace(old, cleaned)
        for segment in old:
            # The first snapshot stays: it is of the offset where the new segment begins as well.
            self._delete(segment, keeps_snapshot=segment is old[0])
        finish_swap(cleaned.file)

    # --- after another log --------------------------------------------------------------------------------------------

    def skip_to(self, offset: int) -> None:
        """Go on in a new segment at ``offset``, behind a gap that compaction has left. Raises KafkaError."""
        if not self.size:
            self.truncate_fully_and_start_at(offset)  # a log without batches needs no second segment
            return
        try:
            if self.cleaned_offset is None:
                self.cleaned_offset = self.log_start_offset  # or recovery would take the gap for a loss
                self.folder.checkpoint_now()
            self.segments[-1].next_offset = self.log_end_offset = offset
            self.roll()
        except OSError as error:
            raise self.folder.fail(f"cannot write to {self.directory}", error) from error

    def copy_state_from(self, other: PartitionLog) -> None:
        """Learn what ``other``, which has the same batches, knows beside them. Raises KafkaError."""
        if other.log_start_offset > self.log_start_offset:
            self.advance_log_start_offset(other.log_start_offset)
        self.high_watermark = other.high_watermark
        self.leader_epochs.copy_state_from(other.leader_epochs)
        self.producer_state.copy_state_from(other.producer_state)
        # By that flush clients may have been told that records are safe (``flush.messages``), so they have to be here as well.
        if other.recovery_point > self.recovery_point:
            self._flusher.flush_at_once()

    # --- segments and their folder ------------------------------------------------------------------------------------

    def start_first_segment(self) -> LogSegment:
        """Make the partition's folder and its first segment. Raises OSError."""
        disk = self.folder.disk
        self.folder.starting_log()
        disk.make_dir(self.directory)
        if self.topic_id != ZERO_UUID:
            write_topic_id(disk, join(self.directory, PARTITION_METADATA), self.topic_id)
        return self.segments.begin(self.log_end_offset, self.settings)

    def roll(self) -> LogSegment:
        """Close the active segment and begin a new one at the log's end. Raises OSError."""
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

    def _delete(self, segment: LogSegment, *, keeps_snapshot: bool = False) -> None:
        """Delete a segment that the list no longer has; slices of it can still be read. Raises OSError."""
        segment.rename_to_deleted(self.settings.file_delete_delay_ms)
        if not keeps_snapshot:
            self.producer_state.remove_snapshot(segment.base_offset)
        segment.file.close()

    def _bounds_changed(self) -> None:
        if self.listener is not None:
            self.listener.bounds_changed()

    def rename_dir(self, name: str) -> None:
        """Give the log's folder another name; what is open stays open. Raises OSError."""
        directory = join(self.folder.path, name)
        self.folder.disk.rename(self.directory, directory)
        self.directory = self.producer_state.directory = directory
        self.segments.rename_dir(directory)

    def close(self) -> None:
        """Close every file; nothing is written."""
        self.segments.close()

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
        if self.folder.enqueue_flush is not None:
            self.folder.enqueue_flush(self, inactive_only)

    def _flushed(self) -> None:
        if self.listener is not None:
            self.listener.flushed()

    async def flush_for_stop(self) -> None:
        """Bring to stable storage all that a clean stop leaves. Nothing is written any more. Raises KafkaError."""
        while self.flushing is not None:
            await self.flushing.wait()
        active = self.segments.active
        if active is None or self.is_closed:
            return
        self.folder.check_online()
        wants_snapshot = self.producer_state.wants_snapshot
        is_changed = active.indexes.is_dirty or wants_snapshot or self.leader_epochs.is_dirty
        if not is_changed and self.recovery_point >= self.log_end_offset:
            return
        try:
            if active.indexes.is_dirty:
                active.indexes.write()
            if wants_snapshot:
                self.producer_state.take_snapshot()
        except OSError as error:
            raise self.folder.fail(f"cannot write to {self.directory}", error) from error
        await self._flusher.flush_last()

    @property
    def flushing(self) -> trio.Event | None:
        """Set at the end of the flush that is running; None while none is."""
        return self._flusher.under_way
