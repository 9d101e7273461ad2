"""Validation and preparation of large produced batches in worker threads.

What a batch takes is not known before its records are decompressed, so there are two lanes. The first one takes what is done
with 4 MiB of records or 100,000 of them, some 100 ms of work. What turns out to be more is begun anew in the second, where
there is one at a time, so that a client that sends bombs delays the large batches of others by one piece of work at most, and
what waits holds no more than its request.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Workers
from ..base.worker_errors import run_expecting
from ..wire.compression import NONE
from ..wire.records import RecordBatch
from .settings import LogSettings
from .validation import MAX_DECOMPRESSED_BYTES, prepare_batch

_MOST_RECORDS_FIRST = 100_000
_MOST_BYTES_FIRST = 4 << 20


class LargeBatchError(Exception):
    """A produced batch, whose header has been checked, is too much for a step of the loop: see ``PartitionLog.prepare``."""

    def __init__(self, batch: RecordBatch) -> None:
        super().__init__(f"a batch of {batch.record_count} records, {batch.size} bytes")
        self.batch = batch


class BatchPreparation:
    """The two lanes of a log directory."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._second = trio.Lock()

    async def run(self, batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int) -> RecordBatch:
        """``validation.prepare_batch``, in a worker. Raises KafkaError."""
        is_compressed = batch.compression != NONE
        if batch.record_count <= _MOST_RECORDS_FIRST and (is_compressed or batch.size <= _MOST_BYTES_FIRST):
            try:
                return await self._prepare(batch, settings, topic, now_ms, _MOST_BYTES_FIRST)
            except KafkaError as error:
                if error.code is not ErrorCode.MESSAGE_TOO_LARGE or not is_compressed:
                    raise
        async with self._second:
            return await self._prepare(batch, settings, topic, now_ms, MAX_DECOMPRESSED_BYTES)

    async def _prepare(
        self, batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int, limit: int
    ) -> RecordBatch:
        return await run_expecting(self._workers, KafkaError, prepare_batch, batch, settings, topic, now_ms, limit)
