"""The segments due for deletion by age, size or log start offset, by Apache Kafka's rules.

From the start of the log, as long as one of these holds: the segment is not active and lies below the log start
offset; without it the log is still at least ``retention.bytes`` long; its largest timestamp (or, without timestamps, the
time of its file) is older than ``retention.ms``. The last two are for logs whose ``cleanup.policy`` has ``delete``. A
segment that reaches above the high watermark never goes, an empty active one neither.
"""

from __future__ import annotations

from collections.abc import Callable

from .log_segments import LogSegments
from .segment import LogSegment
from .settings import LogSettings


def count_deletable(
    segments: LogSegments, settings: LogSettings, log_start_offset: int, high_watermark: int, now_ms: int
) -> int:
    """How many segments, from the start of the log, are to be deleted. Raises OSError."""

    def count_on(count: int, is_deletable: Callable[[LogSegment], bool]) -> int:
        """``count`` and the segments behind it while ``is_deletable`` and the general rules agree."""
        for place in range(count, len(segments)):
            segment = segments[place]
            is_empty = segment is segments.active and not segment.size
            if is_empty or segment.next_offset > high_watermark or not is_deletable(segment):
                return place
        return len(segments)

    count = count_on(0, lambda segment: segment.next_offset <= log_start_offset and segment is not segments.active)
    if not settings.deletes_old_segments:
        return count
    if settings.retention_bytes >= 0:
        count = count_on(count, _until_size(settings.retention_bytes, segments[count:]))
    if settings.retention_ms >= 0:
        count = count_on(count, lambda segment: now_ms - segment.newest_ms() > settings.retention_ms)
    return count


def _until_size(retention_bytes: int, segments: list[LogSegment]) -> Callable[[LogSegment], bool]:
    """Whether, asked for one segment after the other, the log is long enough without it."""
    excess = sum(segment.size for segment in segments) - retention_bytes

    def is_deletable(segment: LogSegment) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    return is_deletable
