"""The world of one share group: two partitions, their leaders and share coordinators one after the other.

A *life* is a leadership of both partitions. A broker that is deposed learns of it later, and until then serves as before.
"""

from __future__ import annotations

from typing import Any

import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.replication.fetch_watches import FetchWatches
from ottla.share_coordinator.state import SharePartitionKey
from ottla.share_partitions.led_partition import LedPartition
from ottla.share_partitions.manager import GroupStart, SharePartitions
from ottla.share_partitions.share_partition import Terms, next_fetch_offset

from ..run import Mode, Run
from .coordinators import FIRST_STATE_EPOCH, PARTITIONS, Coordinators
from .log import LARGEST_BATCH, SimulatedLog
from .model import LeaderModel, PartitionModel
from .store import SimulatedStore, StoreTerms

GROUP = "sharers"
KEYS = tuple(SharePartitionKey(GROUP, b"0123456789abcdef", number) for number in range(PARTITIONS))


class SimulatedPartition:
    """A partition as its leader has it; the interface is that of ``Partition``."""

    def __init__(self, log: SimulatedLog, leader_epoch: int) -> None:
        self.log = log
        self.leader: object | None = object()
        self.leader_epoch = leader_epoch
        self.topic_id = KEYS[0].topic_id
        self.fetches = FetchWatches()

    def check_leader(self) -> None:
        if self.leader is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another broker leads")

    def fetchable_end(self, isolation_level: int) -> int:
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> Any:
        return self.log.read(offset, max_bytes, up_to, at_least_one)

    def depose(self) -> None:
        self.leader = None
        self.fetches.end()


class Life:
    """One leadership."""

    def __init__(self, world: ShareWorld, number: int) -> None:
        self.number = number
        self.partitions = [SimulatedPartition(log, number) for log in world.logs]
        self._world = world
        store: Any = SimulatedStore(world.coordinators, world.store, world.random_for(f"store {number}"))
        self.share_partitions = SharePartitions(self._find, store, lambda _: world.terms, world.start_of)
        self._models: dict[SharePartitionKey, tuple[LedPartition | None, PartitionModel, LeaderModel]] = {}
        self.members: set[str] = set()
        """Those with a session here."""
        self.scope = trio.CancelScope()
        self.requests: list[trio.CancelScope] = []
        """Sessions of members."""

    def die(self) -> None:
        """Its members' requests end as well."""
        for scope in (self.scope, *self.requests):
            scope.cancel()
        self.depose()

    def _find(self, topic_id: bytes, number: int) -> Any:
        return self.partitions[number]

    async def run(self) -> None:
        with self.scope:
            await self.share_partitions.run()

    def model(self, key: SharePartitionKey) -> tuple[PartitionModel, LeaderModel]:
        """What was delivered under this state epoch, and of that since the state was read last."""
        led = next((led for led in self.led() if led.key == key), None)
        known = self._models.get(key)
        if known is None or known[0] is not led:
            models = self._world.models[key]
            model = models[max(models)] if led is None else models[led._state_epoch]
            known = self._models[key] = led, model, LeaderModel()
        return known[1:]

    def led(self) -> list[LedPartition]:
        return [entry.led for entry in self.share_partitions.entries if entry.led is not None]

    def changed(self) -> None:
        """Records have come."""
        for partition in self.partitions:
            partition.fetches.notify_consumers(1, 1)

    def end_session(self, member_id: str) -> None:
        """As at the end of its connection."""
        self.members.discard(member_id)
        self.share_partitions.release(GROUP, member_id)
        if not self.members:
            self.share_partitions.retire(GROUP)

    def depose(self) -> None:
        for partition in self.partitions:
            partition.depose()


