"""One partition to be read record by record: ``RecordLog``, and ``ReplicaLog``, which is that of a replica on this broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..base.seams import Workers
from ..log.segment import SegmentSlice
from ..log.transaction_index import AbortedTransaction
from ..log.transactional_reads import aborted_between
from ..replication.partition import Partition
from ..wire.records import RecordBatch, iter_complete_batches


class Batches(NamedTuple):
    """Whole batches in the order of their offsets, and the aborted transactions that reach into them."""

    batches: Sequence[RecordBatch]
    aborted: Sequence[AbortedTransaction]


class RecordLog(Protocol):
    """A partition's records from ``start`` to before ``end``, the high watermark; both as they were when last seen.

    From ``last_stable`` on, the last stable offset, there may be records of open transactions.
    """

    @property
    def number(self) -> int: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def last_stable(self) -> int: ...

    async def refresh(self) -> None:
        """See where the log starts and ends now. Raises KafkaError, OSError."""
        ...

    async def read(self, start: int, end: int, max_bytes: int) -> Batches | None:
        """The batches with the offsets from ``start`` on, up to ``end`` or a little further; None where there are none.

        At least one whole batch, whatever its size; the first one may begin before ``start``. Raises KafkaError, OSError.
        """
        ...

    async def offset_at(self, time_ms: int) -> int | None:
        """The first offset with a timestamp as large, or larger; None where there is none. Raises KafkaError, OSError."""
        ...


class ReplicaLog:
    """A ``RecordLog`` of a replica on this broker: files are read by a worker."""

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
