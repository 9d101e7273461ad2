"""Helpers for read-committed fetches: the aborted transactions of an offset range, and its size in bytes."""

from __future__ import annotations

from .log_segments import LogSegments
from .partition_log import PartitionLog
from .segment import SegmentSlice
from .transaction_index import AbortedTxn, collect_aborted


def aborted_transactions(partition_log: PartitionLog, offset: int, found: SegmentSlice) -> list[AbortedTxn]:
    """The aborted transactions that overlap ``found``, which was read from ``offset`` on. Raises KafkaError."""
    try:
        return aborted_between(partition_log.segments, offset, found.offset_bound())
    except OSError as error:
        raise partition_log.folder.fail(f"cannot read {partition_log.directory}", error) from error


def aborted_between(segments: LogSegments, start: int, end: int) -> list[AbortedTxn]:
    """The aborted transactions that overlap the offsets [start, end). Raises OSError.

    The markers of those that are still open at the end are in later segments.
    """
    aborted: list[AbortedTxn] = []
    for segment in segments[segments.place_of(start) :]:
        if collect_aborted(segment.aborted.entries(), start, end, aborted):
            break
    return aborted


def bytes_between(partition_log: PartitionLog, start: int, end: int) -> int:
    """How many bytes the batches from offset ``start`` to ``end`` have. Raises KafkaError."""
    try:
        return sum(
            segment.position_of(end) - segment.position_of(start)
            for segment in partition_log.segments
            if segment.base_offset < end and segment.next_offset > start
        )
    except OSError as error:
        raise partition_log.folder.fail(f"cannot read {partition_log.directory}", error) from error
