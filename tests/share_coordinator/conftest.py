"""A share coordinator on a log in memory, and topics that the test makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from ottla.base.seams import SimulatedClock
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.share_coordinator.coordinator import ShareCoordinator, no_flush
from ottla.share_coordinator.records import ShareRecord, read_batch
from ottla.share_coordinator.settings import ShareCoordinatorSettings
from ottla.share_coordinator.state import SharePartitionKey, ShareState, StateBatch
from ottla.wire.records import iter_batches

from ..helpers.memory_coordinator_log import MemoryLog

TOPIC = bytes(range(16))
KEY = SharePartitionKey("g", TOPIC, 0)


class World:
    """The log and the topics, for coordinators one after the other."""

    def __init__(self, nursery: trio.Nursery, **settings: int) -> None:
        self.log = MemoryLog()
        self.clock = SimulatedClock()
        self.topics = {TOPIC: 3}
        self.coordinator = self._make(settings)
        self._settings = settings
        self._nursery = nursery
        self._epoch = 0

    def _make(self, settings: dict[str, int]) -> ShareCoordinator:
        return ShareCoordinator(
            self.log, ShareCoordinatorSettings(settings), self.clock, lambda topic_id: self.topics.get(topic_id, 0)
        )

    def partition(self, key: SharePartitionKey = KEY) -> int:
        return self.coordinator.partition_for(key.coordinator_key())

    async def restart(self, *keys: SharePartitionKey) -> None:
        """Another coordinator, which serves these share partitions."""
        self.coordinator = self._make(self._settings)
        self._epoch += 1
        for partition in {self.partition(key) for key in keys or (KEY,)}:
            await self.coordinator.load(partition, self._epoch)

    def run(self) -> None:
        self._nursery.start_soon(self.coordinator.run)

    # One share partition after the other, each waited for

    async def initialize(self, state_epoch: int = 1, start_offset: int = -1, key: SharePartitionKey = KEY) -> None:
        await self.coordinator.committed(self.coordinator.initialize(key, state_epoch, start_offset), no_flush)

    async def read(self, leader_epoch: int = -1, key: SharePartitionKey = KEY) -> ShareState:
        return await self.coordinator.committed(self.coordinator.read(key, leader_epoch), no_flush)

    async def write(
        self,
        *batches: StateBatch,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = -1,
        complete: int = 0,
        key: SharePartitionKey = KEY,
    ) -> None:
        written = self.coordinator.write(key, state_epoch, leader_epoch, start_offset, complete, batches)
        await self.coordinator.committed(written, no_flush)

    async def delete(self, key: SharePartitionKey = KEY) -> None:
        await self.coordinator.committed(self.coordinator.delete(key), no_flush)

    async def summary(self, key: SharePartitionKey = KEY) -> tuple[int, int, int, int]:
        return await self.coordinator.committed(self.coordinator.summary(key), no_flush)

    def records(self, key: SharePartitionKey = KEY) -> list[ShareRecord]:
        """The records in the key's partition of the log."""
        partition = self.partition(key)
        skipped = SkippedRecords()
        found = [
            (offset, record)
            for data in self.log.partitions.get(partition, [])
            for batch in iter_batches(data)
            for offset, record in read_batch(batch, skipped)
            if record is not None and offset >= self.log.starts[partition]
        ]
        assert skipped.count == 0
        return [record for _, record in found]


Run = Callable[..., Awaitable[None]]


@pytest.fixture
def run() -> Run:
    """``run(test, **settings)``: run the test with a world, whose coordinator serves ``KEY``; it is stopped at the end."""

    async def run(test: Callable[[World], Awaitable[None]], **settings: int) -> None:
        async with trio.open_nursery() as nursery:
            world = World(nursery, **settings)
            await world.restart()
            await test(world)
            nursery.cancel_scope.cancel()

    return run
