"""From times to offsets, inside batches too (KIP-79, KIP-734).

The indexes say in which segment, and from which position on, the record can be; the batches from there are walked by
their headers, and the one that has the record is checked and decompressed: an answer made of damaged bytes would be
believed. The walk reads files only and runs in a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import KafkaError
from ..wire.records import RecordBatch
from .disk import OpenFile
from .scan import scan_batches
from .validation import MAX_DECOMPRESSED_BYTES

if TYPE_CHECKING:
    from .partition_log import PartitionLog
    from .segment import LogSegment

NOT_FOUND = (-1, -1, -1)

TimedOffset = tuple[int, int, int]
"""Offset, timestamp in ms and leader epoch of a record; NOT_FOUND when there is none."""


async def find_timestamp(partition_log: PartitionLog, timestamp_ms: int, up_to: int) -> TimedOffset:
    """The first record at or after ``timestamp_ms`` and below ``up_to``. Raises KafkaError."""
    partition_log.folder.check_online()
    offset = -1
    while True:
        offset = max(offset, partition_log.log_start_offset)
        # looked up anew each time: retention and compaction change the list while the walk waits
        segment = next((segment for segment in partition_log.segments if segment.next_offset > offset), None)
        if segment is None or segment.base_offset >= up_to:
            return NOT_FOUND
        found = await _walk(segment, timestamp_ms, max(offset, segment.base_offset))
        if found != NOT_FOUND:
            return found if found[0] < up_to else NOT_FOUND
        offset = segment.next_offset


async def find_max_timestamp(partition_log: PartitionLog, up_to: int) -> TimedOffset:
    """The first record with the largest timestamp of the log. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
    partition_log.folder.check_online()
    try:
        newest = max(partition_log.segments, key=lambda segment: segment.largest_timestamp(), default=None)
    except OSError as error:
        raise partition_log.folder.fail(f"cannot read {partition_log.directory}", error) from error
    if newest is None or not newest.size:
        return NOT_FOUND
    found = await _walk(newest, newest.max_timestamp, newest.base_offset)
    return found if found[0] < up_to else NOT_FOUND


async def _walk(segment: LogSegment, timestamp_ms: int, start_offset: int) -> TimedOffset:
    try:
        if segment.largest_timestamp() < timestamp_ms:
            return NOT_FOUND
        indexed = segment.base_offset + segment.times().lookup(timestamp_ms)
        position = segment.position_of(max(indexed, start_offset))
        file = segment.file()
    except OSError as error:
        raise _unreadable(segment, error) from error
    segment.pins += 1
    try:
        return await segment.folder.workers.run(_find_record, file, position, segment.size, timestamp_ms, start_offset)
    except OSError as error:
        raise _unreadable(segment, error) from error
    finally:
        segment.unpin()


def _find_record(file: OpenFile, start: int, end: int, timestamp_ms: int, start_offset: int) -> TimedOffset:
    for _, batch in scan_batches(file, start, end):
        if batch.max_timestamp >= timestamp_ms and batch.last_offset >= start_offset:
            found = _find_in_batch(batch, timestamp_ms, start_offset)
            if found != NOT_FOUND:
                return found
    return NOT_FOUND


def _find_in_batch(batch: RecordBatch, timestamp_ms: int, start_offset: int) -> TimedOffset:
    batch.check_crc()
    for record in batch.records(MAX_DECOMPRESSED_BYTES):
        if record.timestamp >= timestamp_ms and record.offset >= start_offset:
            return record.offset, record.timestamp, batch.partition_leader_epoch
    return NOT_FOUND


def _unreadable(segment: LogSegment, error: OSError) -> KafkaError:
    return segment.folder.fail(f"cannot read {segment.path}", error)
