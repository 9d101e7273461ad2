"""The cleanable part of a log, and whether its compaction is due (Kafka's ``LogCleanerManager``, KIP-58, KIP-354).

A log is *clean* up to ``PartitionLog.cleaned_offset``. Behind it, what is *cleanable* ends with the segment that comes
before the first of these: the active segment, the segment that holds the last stable offset, and the first segment with
a record younger than ``min.compaction.lag.ms``; a segment whose records have no time is as young as the last write to its
file. It is time when the cleanable bytes are more than ``min.cleanable.dirty.ratio`` of the clean and the cleanable
ones, or when a segment that is not clean begins with a batch older than ``max.compaction.lag.ms``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from .partition_log import PartitionLog
from .segment import LogSegment
from .settings import LONG_MAX

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CleanableLog:
    """A log that is to be cleaned now."""

    partition_log: PartitionLog
    first_dirty_offset: int
    """The log is clean up to here."""
    first_uncleanable_offset: int
    """The beginning of the first segment that the cleaning must not touch yet."""
    dirty_ratio: float
    """The share of cleanable bytes in those that are clean or cleanable, from 0 to 1."""


def find_cleanable(partition_log: PartitionLog, now_ms: int) -> CleanableLog | None:
    """What there is to clean in a compacted log; None when it is not time, or there is nothing. Raises OSError."""
    segments = partition_log.segments
    if len(segments) < 2:
        return None
    start = _first_dirty_offset(partition_log)
    inactive = segments[:-1]
    dirty = inactive[max((slot for slot, s in enumerate(inactive) if s.base_offset <= start), default=0) :]
    if start >= segments[-1].base_offset:
        return None
    end = max(start, min(partition_log.last_stable_offset, _lag_limit(partition_log, dirty, now_ms)))
    uncleanable = next((segment for segment in dirty if segment.next_offset > end), segments[-1])
    end = uncleanable.base_offset
    clean_bytes = sum(segment.size for segment in inactive if segment.base_offset < start)
    cleanable_bytes = sum(segment.size for segment in dirty if segment.base_offset < end)
    total_bytes = clean_bytes + cleanable_bytes
    if end <= start or not total_bytes:
        return None
    ratio = cleanable_bytes / total_bytes
    is_overdue = cleanable_bytes > 0 and _is_overdue(partition_log, dirty, now_ms)
    if ratio <= partition_log.settings.min_cleanable_dirty_ratio and not is_overdue:
        return None
    return CleanableLog(partition_log, start, end, ratio)


def _first_dirty_offset(partition_log: PartitionLog) -> int:
    log_start_offset = partition_log.log_start_offset
    cleaned = partition_log.cleaned_offset
    if cleaned is None:
        return log_start_offset
    if cleaned < log_start_offset:
        return log_start_offset
    if cleaned > partition_log.log_end_offset:
        logger.warning(
            "%s: the cleaner checkpoint is %d, but the log ends at %d; it is compacted from its start",
            partition_log.directory,
            cleaned,
            partition_log.log_end_offset,
        )
        partition_log.update_cleaned_offset(None)
        return log_start_offset
    return cleaned


def _lag_limit(partition_log: PartitionLog, dirty: list[LogSegment], now_ms: int) -> int:
    lag_ms = partition_log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.newest_ms() > now_ms - lag_ms:
                return segment.base_offset
    return LONG_MAX


def _is_overdue(partition_log: PartitionLog, dirty: list[LogSegment], now_ms: int) -> bool:
    clean_until_ms = now_ms - partition_log.settings.max_compaction_lag_ms
    if clean_until_ms <= 0:
        return False
    return any(0 < segment.indexes.first_batch_timestamp() < clean_until_ms for segment in dirty if segment.size)
