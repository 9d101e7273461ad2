"""The share coordinator of the group, one after the other: the product's, on a simulated log of ``__share_group_state``.

A coordinator that is deposed learns of it later. Until then it takes requests as before, and nothing of them is committed. The
next one has all that was committed of the log, and some of what was not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SimulatedClock
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.replication.coordinator_log import Flush
from ottla.share_coordinator.coordinator import Applied, ShareCoordinator, no_flush
from ottla.share_coordinator.settings import ShareCoordinatorSettings
from ottla.share_coordinator.shard import ShareCoordinatorShard
from ottla.share_coordinator.state import NOT_BEGUN, SharePartitionKey, StateBatch
from ottla.wire.records import RecordBatch

from ..consumer_group.group_log import GroupLog, StoredBatch, remaining
from ..run import Run
from .kept import KeptStates, Request

_PARTITION = 0
PARTITIONS = 2
"""Of the topic that is read."""
FIRST_STATE_EPOCH = 1


def _nothing(stored: StoredBatch) -> None:
    pass


class StateLog(GroupLog):
    """``ShareStateLog`` of one partition."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, _nothing)
        self.start = 0
        self.is_deposed = False
        """Whether another broker leads; this one may not know it."""

    def follow(self, before: StateLog) -> None:
        """Lead after ``before``: what it had not committed is committed here later, if it is not lost."""
        self.stored = remaining(before.stored, before.committed, self._rng)
        self.end = self.stored[-1].end if self.stored else before.committed
        self.start, self.committed = before.start, before.committed
        self.refusals, self.delay_seconds = before.refusals, before.delay_seconds
        self.is_led, before.is_deposed = True, True
        clock: Any = trio.lowlevel.current_clock()
        end = self.end
        clock.call_at(trio.current_time() + self._rng.uniform(0, self.delay_seconds), lambda: self._commit(end))

    def delete_records(self, partition: int, offset: int) -> None:
        assert offset <= self.high_watermark(partition), "what is not committed must not go"
        self.start = max(self.start, offset)
        self.stored = [batch for batch in self.stored if batch.end > self.start]

    def _commit(self, end: int) -> None:
        if not self.is_deposed:
            super()._commit(end)


class Coordinator:
    """One of them."""

    def __init__(self, coordinators: Coordinators, number: int, kept: KeptStates) -> None:
        world = coordinators.world
        self.number = number
        self.kept = kept
        self.log = StateLog(world.random_for(f"state log {number}"))
        settings = ShareCoordinatorSettings(coordinators.settings)
        self.shares = ShareCoordinator(self.log, settings, SimulatedClock(), lambda _: PARTITIONS)
        self._world = world
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Load the log, and serve until it has ended."""
        with self._scope:
            await self.shares.load(_PARTITION, self.number)
            self.compare()
            await self.shares.run()

    def end(self) -> None:
        """It knows that another one leads."""
        self.log.lose()
        self.shares.stop()
        self._scope.cancel()

    def compare(self) -> None:
        """What it keeps is what the requests say."""
        for shard in self.shares._shards:
            self._compare(shard)

    def compare_log(self) -> None:
        """What is left of its log is enough to make the same states of it."""
        shard, skipped = ShareCoordinatorShard(_PARTITION, 0, self.log, 0), SkippedRecords()
        for batch in self.log.stored:
            for _ in shard.load(RecordBatch(bytearray(batch.content)), skipped):
                pass
        self._compare(shard)

    def _compare(self, shard: ShareCoordinatorShard) -> None:
        for key, kept in self.kept.states.items():
            if why := kept.difference(shard.share_partitions.get(key)):
                self._world.violate(f"coordinator {self.number} of partition {key.partition}: {why}")

    def take(self, request: Request) -> None:
        if why := self.kept.take(request):
            self._world.violate(f"coordinator {self.number} of partition {request.key.partition}: {why}")


class Coordinators:
    """See the module."""

    def __init__(self, world: Run) -> None:
        self.world = world
        self._rng = rng = world.random_for("coordinators")
        self.settings = {
            "share_coordinator_snapshot_update_records_per_snapshot": rng.choice((0, 1, 3, 10, 500)),
            "share_coordinator_state_topic_prune_interval_ms": rng.choice((300, 2000)),
            "share_coordinator_cold_partition_snapshot_interval_ms": rng.choice((700, 5000)),
            "share_coordinator_write_timeout_ms": rng.choice((500, 5000)),
        }
        self.current = Coordinator(self, 1, KeptStates())
        self.current.log.lead((), 0)
        self._epoch = 1
        self.trouble = 0.0
        """The share of responses that are lost."""
        self.ending = 0
        """How many do not know yet that another one leads."""

    async def begin(self, nursery: trio.Nursery, keys: Sequence[SharePartitionKey]) -> None:
        """Start the first one, which initializes the share partitions."""
        nursery.start_soon(self.current.run)
        await self.current.shares.wait_loaded(_PARTITION)
        for key in keys:
            await self.initialize(key, FIRST_STATE_EPOCH, NOT_BEGUN)

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Begin anew, as a group's coordinator asks for it. It is asked once: who asks again undoes what was written since."""
        route = CoordinatorRoute(self, self._rng)
        await route.committed(route.initialize(key, state_epoch, start_offset), no_flush)

    def set_faults(self, trouble: float, refusals: float, delay_seconds: float) -> None:
        self.trouble = trouble
        self.current.log.refusals, self.current.log.delay_seconds = refusals, delay_seconds

    def move(self, nursery: trio.Nursery, *, is_killed: bool) -> None:
        """Another one leads from now on. This one is killed, or learns of it later."""
        before = self.current
        self._epoch += 1
        log = before.log
        self.current = after = Coordinator(self, self._epoch, KeptStates())
        after.log.follow(log)
        after.kept = before.kept.up_to(after.log.end)
        self.world.log(
            "coordinator", f"{after.number}: {after.log.start}-{after.log.end} of {log.committed}, {log.end}"
        )
        nursery.start_soon(after.run)
        if is_killed:
            before.end()
        else:
            self.ending += 1
            nursery.start_soon(self._end_later, before)

    async def _end_later(self, before: Coordinator) -> None:
        await trio.sleep(self._rng.choice((0, 0.5, 3.0)))
        before.end()
        self.ending -= 1

    async def elect_again(self) -> None:
        """The same one leads, under another epoch."""
        self._epoch += 1
        await self.current.shares.load(_PARTITION, self._epoch)


