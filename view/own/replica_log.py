"""A replica on this broker as a ``RecordLog``, read by a worker."""

from __future__ import annotations

from ...base.seams import Workers
from ...log.segment import SegmentSlice
from ...log.transactional_reads import aborted_between
from ...replication.partition import Partition
from ...wire.records import RecordBatch, iter_complete_batches
from ..record_log import Batches


class ReplicaLog:
    """The ``RecordLog`` of one replica on this broker."""

    def __init__(self, partition: Partition, workers: Workers) -> None:
        self._partition = partition
        self._log = partition.log
        self._workers = workers

    @property
    def number(self) -> int:
        return self._log.partition

    @property
    def start(self) -> int:
        return self._log.log_start_offset

    @property
    def end(self) -> int:
        return self._log.high_watermark

    @property
    def last_stable(self) -> int:
        return self._log.last_stable_offset

    async def refresh(self) -> None:
        """Nothing is to be done: what is told is as it is now."""

    async def read(self, start: int, end: int, max_bytes: int) -> Batches | None:
        aborted = aborted_between(self._log.segments, start, end)
        # Not up to ``end``: where that is inside a batch, the batch would be left out.
        slice_ = self._partition.read(max(start, self.start), max_bytes, self.end, at_least_one=True)
        if slice_ is None:
            return None
        try:
            return Batches(await self._workers.run(_batches, slice_), aborted)
        finally:
            slice_.release()

    async def offset_at(self, time_ms: int) -> int | None:
        offset, _, _ = await self._log.offset_for_timestamp(time_ms, self.end)
        return None if offset < 0 else offset


def _batches(slice_: SegmentSlice) -> list[RecordBatch]:
    """Raises KafkaError."""
    return list(iter_complete_batches(slice_.read()))
