"""Three replicas under leader changes, kills, lost and late answers: their logs become the same, and lose nothing committed.

Followers are the real ones, on real logs. The controller and the leader's part are played here by Kafka's rules in their
shortest form: leaders are elected from the in-sync replicas, each under a higher epoch; what every one of those has fetched
is committed; a replica joins them when it has all that is committed and the begin of the leader's epoch.
"""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.log.memory_disk import MemoryDisk
from ottla.log.partition_log import PartitionLog
from ottla.replication.follower import (
    FollowerAction,
    Position,
    begin_following,
    position_of,
    process_partition_data,
    reset_to_leader,
)
from ottla.wire.messages.fetch import EpochEndOffset, PartitionData

from .helpers.followers import Replicas, batch, follower_world, records
from .helpers.replicas import ME, NOW_MS, OTHER


class Replica:
    """One broker with the partition."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.world: Replicas
        self.held: tuple[Position, PartitionData] | None = None

    async def start(self) -> None:
        self.world = await follower_world(self.disk, segment_bytes=400, index_interval_bytes=100, retention_ms=-1)

    async def kill(self) -> None:
        self.world.kill()
        self.held = None
        await self.start()

    def lead(self, epoch: int) -> None:
        self.world.lead(ME, epoch)

    def follow(self, epoch: int) -> None:
        begin_following(self.world.lead(OTHER, epoch))

    @property
    def partition(self) -> Any:
        return self.world.manager.partition("t", 0)

    @property
    def log(self) -> PartitionLog:
        log: PartitionLog = self.partition.log
        return log


class Cluster:
    def __init__(self) -> None:
        self.replicas = [Replica() for _ in range(3)]
        self.isr = {0, 1, 2}
        self.leader = 0
        self.epoch = 0
        self.epoch_start = 0
        self.ends: dict[int, int] = {}
        self.committed: dict[int, str] = {}
        self.count = 0

    async def start(self) -> None:
        for replica in self.replicas:
            await replica.start()
        self.elect(0)

    @property
    def leading(self) -> PartitionLog:
        return self.replicas[self.leader].log

    # --- what happens -------------------------------------------------------------------------------------------------

    def elect(self, leader: int) -> None:
        if leader not in self.isr:
            return
        self.leader, self.epoch = leader, self.epoch + 1
        for number, replica in enumerate(self.replicas):
            if number == leader:
                replica.lead(self.epoch)
            else:
                replica.follow(self.epoch)
        self.epoch_start = self.leading.log_end_offset
        self.ends = dict.fromkeys(range(3), -1)
        self.check()

    def append(self, size: int) -> None:
        values = [f"{self.count}.{number}" for number in range(size)]
        self.count += 1
        self.leading.append_as_leader(bytearray(batch(0, *values, timestamp=NOW_MS)), self.epoch, NOW_MS)
        self.commit()

    def commit(self) -> None:
        others = [self.ends[number] for number in self.isr if number != self.leader]
        high_watermark = min([self.leading.log_end_offset, *others])
        if high_watermark > self.leading.high_watermark:
            self.leading.high_watermark = high_watermark
            known = records(self.leading)
            for offset in range(self.leading.log_start_offset, high_watermark):
                assert self.committed.setdefault(offset, known[offset]) == known[offset]

    def shrink(self, number: int) -> None:
        if number != self.leader:
            self.isr.discard(number)
            self.commit()

    async def kill(self, number: int) -> None:
        """The broker starts again at once; the controller has noticed."""
        await self.replicas[number].kill()
        if len(self.isr) > 1:
            self.isr.discard(number)
        self.elect(self.leader if self.leader in self.isr else min(self.isr))

    def delete_records(self, share: float) -> None:
        log = self.leading
        log.delete_records_before(int(log.high_watermark * share))

    # --- fetching -----------------------------------------------------------------------------------------------------

    def fetch(self, number: int, size: int) -> None:
        if number != self.leader:
            asked, answer = self.ask(number, size)
            self.take(number, asked, answer)

    def hold(self, number: int, size: int) -> None:
        """The answer is on its way until ``deliver``."""
        if number != self.leader:
            self.replicas[number].held = self.ask(number, size)

    def deliver(self, number: int) -> None:
        held, self.replicas[number].held = self.replicas[number].held, None
        if held is not None and number != self.leader:
            self.take(number, *held)

    def ask(self, number: int, size: int) -> tuple[Position, PartitionData]:
        asked = position_of(self.replicas[number].partition)
        return asked, self.answer(number, asked, size)

    def answer(self, number: int, asked: Position, size: int) -> PartitionData:
        log = self.leading
        answer = PartitionData(partition_index=0, error_code=0, high_watermark=-1, records=b"")
        epoch, end = log.end_offset_for_epoch(asked.last_fetched_epoch)
        if asked.last_fetched_epoch >= 0 and end >= 0 and (epoch < asked.last_fetched_epoch or end < asked.offset):
            answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
        elif not log.log_start_offset <= asked.offset <= log.log_end_offset:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            self.fetched(number, asked.offset)
            piece = log.read(asked.offset, size, up_to=log.log_end_offset, at_least_one=True)
            if piece is not None:
                answer.records = piece.read()
                piece.release()
        answer.high_watermark, answer.log_start_offset = log.high_watermark, log.log_start_offset
        return answer

    def fetched(self, number: int, offset: int) -> None:
        self.ends[number] = offset
        if offset >= max(self.leading.high_watermark, self.epoch_start):
            self.isr.add(number)
        self.commit()

    def take(self, number: int, asked: Position, answer: PartitionData) -> None:
        partition = self.replicas[number].partition
        outcome = process_partition_data(partition, asked, answer)
        assert outcome is not FollowerAction.STOP
        if outcome is FollowerAction.RESET:
            reset_to_leader(partition, self.leading.log_start_offset, self.leading.log_end_offset)

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """The leader has all that was ever committed, except for what was deleted."""
        known = records(self.leading)
        for offset, value in self.committed.items():
            if offset >= self.leading.log_start_offset:
                assert known.get(offset) == value

    def check_offsets(self) -> None:
        for replica in self.replicas:
            assert replica.log.log_start_offset <= replica.log.high_watermark <= replica.log.log_end_offset

    def converge(self) -> None:
        for _ in range(100):
            for number in range(3):
                self.fetch(number, 1 << 20)
        leading = self.leading
        assert leading.high_watermark == leading.log_end_offset
        start = max(
            replica.log.log_start_offset for replica in self.replicas
        )  # a kill takes back the begin of deletions
        expected = [entry for entry in told(leading) if entry[0] >= start]
        for replica in self.replicas:
            assert [entry for entry in told(replica.log) if entry[0] >= start] == expected
            assert replica.log.high_watermark == leading.high_watermark
        self.check()


def told(log: PartitionLog) -> list[tuple[int, str, int]]:
    """Offset, value and leader epoch of each record."""
    return [(offset, value, log.epoch_for_offset(offset)) for offset, value in records(log).items()]


NUMBER = st.integers(0, 2)
SIZE = st.sampled_from([1, 100, 250, 1 << 20])
STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3)),
    st.tuples(st.just("fetch"), NUMBER, SIZE),
    st.tuples(st.just("fetch"), NUMBER, SIZE),
    st.tuples(st.just("hold"), NUMBER, SIZE),
    st.tuples(st.just("deliver"), NUMBER),
    st.tuples(st.just("elect"), NUMBER),
    st.tuples(st.just("shrink"), NUMBER),
    st.tuples(st.just("kill"), NUMBER),
    st.tuples(st.just("delete_records"), st.floats(0, 1)),
)


LATE_DIVERGENCE = [
    *[("elect", 1), ("append", 1)],
    *[("elect", 0), ("append", 1), ("elect", 1), ("fetch", 2, 1)],  # 1 and 2 have a record that 0 lacks
    *[("elect", 0), ("hold", 2, 1)],  # which says so, and is late
    *[("elect", 1), ("shrink", 0), ("fetch", 2, 1)],  # they commit it
    *[("deliver", 2), ("kill", 1)],
]
"""An old leader's answer would take from a follower what is committed (KAFKA-18991)."""

