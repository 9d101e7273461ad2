"""One partition on this broker: its log, its leadership, its high watermark, and those who wait on it.

Invariants:

- ``log.high_watermark`` never goes back while this broker leads, and never passes the log's end. It is the lowest log
  end of the in-sync replicas; with this broker as the only one, its own. A record that is to be flushed before it is
  acknowledged (``flush.messages``) counts from its flush on.
- Only the leader appends for clients and serves reads. Every change of leadership comes from the controller with a
  higher leader epoch, and answers those who wait.
- Changing state is a plain function; only waiting is async.
"""

from __future__ import annotations

import math

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_LEADER
from ..log.partition_log import AppendResult, PartitionLog
from ..log.segment import SegmentSlice
from ..log.transactional_reads import bytes_between
from ..wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ..wire.messages.write_txn_markers import WritableTxnMarker
from .waiters import FetchWaiter, OffsetWaiter

NO_EPOCH = -1


class Partition:
    """A replica of one partition; the leader when ``is_leader``.

    ``bytes_in`` and ``messages_in`` were appended here as the leader, ``bytes_out`` were fetched, since it came.
    """

    __slots__ = (
        "_announced_size",
        "_stable_end",
        "broker_id",
        "bytes_in",
        "bytes_out",
        "fetch_waiters",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "messages_in",
        "offset_waiters",
        "partition_epoch",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(self, broker_id: int, topic: str, topic_id: bytes, log: PartitionLog) -> None:
        self.broker_id = broker_id
        self.topic = topic
        self.topic_id = topic_id
        self.log = log
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: list[int] = []
        self.replicas: list[int] = []
        self.fetch_waiters: set[FetchWaiter] = set()
        self.offset_waiters: list[OffsetWaiter] = []
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self._announced_size = 0
        self._stable_end = -1
        log.on_flush = self._flushed

    def become_leader(self, leader_epoch: int, partition_epoch: int, isr: list[int], replicas: list[int]) -> None:
        """Lead from now on, or go on leading with another ISR."""
        self.is_leader = True
        self.leader_id = self.broker_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = isr
        self.replicas = replicas
        self.log.become_leader(leader_epoch)
        self._advance_high_watermark(0)

    def become_follower(self, leader_id: int, leader_epoch: int, partition_epoch: int, replicas: list[int]) -> None:
        """Somebody else leads (-1: nobody)."""
        self.is_leader = False
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = []
        self.replicas = replicas
        self._stable_end = -1
        self.release_waiters()

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with another log, which has the same records; nobody who waits notices."""
        self.log = log

    def release_waiters(self) -> None:
        """Let everyone who waits here find out what changed."""
        for fetch_waiter in list(self.fetch_waiters):
            fetch_waiter.disturb()
        for offset_waiter in self.offset_waiters:
            offset_waiter.event.set()
        self.offset_waiters = []

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Raises NOT_LEADER_OR_FOLLOWER; FENCED_ or UNKNOWN_LEADER_EPOCH when the client's epoch differs (KIP-320)."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, not {current_leader_epoch}")
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")

    def append(
        self, records: memoryview | bytearray | bytes, now_ms: int, *, acks: int = -1, internal: bool = False
    ) -> AppendResult:
        """Append one batch as the leader.

        Raises KafkaError: not leader, NOT_ENOUGH_REPLICAS with acks=-1 below min.insync.replicas, and whatever is
        wrong with the batch.
        """
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")
        log = self.log
        if acks == -1 and not internal:
            # More in-sync replicas than there are replicas cannot be asked for (KAFKA-15583).
            needed = min(log.settings.min_insync_replicas, len(self.replicas))
            if len(self.isr) < needed:
                raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{len(self.isr)} in sync, where {needed} must be")
        result = log.append_as_leader(records, self.leader_epoch, now_ms, internal=internal)
        if not result.is_duplicate:
            size = len(records)
            self.bytes_in += size
            self.messages_in += result.last_offset - result.first_offset + 1
            self._advance_high_watermark(size)
        return result

    def append_end_marker(self, marker: WritableTxnMarker, now_ms: int) -> int:
        """End a producer's transaction here; the offset after the marker.

        Raises KafkaError: not leader, or why the log refuses the marker.
        """
        self.check_leader()
        log = self.log
        size = log.size
        kind = ControlRecordType.COMMIT if marker.transaction_result else ControlRecordType.ABORT
        batch = build_end_marker_batch(
            EndTransactionMarker(kind, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=now_ms,
        )
        result = log.append_end_marker(batch, self.leader_epoch, now_ms, marker.transaction_version)
        self._advance_high_watermark(log.size - size)
        return result.last_offset + 1

    def _flushed(self) -> None:
        """Records that waited for their flush may be committed now."""
        if self.is_leader:
            self._advance_high_watermark(0)

    def _advance_high_watermark(self, appended: int) -> None:
        """Move the high watermark as far as the in-sync replicas allow, and tell those who wait.

        ``appended`` bytes came with this change; they become visible when the watermark has passed them.
        """
        self._announced_size += appended
        if len(self.isr) > 1:
            return
        log = self.log
        before, end_offset = log.high_watermark, log.safe_end_offset
        if end_offset < log.log_end_offset:
            log.request_flush()
        if before >= end_offset:
            return
        log.high_watermark = end_offset
        if end_offset == log.log_end_offset:
            visible, self._announced_size = self._announced_size, 0
        else:
            visible = bytes_between(log, before, end_offset)
            self._announced_size -= visible
        stable = visible
        if log.producer_state.ongoing or self._stable_end >= 0:
            stable = self._newly_stable(before)
        if self.fetch_waiters:
            for waiter in list(self.fetch_waiters):
                waiter.visible(stable if waiter.read_committed else visible)
        if self.offset_waiters:
            self._wake_offset_waiters()

    def _newly_stable(self, high_watermark_before: int) -> int:
        """How many bytes came before the last stable offset by this change; there are, or were, open transactions.

        ``_stable_end`` is where that offset stands while it is below the high watermark, else -1.
        """
        log = self.log
        start = self._stable_end if self._stable_end >= 0 else high_watermark_before
        end = log.last_stable_offset
        self._stable_end = -1 if end == log.high_watermark else end
        return bytes_between(log, start, end) if end > start else 0

    def _wake_offset_waiters(self) -> None:
        reached = self.log.high_watermark
        still = []
        for waiter in self.offset_waiters:
            if waiter.offset <= reached:
                waiter.event.set()
            else:
                still.append(waiter)
        self.offset_waiters = still

    async def wait_for_high_watermark(self, offset: int, timeout: float = math.inf) -> None:
        """Return once everything below ``offset`` is committed; ``timeout`` in seconds.

        Raises REQUEST_TIMED_OUT, or NOT_LEADER_OR_FOLLOWER when leadership is lost meanwhile.
        """
        if self.log.high_watermark >= offset:
            return
        epoch = self.leader_epoch
        waiter = OffsetWaiter(offset)
        self.offset_waiters.append(waiter)
        with trio.move_on_after(max(timeout, 0)) as scope:
            try:
                await waiter.event.wait()
            finally:
                if waiter in self.offset_waiters:
                    self.offset_waiters.remove(waiter)
        if self.is_leader and self.leader_epoch == epoch and self.log.high_watermark >= offset:
            return
        if scope.cancelled_caught:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"offset {offset} is not committed yet")
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "leadership was lost before the records were committed")

    def fetchable_end(self, isolation_level: int) -> int:
        """The offset up to which a consumer reads: the high watermark, or the last stable offset (isolation 1)."""
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> SegmentSlice | None:
        """Whole batches from the one that holds ``offset`` on; see PartitionLog.read."""
        return self.log.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
