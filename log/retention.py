"""Deleting old segments, by Apache Kafka's rules.

From the start of the log, as long as one of these holds: the segment is not active and lies below the log start
offset; without it the log is still at least ``retention.bytes`` long; its largest timestamp (or, without timestamps, the
time of its file) is older than ``retention.ms``. The last two are for logs whose ``cleanup.policy`` has ``delete``. A
segment that reaches above the high watermark never goes, an empty active one neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..base.wording import counted
from .files import LOG_SUFFIX
from .truncation import delete_segment

if TYPE_CHECKING:
    from .partition_log import PartitionLog
    from .segment import LogSegment

logger = logging.getLogger(__name__)


def delete_old_segments(partition_log: PartitionLog, now_ms: int) -> int:
    """Delete what may go; returns how many segments that were. Raises OSError."""
    count = _count_deletable(partition_log, now_ms)
    if not count:
        return 0
    if count == len(partition_log.segments):
        partition_log.roll()  # a log keeps a segment, whose name says where it ends
    deleted = partition_log.segments[:count]
    del partition_log.segments[:count]
    start = partition_log.segments[0].base_offset
    size = sum(segment.size for segment in deleted)
    logger.info(
        "%s: deleting %s below offset %d, %d bytes",
        partition_log.directory,
        counted(len(deleted), "segment"),
        start,
        size,
    )
    if start > partition_log.log_start_offset:
        partition_log.advance_log_start_offset(start)
    for segment in deleted:
        delete_segment(partition_log, segment)
    return count


def _count_deletable(partition_log: PartitionLog, now_ms: int) -> int:
    """How many segments, from the start of the log, are to be deleted. Raises OSError."""
    settings = partition_log.settings
    if not partition_log.segments:
        return 0
    active = partition_log.segments[-1]
    start = partition_log.log_start_offset
    count = _count(partition_log, 0, lambda segment, end: end <= start and segment is not active)
    if not settings.deletes_old_segments:
        return count
    if settings.retention_bytes >= 0:
        count = _count_by_size(partition_log, count)
    if settings.retention_ms >= 0:
        count = _count(partition_log, count, lambda segment, end: now_ms - newest_ms(segment) > settings.retention_ms)
    return count


def _count(partition_log: PartitionLog, count: int, is_deletable: Callable[[LogSegment, int], bool]) -> int:
    """``count`` and the segments behind it while ``is_deletable(segment, its end offset)`` and the general rules agree."""
    segments = partition_log.segments
    for slot in range(count, len(segments)):
        segment = segments[slot]
        is_active = slot + 1 == len(segments)
        end = partition_log.log_end_offset if is_active else segments[slot + 1].base_offset
        if (is_active and not segment.size) or end > partition_log.high_watermark or not is_deletable(segment, end):
            return slot
    return len(segments)


def _count_by_size(partition_log: PartitionLog, count: int) -> int:
    kept = sum(segment.size for segment in partition_log.segments[count:])
    excess = kept - partition_log.settings.retention_bytes

    def is_deletable(segment: LogSegment, end: int) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return _count(partition_log, count, is_deletable)


def newest_ms(segment: LogSegment) -> int:
    """The largest timestamp of the records or, when none has one, the time of the last write to the file; ms.

    Kafka's ``LogSegment.largestTimestamp``. Raises OSError.
    """
    timestamp = segment.largest_timestamp()
    return timestamp if timestamp >= 0 else segment.folder.disk.modified_ms(segment.path_of(LOG_SUFFIX))
