"""Lag in time: how long the next record that a group is to read has been there.

It is the record's own timestamp, read from the log by a worker; no sampling, and no guess. What was found is kept, for a record
does not change; what is kept is bounded.
"""

from __future__ import annotations

from ...base.errors import KafkaError
from ...base.seams import Workers
from ...log.segment import SegmentSlice
from ...log.validation import MAX_DECOMPRESSED_BYTES
from ...replication.partition import Partition
from ...wire.records import iter_complete_batches

_MOST_KEPT = 10_000
_READ_BYTES = 64 * 1024


class LagTimes:
    """``of`` reads, and remembers what it found."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._found: dict[tuple[bytes, int, int], int] = {}

    async def of(self, partition: Partition, offset: int) -> int | None:
        """The timestamp, in ms, of the first record from ``offset`` on; None where there is none, or it cannot be read."""
        log = partition.log
        offset = max(offset, log.log_start_offset)
        key = partition.topic_id, log.partition, offset
        known = self._found.get(key)
        if known is not None:
            return known
        try:
            found = partition.read(offset, _READ_BYTES, log.high_watermark, at_least_one=True)
        except KafkaError:
            return None
        if found is None:
            return None
        try:
            timestamp = await self._workers.run(_first_timestamp, found, offset)
        except KafkaError:
            return None
        finally:
            found.release()
        if timestamp is not None:
            if len(self._found) >= _MOST_KEPT:
                del self._found[next(iter(self._found))]
            self._found[key] = timestamp
        return timestamp


def _first_timestamp(found: SegmentSlice, offset: int) -> int | None:
    """Raises KafkaError."""
    for batch in iter_complete_batches(found.read()):
        if batch.last_offset < offset or batch.is_control:
            continue
        batch.check_crc()
        for record in batch.records(MAX_DECOMPRESSED_BYTES):
            if record.offset >= offset:
                return record.timestamp if record.timestamp >= 0 else None
    return None
