"""The prediction of a broker's start on a log: segments scanned, segments removed, and the resulting log end.

It follows ``log_loader.LogLoader`` and ``recovery.LogRecovery``; the end of a log that was stopped cleanly is found by the
same function as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..files import TRANSACTION_INDEX_SUFFIX
from .segments import SegmentCheck


@dataclass(frozen=True)
class Expectations:
    """What the log directory says of a partition. None: its checkpoint has no entry."""

    is_clean: bool
    """Whether the last stop was clean."""
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    cleaned_offset: int | None = None


@dataclass(frozen=True)
class Start:
    """The effects of a start on a log, with segments by their place in it."""

    first_scanned: int
    """From this segment on every batch is read and the indexes are rebuilt; those before are left as they are."""
    removed_from: int
    """From this segment on all are removed."""
    end_offset: int
    """Where the log then ends."""
    recovery_point: int
    is_emptied: bool = False
    """Whether nothing is left of it, because it would end before its start."""

    def scans(self, slot: int) -> bool:
        return self.first_scanned <= slot < self.removed_from

    def removes(self, slot: int) -> bool:
        return slot >= self.removed_from


def predict_start(segments: Sequence[SegmentCheck], expected: Expectations, *, was_compacted: bool) -> Start:
    """What a start does to a log of at least one segment."""
    recovery_point = _doubted_from(segments, expected)
    if recovery_point is None:
        first = removed_from = len(segments)
        end = segments[-1].clean_end
        assert end is not None
        recovery_point = end
    else:
        first = max((slot for slot, s in enumerate(segments) if s.base_offset <= recovery_point), default=0)
        removed_from, end = _scan(segments, first, was_compacted=was_compacted)
    is_emptied = end < max(expected.log_start_offset or 0, segments[0].base_offset)
    return Start(first, 0 if is_emptied else removed_from, end, min(recovery_point, end), is_emptied)


def _doubted_from(segments: Sequence[SegmentCheck], expected: Expectations) -> int | None:
    """The offset from which on a start doubts what it finds; None when it does not doubt anything."""
    recovery_point = expected.recovery_point or 0
    for segment in segments:
        if segment.problems.get(TRANSACTION_INDEX_SUFFIX, ("", False))[1]:
            return min(recovery_point, segment.base_offset)
    if not expected.is_clean:
        return recovery_point
    return segments[-1].base_offset if segments[-1].clean_end is None else None


def _scan(segments: Sequence[SegmentCheck], first: int, *, was_compacted: bool) -> tuple[int, int]:
    """From which segment on they are removed, and where the log then ends, when those from ``first`` on are scanned."""
    for slot in range(first, len(segments)):
        segment = segments[slot]
        if slot > first and segment.base_offset < segments[slot - 1].next_offset:
            return slot, segments[slot - 1].next_offset
        is_cut = segment.valid_size < segment.size
        has_gap = slot + 1 < len(segments) and segment.next_offset < segments[slot + 1].base_offset
        if is_cut or (has_gap and not was_compacted):
            return slot + 1, segment.next_offset
    return len(segments), segments[-1].next_offset