class _Asked(NamedTuple):
    """What a coordinator has applied."""

    coordinator: Coordinator
    applied: Applied[Any]


class CoordinatorRoute:
    """The way of one broker to the coordinators: it hears of a new one late, and never goes back to an old one.

    It has what ``ShareStateClient`` needs of a metadata cache, and of a coordinator of its own broker.
    """

    leader = 0

    def __init__(self, coordinators: Coordinators, rng: random.Random) -> None:
        self._coordinators = coordinators
        self._rng = rng
        self._known = coordinators.current
        self.ended_counts: dict[SharePartitionKey, int] = {}
        """How many records of a share partition are done with, after the last write."""

    # --- as a MetadataCache -------------------------------------------------------------------------------------------

    def topic(self, name: str) -> object:
        return self

    def partition(self, name: str, number: int) -> CoordinatorRoute:
        return self

    # --- as a ShareCoordinator ----------------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        return _PARTITION

    def serves(self, number: int) -> bool:
        return self._coordinators.current.shares.serves(number)

    async def wait_loaded(self, number: int) -> None:
        await self._coordinators.current.shares.wait_loaded(number)

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> _Asked:
        return self._ask(
            lambda shares: shares.initialize(key, state_epoch, start_offset),
            lambda end: Request(end, key, state_epoch, start_offset=start_offset),
        )

    def read(self, key: SharePartitionKey, leader_epoch: int) -> _Asked:
        asked = self._ask(
            lambda shares: shares.read(key, leader_epoch), lambda end: Request(end, key, leader_epoch=leader_epoch)
        )
        asked.coordinator.compare()
        return asked

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> _Asked:
        change = state_epoch, leader_epoch, start_offset
        asked = self._ask(
            lambda shares: shares.write(key, *change, delivery_complete_count, batches),
            lambda end: Request(end, key, *change, batches),
        )
        self.ended_counts[key] = asked.coordinator.kept.states[key].ended_count
        return asked

    async def committed(self, asked: _Asked, flush: Flush) -> Any:
        coordinator, applied = asked
        result = await coordinator.shares.committed(applied, flush)
        if self._rng.random() < self._coordinators.trouble:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the response is lost")
        return result

    def _ask(self, ask: Callable[[ShareCoordinator], Applied[Any]], request: Callable[[int], Request]) -> _Asked:
        if self._rng.random() < 0.5:
            self._known = self._coordinators.current
        coordinator = self._known
        applied = ask(coordinator.shares)
        coordinator.take(request(applied.offset))
        return _Asked(coordinator, applied)
