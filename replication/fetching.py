"""Fetch processing: partitions are read within the limits, and the request waits while there is too little data.

Rules:

- A consumer reads up to the high watermark, or to the last stable offset when it wants committed records only; a follower up
  to the end of the log. Followers read from the leader only, as do consumers before version 11; later ones may read from a
  follower too, up to the watermark that it knows (KIP-392). What they ask for above its log's end is OFFSET_OUT_OF_RANGE, by
  which they go back to the leader; between its watermark and its end they wait.
- The leader answers a consumer that is to read elsewhere at once, with the replica's id and no records.
- Partitions are read in their order; at most ``max_bytes`` in all and each one's own limit, but the first batch found is
  returned whole even when it is larger (KIP-74). The results are slices of files, which the caller releases.
- With less than ``min_bytes`` there is a wait, unless a partition has an error, diverges (KIP-595) or filled its own
  limit; then what has changed is read once more. Unknown partitions, and those of which nothing may be read, do not end the wait
  of the others.
- A partition that was read to its end rests until it changes (``delayed_fetch``). Three do not: one of which the answer does not
  say the newest watermark, one whose follower is not in sync, and one that a consumer in a rack reads, because each fetch decides
  anew which replica serves it.
- That a follower asks for an offset proves that it has what is below. This is noted after its partition was read, so the
  answer has the high watermark from before; and only after the first reading, since the wait adds no knowledge
  (Partition.fetchRecords and ReplicaManager.readFromLog in Kafka). A fetch that fails or diverges proves nothing.
- A follower that is not in sync gets nothing of a throttled partition while the quota is exceeded (KIP-73); what is appended
  there does not end its wait. What a throttled follower gets counts, in sync or not.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError
from ..log.partition_log import PartitionLog
from ..log.segment import SegmentSlice
from ..log.transactional_reads import aborted_transactions
from ..wire.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from .delayed_fetch import DelayedFetch, FetchedPartition
from .isr import CommittedPartitionState
from .leader import FollowerProgress
from .metadata_cache import MetadataCache
from .partition import Partition
from .quotas import NO_LIMIT
from .read_replica import ConsumerRack
from .replica_manager import ReplicaManager

EMPTY = b""
UNKNOWN_PARTITION = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_NOT_LOOKED_AT = (*UNKNOWN_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
# Kafka's ReplicaManager.readFromLog counts other errors as failed fetches.
_EXPECTED = (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.KAFKA_STORAGE_ERROR)
_READ_BETWEEN_LOOKS = 32
_TURN_SECONDS = 0.003
"""After so long other connections have a turn: a fetch may name thousands of partitions. See handlers/produce."""


class FollowerId(NamedTuple):
    """The broker that replicates."""

    broker_id: int
    broker_epoch: int
    """-1: unknown."""


class FetchReads:
    """The results of reading the partitions of one fetch."""

    __slots__ = (
        "_by_id",
        "_elapsed",
        "_has_waited",
        "_is_over_quota",
        "_isolation_level",
        "_limit",
        "_metadata",
        "_now",
        "_or_follower",
        "_quota",
        "_rack",
        "_replicas",
        "_throttled_partitions",
        "enough",
        "failure",
        "follower",
        "may_read",
        "min_bytes",
        "news",
        "results",
        "total",
    )

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        news: DelayedFetch,
        by_id: bool,
        follower: FollowerId | None,
        min_bytes: int,
        max_bytes: int,
        or_follower: bool,
        rack: ConsumerRack | None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """``news`` are the partitions to read; ``by_id``: topics are found by their ids.

        ``follower`` is the broker that fetches, None for a consumer. ``or_follower``: a follower may serve this consumer;
        ``rack``: where the consumer is, to send it to a replica there. ``elapsed`` is a clock, for turns of other tasks.
        """
        self._replicas = replicas
        self._metadata = metadata
        self.news = news
        self._by_id = by_id
        self._isolation_level = int(news.read_committed)
        self.follower = follower
        self.may_read: Callable[[str], bool] | None = None
        """Whether the client may read a topic of that name; None: all."""
        self._limit = max_bytes
        self._or_follower = or_follower
        self._rack = rack
        self._elapsed = elapsed
        self._quota = replicas.quotas.leader
        self._is_over_quota = False
        self._throttled_partitions: set[Partition] | None = None
        self._has_waited = False
        self._now = news.fetched_at
        self.min_bytes = min(min_bytes, max_bytes)
        """Never more than ``max_bytes``."""
        self.results: dict[FetchedPartition, PartitionData] = {}
        """In the order of the reading."""
        self.total = 0
        self.enough = False
        self.failure: str | None = None
        """The reason of the last error of a partition."""

    async def wait_for_more(
        self, seconds: float, flush: Callable[[], Awaitable[None]], on_enough: Callable[[], None] | None = None
    ) -> None:
        """Wait for the bytes that are missing, then read what has changed, if ``read_early`` has not.

        ``flush`` is called before the wait, ``on_enough`` in the step that ends it before its time.
        """
        news = self.news
        news.expect(self.min_bytes - self.total, on_enough)
        self.release()
        held_back = self._throttled_partitions or ()
        for state in news.changed:
            if state.partition is not None and state.partition not in held_back:
                state.watch()
        await flush()
        await news.wait(seconds)
        if not self._has_waited:
            self._has_waited = True
            await self.read_all()

    def read_early(self) -> bool:
        """Read what has changed at once, though its task still waits; False where that may take long."""
        if self._has_waited or len(self.news.changed) >= _READ_BETWEEN_LOOKS:
            return False
        self._has_waited = True
        try:
            self.read_all().send(None)
        except StopIteration:
            return True
        raise AssertionError("so few partitions are read without a turn of other tasks")

    def release(self) -> None:
        """Release the slices that were read; the results that had none stay."""
        if self.total:
            for state, result in list(self.results.items()):
                if result.records:
                    result.records.release()  # type: ignore[union-attr]
                    del self.results[state]
            self.total = 0

    async def read_all(self) -> None:
        """Read each partition with news within the limits; ``enough`` when the answer needs no waiting."""
        self.enough = False
        if self.follower is not None:
            self._is_over_quota = self._quota.limit < NO_LIMIT and self._quota.is_exceeded(trio.current_time())
            self._throttled_partitions = None
        news = self.news
        # A new dictionary, because going through one costs what it has held, not what it holds.
        changed, news.changed = news.changed, {}
        while await self._read_these(changed):
            # What has changed during a turn of other tasks is not told again, so a wait would miss it.
            changed = {state: None for state in news.changed if state not in self.results}
        if self.total >= self.min_bytes:
            self.enough = True

    async def _read_these(self, changed: Iterable[FetchedPartition]) -> bool:
        """Read partitions in their order; returns whether other tasks have run meanwhile."""
        news, has_paused, turn_began = self.news, False, 0.0
        for count, state in enumerate(changed):
            if count % _READ_BETWEEN_LOOKS == _READ_BETWEEN_LOOKS - 1:
                now = self._elapsed()
                if turn_began and now - turn_began >= _TURN_SECONDS:
                    await trio.lowlevel.checkpoint()
                    has_paused, now = True, self._elapsed()
                    turn_began = now
                turn_began = turn_began or now
            assert state.parked_since < 0
            try:
                result, size = self._read(state, self._limit - self.total)
            except KafkaError as error:
                self._count_failure(state, error)
                state.clear_partition()
                self.failure = error.message or ""
                result = refused_partition(state.number, error)
                size = 0
                # The error of a partition that is not here does not make the answer urgent.
                self.enough |= error.code not in _NOT_LOOKED_AT
            if state.parked_since < 0:
                news.changed[state] = None
            self.results[state] = result
            self.total += size
        return has_paused

    def _read(self, state: FetchedPartition, remaining: int) -> tuple[PartitionData, int]:
        topic = state.topic
        if self._by_id:
            topic = self._metadata.topic_name(state.topic_id) or ""
            if not topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        if self.may_read is not None and not self.may_read(topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        partition = self._replicas.partition(topic, state.number)
        if self._by_id and partition.topic_id != state.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, "the log is of another topic of that name")
        partition.check_leader(state.current_leader_epoch, self._or_follower)
        if not self._has_waited:  # a request counts once, though what has changed is read a second time after its wait
            partition.counted_fetches += 1
        if self._rack is not None and (elsewhere := self._elsewhere(partition, state, self._rack)) is not None:
            self.enough = True
            return elsewhere, 0
        follower = None if self.follower is None else self._progress(partition, state, *self.follower)
        state.partition = partition
        log = partition.log
        if state.last_fetched_epoch >= 0 and (diverging := _divergence(log, state)) is not None:
            self.enough = True
            return self._result(partition, state, None, diverging), 0
        up_to = log.log_end_offset if follower is not None else partition.fetchable_end(self._isolation_level)
        records: SegmentSlice | None = None
        size = 0
        max_bytes = min(state.max_bytes, remaining)
        is_throttled = self._is_over_quota and self._throttle_follower(partition)
        if (max_bytes > 0 or self.total == 0) and not is_throttled:
            records = partition.read(state.fetch_offset, max(max_bytes, 0), up_to, at_least_one=self.total == 0)
            if records is not None:
                size = records.nbytes
                if size >= state.max_bytes:
                    self.enough = True
        elif not log.log_start_offset <= state.fetch_offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {state.fetch_offset} is not in the log")
        result = self._result(partition, state, records, None)
        # Once as well: the request says what the follower had when it came, not what it has after the wait.
        if follower is not None and self.follower is not None and not self._has_waited:
            epoch = self.follower.broker_epoch
            partition.fetched_by(
                follower, state.fetch_offset, state.log_start_offset, log.log_end_offset, epoch, self._now
            )
        if records is None and state.fetch_offset >= up_to and not is_throttled:
            self._park_if_unchanged(partition, state, follower, result)
        return result, size

    def _park_if_unchanged(
        self, partition: Partition, state: FetchedPartition, follower: FollowerProgress | None, result: PartitionData
    ) -> None:
        """Let a partition rest that was read to its end, where the next reading could only say the same."""
        # The preferred replica depends on the followers' progress, which is no change that is told. And the fetch itself may have
        # moved the high watermark (``fetched_by``) after the result was made, before anybody watched.
        if self._rack is not None or result.high_watermark != partition.log.high_watermark:
            return
        if follower is not None:
            assert partition.leader is not None
            isr = partition.leader.isr
            is_in_sync = isinstance(isr, CommittedPartitionState) and follower.broker_id in isr.isr
            if not is_in_sync or follower.log_end_offset != state.fetch_offset:
                return
        state.rest(follower)

    def _count_failure(self, state: FetchedPartition, error: KafkaError) -> None:
        if state.partition is not None and error.code not in _EXPECTED:
            state.partition.failed_fetch_requests += 1

    def _throttle_follower(self, partition: Partition) -> bool:
        """Whether the follower gets nothing now, because the partition is throttled and it is not in sync (shouldLeaderThrottle).

        Called while the quota is exceeded.
        """
        assert self.follower is not None
        broker_id = self.follower.broker_id
        throttled = partition.log.settings.throttled_on_leader
        if broker_id in partition.isr or (partition.log.partition, partition.broker_id) not in throttled:
            return False
        self._throttled_partitions = self._throttled_partitions or set()
        self._throttled_partitions.add(partition)
        return True

    def count_throttled(self, partition: Partition, size: int) -> None:
        """A follower is sent ``size`` bytes of a partition that has throttled replicas."""
        if (partition.log.partition, partition.broker_id) in partition.log.settings.throttled_on_leader:
            self._quota.record(size, self._now)

    def _elsewhere(self, partition: Partition, state: FetchedPartition, rack: ConsumerRack) -> PartitionData | None:
        """The answer to a consumer that is to read from another replica; None where it is to read here."""
        leader = partition.leader
        if leader is None or not leader.followers:
            return None
        preferred = rack.preferred_replica(partition.broker_id, leader, state.fetch_offset)
        if preferred is None:
            return None
        state.partition = partition
        result = self._result(partition, state, None, None)
        result.preferred_read_replica, result.aborted_transactions = preferred, None
        return result

    @staticmethod
    def _progress(partition: Partition, state: FetchedPartition, broker_id: int, broker_epoch: int) -> FollowerProgress:
        assert partition.leader is not None
        return partition.leader.follower(broker_id, broker_epoch, state.current_leader_epoch)

    def _result(
        self,
        partition: Partition,
        state: FetchedPartition,
        records: SegmentSlice | None,
        diverging: EpochEndOffset | None,
    ) -> PartitionData:
        log = partition.log
        result = PartitionData(
            partition_index=state.number,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=EMPTY if records is None else records,
        )
        if self._isolation_level and diverging is None:
            result.aborted_transactions = _aborted(log, state.fetch_offset, records)
        if diverging is not None:
            result.diverging_epoch = diverging
        return result


def _divergence(log: PartitionLog, state: FetchedPartition) -> EpochEndOffset | None:
    """Where the reader's log and this one part, if they do so before the offset it asks for; else None (KIP-595).

    Raises OFFSET_OUT_OF_RANGE where that is not known, or nothing of it is left here.
    """
    epochs = log.leader_epochs.epochs
    if (
        epochs
        and epochs[-1] == state.last_fetched_epoch
        and log.log_start_offset <= state.fetch_offset <= log.log_end_offset
    ):
        return None  # as nearly always
    epoch, end_offset = log.end_offset_for_epoch(state.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no epoch at or below {state.last_fetched_epoch}")
    if state.fetch_offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log begins at {log.log_start_offset}")
    if epoch < state.last_fetched_epoch or end_offset < state.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _aborted(log: PartitionLog, offset: int, records: SegmentSlice | None) -> list[AbortedTransaction]:
    """The aborted transactions a read_committed consumer is to leave out of ``records``."""
    if records is None:
        return []
    found = aborted_transactions(log, offset, records)
    return [AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset) for entry in found]


def refused_partition(number: int, error: KafkaError) -> PartitionData:
    """What is answered for a partition that cannot be read; the list of transactions is empty or null as in Kafka."""
    return PartitionData(
        partition_index=number,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if error.code in _NOT_LOOKED_AT else None,
        records=EMPTY,
    )
