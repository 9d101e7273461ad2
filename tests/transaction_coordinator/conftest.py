"""A coordinator on a log in memory, whose markers go to partitions that the test controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SimulatedClock
from ottla.transaction_coordinator.coordinator import TransactionCoordinator
from ottla.transaction_coordinator.settings import TransactionSettings
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.wire.records import RecordBatch


async def no_flush() -> None:
    """Nothing to flush."""


class MemoryLog:
    """``CoordinatorLog`` in memory. ``held`` keeps the high watermark where it is; ``error`` refuses the next append.

    ``wait_error`` is raised by the next wait for the watermark.
    """

    def __init__(self) -> None:
        self.partitions: dict[int, list[bytes]] = {}
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
        raise AssertionError("__transaction_state is part of no transaction")

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

    async def wait_committed(self, partition: int, offset: int) -> None:
        if self.wait_error is not None:
            error, self.wait_error = self.wait_error, None
            raise error
        while self.committed[partition] < offset:
            await self.moved.wait()

    async def batches(self, partition: int) -> AsyncIterator[bytes]:
        for batch in list(self.partitions.get(partition, [])):
            yield batch


class Leaders:
    """``MarkerChannels``: remembers markers. ``gone`` has no such partition, ``away`` no leader, ``codes`` refuse.

    A partition in ``epochs`` knows the producer under a later epoch.
    """

    def __init__(self) -> None:
        self.markers: list[tuple[str, int, int, int, bool]] = []
        self.coordinator_epochs: set[int] = set()
        self.gone: set[tuple[str, int]] = set()
        self.away: set[tuple[str, int]] = set()
        self.codes: dict[tuple[str, int], ErrorCode] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        self.gate: trio.Event | None = None

    def leader(self, topic: str, partition: int) -> int | None:
        if (topic, partition) in self.gone:
            return None
        return -1 if (topic, partition) in self.away else partition % 2

    async def write_txn_markers(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if self.gate is not None:
            await self.gate.wait()
        (marker,) = request.markers
        self.coordinator_epochs.add(marker.coordinator_epoch)
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[self._write(broker_id, marker, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in marker.topics
        ]
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)])

    def _write(
        self, broker_id: int, marker: WritableTxnMarker, topic: str, index: int
    ) -> WritableTxnMarkerPartitionResult:
        assert broker_id == index % 2
        code = self.codes.get((topic, index), ErrorCode.NONE)
        if marker.producer_epoch < self.epochs.get((topic, index), 0):
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.NONE:
            written = (topic, index, marker.producer_id, marker.producer_epoch, marker.transaction_result)
            self.markers.append(written)
        return WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)


class ProducerIds:
    """1000, 1001, ..."""

    def __init__(self) -> None:
        self.next = 1000

    async def next_producer_id(self) -> int:
        await trio.lowlevel.checkpoint()
        self.next += 1
        return self.next - 1


class World:
    """The log and the partitions, for coordinators one after the other."""

    def __init__(self, nursery: trio.Nursery, **settings: int) -> None:
        self.nursery = nursery
        self.log = MemoryLog()
        self.leaders = Leaders()
        self.clock = SimulatedClock()
        self.producer_ids = ProducerIds()
        self.settings = TransactionSettings(settings)
        self.epoch = 0

    async def coordinator(self, transactional_id: str = "id") -> TransactionCoordinator:
        """Start another coordinator, which serves the transactional id."""
        made = TransactionCoordinator(self.log, self.settings, self.clock, self.producer_ids, self.leaders)
        self.epoch += 1
        await made.load(made.partition_for(transactional_id), self.epoch)
        self.nursery.start_soon(made.run)
        return made


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


@pytest.fixture
def run(make_world):
    """``run(test, **settings)``: run the test with a world, whose coordinators are stopped at its end."""

    async def run(test, **settings) -> None:
        async with trio.open_nursery() as nursery:
            await test(make_world(nursery, **settings))
            nursery.cancel_scope.cancel()

    return run
