"""Time lag of groups: the age of the next record that a group is to read.

It is the record's own timestamp, read from the log by a worker; no sampling, and no guess. What was found is kept, for a record
does not change; what is kept is bounded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from ...base.errors import KafkaError
from ...base.seams import Workers
from ...log.segment import SegmentSlice
from ...replication.partition import Partition
from ...wire.records import iter_complete_batches
from ..record_log import first_timestamp

Key = tuple[bytes, int, int]
"""Topic id, partition, offset."""
_MOST_KEPT = 10_000
_READ_BYTES = 64 * 1024


class LagTimes:
    """A reader of timestamps that remembers what it found: ``of`` a list of partitions."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._found: dict[Key, int] = {}

    async def of(self, asked: Sequence[tuple[Partition, int]]) -> list[int | None]:
        """Of each partition the timestamp, in ms, of the first record from an offset on; None where there is none to be read."""
        keys = [self._key(partition, offset) for partition, offset in asked]
        found = {key: self._found[key] for key in keys if key in self._found}
        slices = {
            key: slice_
            for key, (partition, _) in zip(keys, asked, strict=True)
            if key not in found and (slice_ := _slice(partition, key[2])) is not None
        }
        if slices:
            try:
                read = await self._workers.run(_first_timestamps, slices)
            finally:
                for slice_ in slices.values():
                    slice_.release()
            for key, timestamp in read.items():
                if len(self._found) >= _MOST_KEPT:
                    del self._found[next(iter(self._found))]
                found[key] = self._found[key] = timestamp
        return [found.get(key) for key in keys]

    @staticmethod
    def _key(partition: Partition, offset: int) -> Key:
        return partition.topic_id, partition.log.partition, max(offset, partition.log.log_start_offset)


def _slice(partition: Partition, offset: int) -> SegmentSlice | None:
    try:
        return partition.read(offset, _READ_BYTES, partition.log.high_watermark, at_least_one=True)
    except KafkaError:
        return None


def _first_timestamps(slices: Mapping[Key, SegmentSlice]) -> dict[Key, int]:
    """Those that can be read."""
    found = {}
    for key, slice_ in slices.items():
        with contextlib.suppress(KafkaError):
            timestamp = _first_timestamp(slice_, key[2])
            if timestamp is not None:
                found[key] = timestamp
    return found


def _first_timestamp(found: SegmentSlice, offset: int) -> int | None:
    """Raises KafkaError."""
    return first_timestamp(iter_complete_batches(found.read()), offset)
