"""One partition's log: the next actions of retention and of the cleaner, and the batches of a segment."""

from __future__ import annotations

from ...base.errors import KafkaError
from ...base.seams import Workers
from ...base.wording import counted
from ...handlers.services import Services
from ...log.cleanable import find_cleanable
from ...log.partition_log import PartitionLog
from ...log.segment import SegmentSlice
from ...replication.partition import Partition
from ...wire.batch_layout import BATCH_HEADER_SIZE
from ...wire.compression import NAMES, NONE, decompress
from ...wire.records import RecordBatch, iter_complete_batches
from ..inside_rows import BatchRow, CleaningRow, LogRow, RetentionRow

READ_BYTES = 1 << 20
"""Of a log at a time, where its batches are listed."""
MOST_DECOMPRESSED = 8 << 20
"""Of one such part of a log; of batches beyond it no ratio is told."""
MOST_BATCHES = 200


def log_row(services: Services, partition: Partition, now_ms: int) -> LogRow:
    """What a log is like, and what becomes of it next."""
    log = partition.log
    return LogRow(
        log.topic,
        log.partition,
        log.directory,
        log.size,
        len(log.segments),
        log.log_start_offset,
        log.high_watermark,
        log.log_end_offset,
        log.recovery_point,
        retention_row(log, now_ms, services.logs.manager_settings.retention_check_interval_ms),
        cleaning_row(services, log, now_ms) if log.settings.is_compacted else None,
    )


def retention_row(log: PartitionLog, now_ms: int, interval_ms: int) -> RetentionRow:
    """Which segment goes next and when, by the rules of ``log.retention``."""
    settings, segments = log.settings, log.segments
    limits = settings.retention_ms, settings.retention_bytes, interval_ms
    if not len(segments):
        return RetentionRow(*limits, None, None, None, "The log has no segment yet.")
    first = segments[0]
    is_active = first is segments.active
    names = first.base_offset, first.next_offset
    if first.next_offset <= log.log_start_offset and not is_active:
        return RetentionRow(*limits, *names, now_ms, "It is below the log's start.")
    if not settings.deletes_old_segments:
        return RetentionRow(*limits, *names, None, "The log is compacted only: nothing is deleted because it is old.")
    if is_active and not first.size:
        return RetentionRow(*limits, *names, None, "The log is empty.")
    if first.next_offset > log.high_watermark:
        return RetentionRow(*limits, *names, None, "Not before it is replicated in full.")
    missing = None
    if settings.retention_bytes >= 0:
        missing = first.size + settings.retention_bytes - log.size
        if missing <= 0:
            return RetentionRow(*limits, *names, now_ms, "The log is longer than retention.bytes without it.")
    at_ms: int | None = None
    if settings.retention_ms >= 0:
        at_ms = max(first.newest_ms() + settings.retention_ms, 0)
    why = [] if at_ms is None else ["Its newest record is then as old as retention.ms."]
    if missing is not None:
        why.append(f"Or as soon as {counted(missing, 'more byte')} {'are' if missing > 1 else 'is'} written.")
    return RetentionRow(*limits, *names, at_ms, " ".join(why) or "Neither time nor size are limited.")


def cleaning_row(services: Services, log: PartitionLog, now_ms: int) -> CleaningRow:
    """How much of a compacted log is new since it was cleaned, and whether it is the cleaner's turn. Raises KafkaError."""
    cleaner = services.logs.cleaner
    settings = log.settings
    clean = log.cleaned_offset or 0
    segments = [*log.segments]
    dirty = sum(segment.size for segment in segments[:-1] if segment.base_offset >= clean)
    total = sum(segment.size for segment in segments[:-1])
    ratio = dirty / total if total else 0.0
    if log in cleaner.in_progress:
        state = "It is being compacted."
    elif log in cleaner.paused:
        state = "It is not compacted while it moves to another log directory."
    elif cleaner.is_given_up(log):
        state = "It cannot be compacted, because of a damaged record; the broker's log says which."
    elif clean > log.log_end_offset:
        state = "The cleaner checkpoint is beyond its end; it will be compacted from its start."
    else:
        try:
            cleanable = find_cleanable(log, now_ms)
        except OSError as error:
            cleanable, state = None, f"It cannot be read: {error}."
        else:
            state = "It is not its turn yet."
        if cleanable is not None:
            ratio = cleanable.dirty_ratio
            state = f"It is next, from offset {cleanable.first_dirty_offset} to {cleanable.first_uncleanable_offset}."
    return CleaningRow(
        log.cleaned_offset,
        ratio,
        settings.min_cleanable_dirty_ratio,
        settings.min_compaction_lag_ms,
        settings.max_compaction_lag_ms,
        settings.delete_retention_ms,
        state,
    )


async def batch_rows(partition: Partition, offset: int, workers: Workers) -> list[BatchRow]:
    """The batches from the one that holds ``offset``, as far as one read goes. Raises KafkaError."""
    log = partition.log
    found = partition.read(max(offset, log.log_start_offset), READ_BYTES, log.high_watermark, at_least_one=True)
    if found is None:
        return []
    try:
        return await workers.run(_batches, found)
    finally:
        found.release()


def _batches(found: SegmentSlice) -> list[BatchRow]:
    rows = []
    left = MOST_DECOMPRESSED
    for batch in iter_complete_batches(found.read()):
        size = _size_of_records(batch, left)
        left -= size or 0
        rows.append(
            BatchRow(
                batch.base_offset,
                batch.last_offset,
                batch.record_count,
                batch.size,
                NAMES[batch.compression] if batch.compression < len(NAMES) else str(batch.compression),
                None if size is None else size + BATCH_HEADER_SIZE,
                batch.max_timestamp,
                batch.partition_leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.is_transactional,
                batch.is_control,
            )
        )
        if len(rows) == MOST_BATCHES:
            break
    return rows


def _size_of_records(batch: RecordBatch, most: int) -> int | None:
    """In bytes, when they are not compressed; None where that is more than ``most``, or cannot be found out."""
    if batch.compression == NONE:
        return batch.size - BATCH_HEADER_SIZE
    try:
        return len(decompress(batch.compression, batch.view[BATCH_HEADER_SIZE:], most)) if most > 0 else None
    except KafkaError:
        return None
