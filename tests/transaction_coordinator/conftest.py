"""A coordinator on a log in memory, whose markers go to partitions that the test controls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from ottla.base.errors import ErrorCode
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

from ..helpers.memory_coordinator_log import MemoryLog


async def no_flush() -> None:
    """Nothing to flush."""


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