class ShareWorld(Run):
    """See the module."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Mode.KILLS)
        self._rng = rng = self.random_for("world")
        self.terms = Terms(rng.choice((2, 3, 5, 10)), rng.choice((10, 40, 200)), rng.choice((1.0, 4.0)))
        self.isolation_level = rng.choice((0, 1))
        self._begins_at_end = rng.random() < 0.3
        self.logs = [SimulatedLog(self.random_for(f"log {key.partition}")) for key in KEYS]
        self.coordinators = Coordinators(self)
        self.store = StoreTerms()
        self.models = {key: {FIRST_STATE_EPOCH: self._new_model(key)} for key in KEYS}
        """By state epoch."""
        self.life: Life | None = None
        self.nursery: trio.Nursery | None = None
        self.has_begun_anew = False
        """Whether a leader may be left that has not heard of the state of now."""

    def _new_model(self, key: SharePartitionKey) -> PartitionModel:
        return PartitionModel(
            self.logs[key.partition],
            self.terms.delivery_count_limit,
            self.terms.lock_seconds,
            is_committed=bool(self.isolation_level),
            violate=self._violator(key),
        )

    def _violator(self, key: SharePartitionKey) -> Any:
        return lambda what: self.violate(f"partition {key.partition}: {what}")

    async def start_of(self, group_id: str, partition: Any) -> GroupStart:
        await trio.lowlevel.checkpoint()
        log: SimulatedLog = partition.log
        if self._begins_at_end:
            return GroupStart(log.high_watermark, is_lasting=False)
        return GroupStart(log.log_start_offset, is_lasting=True)

    async def begin_anew(self, key: SharePartitionKey) -> None:
        """The group begins at an offset that an administrator has chosen; its members have left this leader."""
        life, models = self.life, self.models[key]
        assert life is not None
        for scope in life.requests:
            scope.cancel()
        state_epoch = max(models) + 1
        model = models[state_epoch] = self._new_model(key)
        log = self.logs[key.partition]
        model.begin = self._rng.randint(log.log_start_offset, log.last_stable_offset)
        self.log("admin", f"{key.partition}: begins anew at {model.begin}, state epoch {state_epoch}")
        try:
            await self.coordinators.initialize(key, state_epoch, model.begin)
        except KafkaError as error:
            self.log("admin", f"{key.partition}: {error}")
        self.has_begun_anew = True

    async def begin_life(self) -> Life:
        assert self.nursery is not None
        self.lives += 1
        life = self.life = Life(self, self.lives)
        self.nursery.start_soon(life.run)
        self.log("leader", f"life {life.number}")
        await trio.lowlevel.checkpoint()
        return life

    def is_current(self, life: Life, key: SharePartitionKey) -> bool:
        """Whether nobody has read the state since this leader did."""
        return self.store.leader_epochs.get(key) == life.number

    def check(self, life: Life) -> None:
        """The structure of the states in memory."""
        for led in life.led():
            why = self._unsound(led)
            if why:
                self.violate(f"partition {led.key.partition}: {why}")

    def _unsound(self, led: LedPartition) -> str:
        state = led.state
        expected = state.start_offset
        for batch in state.batches:
            for index, run in enumerate(batch.runs):
                if run.first_offset < expected or run.last_offset < run.first_offset:
                    return f"{run} follows {expected - 1}"
                if index and run.first_offset != expected:
                    return f"a batch has a gap before {run}"
                if (run.state == 1) != bool(run.member_id):
                    return f"{run} is acquired by nobody, or somebody's"
                expected = run.last_offset + 1
        if state.batches and expected != state.next_offset:
            return f"batches end before {expected}, and {state.next_offset} is next"
        if not state.batches and state.start_offset != state.next_offset:
            return f"nothing is in flight between {state.start_offset} and {state.next_offset}"
        if next_fetch_offset(state) < state.start_offset:
            return "records below the start offset are to be fetched"
        gone = sum(state.start_offset <= offset < state.next_offset for offset in self.logs[led.key.partition].gone)
        if state.in_flight - gone >= self.terms.max_record_locks + LARGEST_BATCH:
            return f"{state.in_flight} records are in flight"
        return ""
