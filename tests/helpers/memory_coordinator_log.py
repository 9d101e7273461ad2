"""The log of a coordinator's topic in memory, for tests of a coordinator without a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import trio

from ottla.base.errors import KafkaError
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import RecordBatch


class MemoryLog:
    """``CoordinatorLog`` in memory. ``held`` keeps the high watermark where it is; ``error`` refuses the next append.

    ``wait_error`` is raised by the next wait for the watermark. It is part of no transaction.
    """

    def __init__(self) -> None:
        self.partitions: dict[int, list[bytes]] = {}
        self.starts: Counter[int] = Counter()
        self.ends: Counter[int] = Counter()
        self.committed: Counter[int] = Counter()
        self.held = False
        self.replicated = True
        self.error: KafkaError | None = None
        self.wait_error: KafkaError | None = None
        self.moved = trio.Event()

    def partition_count(self) -> int | None:
        return None

    def append(self, partition: int, batch: bytearray) -> int:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        view = RecordBatch(batch)
        view.stamp(self.ends[partition], 0)
        self.partitions.setdefault(partition, []).append(bytes(batch))
        self.ends[partition] += view.record_count
        if not self.held:
            self.release()
        return self.ends[partition]

    def append_end_marker(self, partition: int, marker: WritableTxnMarker) -> int:
        raise AssertionError("the topic is part of no transaction")

    def release(self) -> None:
        """Commit everything that was written so far."""
        self.held = False
        self.committed.update(self.ends - self.committed)
        self.moved.set()
        self.moved = trio.Event()

    def high_watermark(self, partition: int) -> int:
        return self.committed[partition]

    def is_replicated(self, partition: int) -> bool:
        return self.replicated

    def delete_records(self, partition: int, offset: int) -> None:
        assert offset <= self.committed[partition], "what is not committed must not go"
        self.starts[partition] = max(self.starts[partition], offset)

    async def wait_committed(self, partition: int, offset: int) -> None:
        if self.wait_error is not None:
            error, self.wait_error = self.wait_error, None
            raise error
        while self.committed[partition] < offset:
            await self.moved.wait()

    async def batches(self, partition: int) -> AsyncIterator[bytes]:
        """As a log gives them: the batch that has the first offset is whole."""
        for batch in list(self.partitions.get(partition, [])):
            if RecordBatch(batch).next_offset > self.starts[partition]:
                yield batch