LATE_RECORDS = [("append", 1), ("append", 1), ("hold", 1, 1 << 20), ("fetch", 1, 1), ("deliver", 1)]

EPOCHS_BETWEEN = [
    *[("append", 1), ("fetch", 1, 1), ("fetch", 2, 1)],
    *[("elect", 1), ("append", 3), ("append", 3), ("elect", 2), ("append", 1), ("elect", 1)],
]
"""The leader's epoch is one that the follower has no record of, between two that it has."""

SHORTER_EPOCH = [
    *[("append", 1), ("fetch", 1, 1), ("elect", 1), ("append", 1), ("elect", 2), ("append", 2), ("append", 2)],
    *[("elect", 0), ("append", 2), ("append", 2), ("elect", 1)],
]


START_IN_A_BATCH = [("append", 1), ("shrink", 1), ("kill", 0), ("append", 2), ("delete_records", 0.5)]
"""Of the batch that took the place of a follower's last record, the begin is deleted."""


@given(st.lists(STEP, min_size=5, max_size=80))
@example(LATE_DIVERGENCE)
@example(LATE_RECORDS)
@example(EPOCHS_BETWEEN)
@example(SHORTER_EPOCH)
@example(START_IN_A_BATCH)
@settings(max_examples=200, deadline=None)
def test_replicas_converge_and_lose_nothing_committed(steps: list[tuple[Any, ...]]) -> None:
    async def play() -> None:
        cluster = Cluster()
        await cluster.start()
        for name, *arguments in steps:
            done = getattr(cluster, name)(*arguments)
            if done is not None:
                await done
            cluster.check_offsets()
        cluster.converge()

    trio.run(play)
