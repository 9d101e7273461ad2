"""The log of a partition of ``__consumer_offsets`` as its present leader has it: batches, a high watermark, and their faults.

The next leader has all that is committed, and some of what is not (``remaining``). What is committed may be compacted by then.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, NamedTuple

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.records import CoordinatorRecord, read_batch
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import RecordBatch, RecordsBuilder

_REFUSALS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)


class StoredBatch(NamedTuple):
    """One batch of the log. ``end`` is the offset after it."""

    content: bytes
    end: int

    def records(self) -> list[CoordinatorRecord]:
        skipped = SkippedRecords()
        found = [record for _, record in read_batch(RecordBatch(bytearray(self.content)), skipped)]
        assert not skipped.count
        return [record for record in found if record is not None]


class GroupLog:
    """``CoordinatorLog`` of one partition. ``on_append`` is told of each batch before it is replayed."""

    def __init__(self, rng: random.Random, on_append: Callable[[StoredBatch], None]) -> None:
        self.stored: list[StoredBatch] = []
        self.end = 0
        self.committed = 0
        """The high watermark."""
        self.refusals = 0.0
        """The share of appends that are refused."""
        self.delay_seconds = 0.0
        """The longest time from an append to its commit."""
        self.is_led = False
        self._rng = rng
        self._on_append = on_append
        self._moved = trio.Event()

    def lead(self, stored: Sequence[StoredBatch], end: int) -> None:
        """The leader begins with these batches, all of which are committed with its election."""
        self.stored = list(stored)
        self.end = self.committed = end
        self.is_led = True

    def lose(self) -> None:
        """Another broker leads: nothing more is committed here."""
        self.is_led = False
        self._wake()

    # --- CoordinatorLog -----------------------------------------------------------------------------------------------

    def partition_count(self) -> int | None:
        return 1

    def append(self, partition: int, batch: bytearray) -> int:
        if not self.is_led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.refusals and self._rng.random() < self.refusals:
            raise KafkaError(self._rng.choice(_REFUSALS), "a fault of the log")
        view = RecordBatch(batch)
        view.check_crc()
        view.stamp(self.end, 0)
        self.end += view.record_count
        stored = StoredBatch(bytes(batch), self.end)
        self.stored.append(stored)
        self._on_append(stored)
        if not self.delay_seconds:
            self._commit(self.end)
        else:
            clock: Any = trio.lowlevel.current_clock()
            clock.call_at(
                trio.current_time() + self._rng.uniform(0, self.delay_seconds), lambda: self._commit(stored.end)
            )
        return self.end

    def append_end_marker(self, partition: int, marker: WritableTxnMarker) -> int:
        raise NotImplementedError

    def high_watermark(self, partition: int) -> int:
        if not self.is_led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.committed

    def is_replicated(self, partition: int) -> bool:
        return True

    async def wait_committed(self, partition: int, offset: int) -> None:
        while self.high_watermark(partition) < offset:
            await self._moved.wait()

    async def batches(self, partition: int) -> AsyncIterator[bytes]:
        for batch in list(self.stored):
            if self._rng.random() < 0.02:
                await trio.sleep(self._rng.uniform(0, 0.05))
            yield batch.content

    def _commit(self, end: int) -> None:
        if self.is_led and self.committed < end <= self.end:
            self.committed = end
            self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = trio.Event()


def remaining(stored: Sequence[StoredBatch], least: int, rng: random.Random) -> list[StoredBatch]:
    """The batches that the next leader has: all up to the offset ``least``, and some of those after it."""
    count = sum(1 for batch in stored if batch.end <= least)
    return list(stored[: rng.randint(count, len(stored)) if rng.random() < 0.5 else count])


def compacted(stored: Sequence[StoredBatch], *, keeps_tombstones: bool) -> list[StoredBatch]:
    """Only the last record of each key, in a batch of its own."""
    last: dict[bytes | None, int] = {}
    records = []
    for batch in stored:
        for record in RecordBatch(bytearray(batch.content)).records():
            last[record.key] = record.offset
            records.append(record)
    kept = []
    for record in records:
        if last[record.key] == record.offset and (record.value is not None or keeps_tombstones):
            builder = RecordsBuilder()
            builder.append(record.key, record.value, record.timestamp)
            content = builder.build()
            RecordBatch(content).stamp(record.offset, 0)
            kept.append(StoredBatch(bytes(content), record.offset + 1))
    return kept


def records_of(stored: Iterable[StoredBatch]) -> list[CoordinatorRecord]:
    """All records, in their order."""
    return [record for batch in stored for record in batch.records()]
