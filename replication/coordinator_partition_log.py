"""The log of a coordinator's internal topic, on the partitions that this broker leads."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ..base.seams import Clock, Workers
from ..wire.messages.write_txn_markers import WritableTxnMarker
from .metadata_cache import MetadataCache
from .replica_manager import ReplicaManager

_CHUNK_BYTES = 1 << 20


class CoordinatorPartitionLog:
    """``CoordinatorLog`` over the partitions of ``topic``."""

    def __init__(
        self, topic: str, replicas: ReplicaManager, metadata: MetadataCache, clock: Clock, workers: Workers
    ) -> None:
        self._topic = topic
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._workers = workers

    def partition_count(self) -> int | None:
        topic = self._metadata.topic(self._topic)
        return None if topic is None else len(topic.partitions)

    def append(self, partition: int, batch: bytearray) -> int:
        """Append one batch; the offset after it."""
        led = self._replicas.partition(self._topic, partition)
        return led.append(batch, self._clock.now_ms(), internal=True).last_offset + 1

    def append_end_marker(self, partition: int, marker: WritableTxnMarker) -> int:
        """Append a transaction's end marker; the offset after it."""
        return self._replicas.partition(self._topic, partition).append_end_marker(marker, self._clock.now_ms())

    def high_watermark(self, partition: int) -> int:
        led = self._replicas.partition(self._topic, partition)
        led.check_leader()
        return led.log.high_watermark

    def is_replicated(self, partition: int) -> bool:
        led = self._replicas.partition(self._topic, partition)
        led.check_leader()
        return len(led.replicas) > 1

    async def wait_committed(self, partition: int, offset: int) -> None:
        await self._replicas.partition(self._topic, partition).wait_for_high_watermark(offset)

    def delete_records(self, partition: int, offset: int) -> None:
        """Let the log begin at ``offset``, which is committed."""
        led = self._replicas.partition(self._topic, partition)
        led.check_leader()
        led.log.delete_records_before(offset)

    async def batches(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches in chunks of about a mebibyte, from the log's start to the end it has now."""
        log = self._replicas.partition(self._topic, partition).log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            piece = log.read(offset, _CHUNK_BYTES, up_to=end, at_least_one=True)
            if piece is None:
                return
            try:
                data = await self._workers.run(piece.read)
            finally:
                piece.release()
            yield data
            offset = _offset_after(data)


def _offset_after(data: bytes) -> int:
    """The offset after the last whole batch in ``data``."""
    from ..wire.records import iter_batches

    return max(batch.next_offset for batch in iter_batches(data))
