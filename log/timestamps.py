"""Offset lookup by timestamp, down to single records within batches (KIP-79, KIP-734).

The indexes say in which segment, and from which position on, the record can be; the batches from there are walked by
their headers, and the one that has the record is checked and decompressed, since a client could not tell that a
response was made of damaged bytes. The walk reads files only and runs in a worker.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import RecordBatch
from .disk import OpenFile
from .log_segments import LogSegments
from .scan import scan_batches
from .segment import LogSegment
from .validation import MAX_DECOMPRESSED_BYTES

NOT_FOUND = (-1, -1, -1)

TimedOffset = tuple[int, int, int]
"""Offset, timestamp in ms and leader epoch of a record; NOT_FOUND when there is none."""


async def find_timestamp(segments: LogSegments, timestamp_ms: int, start_offset: int, up_to: int) -> TimedOffset:
    """The first record at or after ``timestamp_ms``, from ``start_offset`` on and below ``up_to``.

    Raises KafkaError; KAFKA_STORAGE_ERROR, too, for a log that is deleted or replaced meanwhile.
    """
    offset = start_offset
    while True:
        # looked up again each time: retention and compaction change the list while the walk waits
        if segments.is_closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log {segments.directory} is closed")
        segment = segments.following(offset)
        if segment is None or segment.base_offset >= up_to:
            return NOT_FOUND
        found = await _walk(segment, timestamp_ms, max(offset, segment.base_offset))
        if found != NOT_FOUND:
            return found if found[0] < up_to else NOT_FOUND
        offset = segment.next_offset


async def find_max_timestamp(segments: LogSegments, up_to: int) -> TimedOffset:
    """The first record with the largest timestamp of the log. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
    try:
        newest = max(segments, key=lambda segment: segment.indexes.largest_timestamp(), default=None)
    except OSError as error:
        raise segments.folder.fail(f"cannot read {segments.directory}", error) from error
    if newest is None or not newest.size:
        return NOT_FOUND
    found = await _walk(newest, newest.indexes.max_timestamp, newest.base_offset)
    return found if found[0] < up_to else NOT_FOUND


async def _walk(segment: LogSegment, timestamp_ms: int, start_offset: int) -> TimedOffset:
    file, indexes = segment.file, segment.indexes
    try:
        if indexes.largest_timestamp() < timestamp_ms:
            return NOT_FOUND
        indexed = segment.base_offset + indexes.loaded()[1].lookup(timestamp_ms)
        position = segment.position_of(max(indexed, start_offset))
        with file.pinned():
            return await file.folder.workers.run(
                _find_record, file.open(), position, file.size, timestamp_ms, start_offset
            )
    except OSError as error:
        raise file.folder.fail(f"cannot read {file.path}", error) from error


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
