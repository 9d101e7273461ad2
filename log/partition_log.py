"""One partition on one disk: its segments, and what is known of its producers and leaders.

Offsets: ``log_start_offset`` <= ``high_watermark`` <= ``log_end_offset`` (the offset of the next record).
``recovery_point``: everything below it is on stable storage. ``cleaned_offset``: everything below it has been compacted;
None when nothing ever was. What the log consists of has an owner of its own: the list of segments (``log_segments``), the
recovery point (``flush``), leader epochs and producers; only the log's methods change it, so that all of it changes
together. The one exception is ``high_watermark``, which replication owns and sets.

State changes only after the write returned in full: a failed append leaves the log as it was, and the folder offline.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import NO_TIMESTAMP, RecordBatch, iter_batches
from .batch_preparation import LargeBatchError
from .checkpoints import PARTITION_METADATA, write_topic_id
from .disk import Bytes, join
from .leader_epochs import UNDEFINED_EPOCH
from .producer_snapshot import BatchMetadata, ProducerState
from .retention import count_deletable
from .segment import LogSegment, SegmentSlice
from .settings import LONG_MAX, LogSettings
from .stored_log import StoredLog
from .timestamps import NOT_FOUND, TimedOffset, find_max_timestamp, find_timestamp
from .transaction_index import AbortedTransaction
from .validation import check_batch, prepare_now

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class AppendResult:
    """Where an append went. ``log_append_time_ms`` is -1 unless the topic uses LogAppendTime.

    ``flush_due``: ``flush.messages`` is reached, so the answer is to wait for ``PartitionLog.flush``. ``producer_id`` is that of
    an idempotent producer, else -1.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False
    flush_due: bool = False
    producer_id: int = -1


class PartitionLog(StoredLog):
    """The log of one partition; see the module."""

    __slots__ = ()

    def take_topic_id(self, topic_id: bytes) -> None:
        """Learn the topic's id, which was not known when the log was made. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.topic_id = topic_id
        if self.segments.active is not None:
            path = join(self.directory, PARTITION_METADATA)
            try:
                write_topic_id(self.folder.disk, path, topic_id)
            except OSError as error:
                raise self.folder.fail(f"cannot write {path}", error) from error

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
            raise self.write_failed(error) from error
        epochs = self.leader_epochs.epochs
        if leader_epoch != (epochs[-1] if epochs else UNDEFINED_EPOCH):
            self.leader_epochs.assign(leader_epoch, batch.base_offset)
        self.log_end_offset = end_offset = last_offset + 1
        producer_state = self.producer_state
        if batch.producer_id >= 0 and (aborted := producer_state.update(batch)) is not None:
            self.note_aborted(segment, aborted)
        producer_state.map_end_offset = end_offset

    def write_together(self, batches: list[RecordBatch], data: memoryview) -> None:
        """``write_stamped`` for several batches, end to end in ``data``, that fit into the active segment: with one write."""
        segment = self.segments[-1]
        try:
            segment.append_all(data, batches, self.settings.index_interval_bytes)
        except OSError as error:
            raise self.write_failed(error) from error
        latest_epoch = self.leader_epochs.latest_epoch
        for batch in batches:
            if batch.partition_leader_epoch not in (latest_epoch, -1):
                latest_epoch = batch.partition_leader_epoch
                self.leader_epochs.assign(latest_epoch, batch.base_offset)
        self.log_end_offset = end_offset = batches[-1].next_offset
        producer_state = self.producer_state
        for batch in batches:
            if batch.producer_id >= 0 and (aborted := producer_state.update(batch)) is not None:
                self.note_aborted(segment, aborted)
        producer_state.map_end_offset = end_offset

    def note_aborted(self, segment: LogSegment, aborted: AbortedTransaction) -> None:
        """Write a transaction into the index of its marker's segment. Raises KafkaError(KAFKA_STORAGE_ERROR).

        Where only a descriptor is missing the entry is written later. The marker is in the log, so nothing has failed.
        """
        try:
            segment.aborted.append(aborted)
        except OSError as error:
            failure = self.folder.fail(f"cannot write the transaction index of {self.directory}", error)
            if self.folder.is_offline:
                raise failure from error

    def write_failed(self, error: OSError) -> KafkaError:
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
                self.delete_first(count)
        except OSError as error:
            what = f"cannot delete old segments of {self.directory}"
            raise self.folder.fail(what, error, is_half_done=True) from error
        self.segments.drop_indexes()
        return count

    # --- the end of the log -------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Remove every record at or above ``offset``.

        Raises KafkaError: KAFKA_STORAGE_ERROR, or CORRUPT_MESSAGE when a damaged batch hides where; then nothing has changed.
        """
        assert offset >= 0
        self.folder.check_online()
        if offset >= self.log_end_offset:
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
            self.truncate_stored(offset)
        except (OSError, KafkaError) as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets ``offset``. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
        self.folder.check_online()
        try:
            self.empty_stored(offset)
        except OSError as error:
            raise self.folder.fail(f"cannot truncate {self.directory}", error, is_half_done=True) from error

    # --- after another log ----------------------------------------------------------------------------------------------

    def skip_to(self, offset: int) -> None:
        """Go on in a new segment at ``offset``, behind a gap that compaction has left. Raises KafkaError."""
        if not self.size:
            self.truncate_fully_and_start_at(offset)
            return
        try:
            if self.cleaned_offset is None:
                self.cleaned_offset = self.log_start_offset  # or recovery would take the gap for a loss
                self.folder.checkpoint_now()
            self.segments[-1].next_offset = self.log_end_offset = offset
            self.roll()
        except OSError as error:
            raise self.folder.fail(f"cannot write to {self.directory}", error) from error

    def take_over(self, other: PartitionLog) -> None:
        """Learn what ``other``, which has the same batches, knows beside them. Raises KafkaError."""
        if other.log_start_offset > self.log_start_offset:
            self.advance_log_start_offset(other.log_start_offset)
        self.high_watermark = other.high_watermark
        self.leader_epochs.take_over(other.leader_epochs)
        self.producer_state.take_over(other.producer_state)
        if other.recovery_point > self.recovery_point:
            self._flusher.flush_at_once()

    # --- to disk ------------------------------------------------------------------------------------------------------

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
