"""One partition on this broker: its log, its role, its high watermark, and the requests that wait on it.

Invariants:

- A replica has one role at a time: ``leader`` holds what only a leader knows and is None on a follower. Every change of
  role comes from the controller with a higher leader epoch (``apply``), and ends the waits.
- ``log.high_watermark`` never goes back while this broker leads, and never passes the log's end; how far it goes is
  ``LeaderRole.committed_end``. A record that is to be flushed before it is acknowledged (``flush.messages``) counts here
  from its flush on.
- Only the leader appends for clients. A follower serves consumers up to the high watermark that it knows (KIP-392).
- Changing state is a plain function; only waiting is async.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_LEADER
from ..log.partition_log import AppendResult, PartitionLog
from ..log.segment import SegmentSlice
from ..metadata.types import PartitionRegistration
from ..wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ..wire.messages.write_txn_markers import WritableTxnMarker
from ..wire.records import RecordBatch
from .counters import ReplicationCounters
from .fetch_watches import FetchWatches
from .isr import CommittedPartitionState, PendingExpand, PendingIsr, PendingRecovery, PendingShrink
from .leader import FollowerProgress, LeaderRole
from .pending_visibility import UNKNOWN_SIZE, PendingVisibility, visible_between
from .waiters import OffsetWaiter, release, wait_in, wake_up_to

logger = logging.getLogger(__name__)

NO_EPOCH = -1
Records = memoryview | bytearray | bytes


class IsrChanges(Protocol):
    """Where a leader asks the controller for other in-sync replicas."""

    def submit(self, partition: Partition) -> None:
        """Have the change that ``partition.leader.isr`` is pending on sent; ``Partition`` is told the answer."""
        ...


class FollowerFetcher(Protocol):
    """What fetches a partition from its leader."""

    def bounds_changed(self, partition: Partition) -> None:
        """The partition's log starts or ends elsewhere."""
        ...


@dataclasses.dataclass(slots=True)
class PartitionDependencies:
    """What all partitions of a broker have in common."""

    broker_id: int
    is_alive: Callable[[int], bool]
    """Whether a broker, by its id, is in the cluster."""
    isr_changes: IsrChanges
    lag_seconds: float
    """``replica.lag.time.max.ms``, in seconds."""
    counters: ReplicationCounters = dataclasses.field(default_factory=ReplicationCounters)


class Partition:
    """A replica of one partition.

    The numbers of bytes, messages and requests are counted since this object was made. ``failed_…`` are requests that failed
    unexpectedly, by Kafka's rule (``ReplicaManager.appendToLocalLog`` and ``readFromLog``): a leader elsewhere, an offset out of
    range and too large a batch are expected.
    """

    __slots__ = (
        "_pending_visibility",
        "_surroundings",
        "adding",
        "broker_id",
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "coherent_from",
        "counted_fetches",
        "counters",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetcher",
        "fetches",
        "last_response_at",
        "leader",
        "leader_epoch",
        "leader_id",
        "log",
        "low_watermark_waiters",
        "messages_in",
        "offset_waiters",
        "partition_epoch",
        "produce_requests",
        "removing",
        "replicas",
        "topic",
        "topic_id",
    )

    def __init__(self, surroundings: PartitionDependencies, topic: str, topic_id: bytes, log: PartitionLog) -> None:
        self._surroundings = surroundings
        self.broker_id = surroundings.broker_id
        self.counters = surroundings.counters
        """Those of the broker."""
        self.topic = topic
        self.topic_id = topic_id
        self.log = log
        self.leader: LeaderRole | None = None
        """The role of this replica while it leads, else None."""
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.adding: tuple[int, ...] = ()
        self.removing: tuple[int, ...] = ()
        self.coherent_from = 0
        """Of a follower: the log from here on was fetched from the present leader, without a long pause."""
        self.last_response_at = 0.0
        """Of a follower: when the leader responded last, by ``trio.current_time``."""
        self.fetches = FetchWatches()
        """The fetches to notify of changes."""
        self.fetcher: FollowerFetcher | None = None
        """Fetches from the leader; None where nothing does."""
        self.offset_waiters: list[OffsetWaiter] = []
        self.low_watermark_waiters: list[OffsetWaiter] = []
        self.bytes_in = 0
        """Appended here as the leader, as ``messages_in``."""
        self.messages_in = 0
        self.bytes_out = 0
        """Fetched by consumers."""
        self.bytes_rejected = 0
        """In batches that were too large."""
        self.produce_requests = 0
        """Those that got as far as this partition."""
        self.counted_fetches = 0
        """``fetch_requests`` without those of sessions in which the partition is parked."""
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self._pending_visibility = PendingVisibility()
        log.listener = self

    @property
    def fetch_requests(self) -> int:
        return self.counted_fetches + sum(fetch.uncounted for fetch in self.fetches)

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas that the controller has confirmed; only the leader knows them."""
        return () if self.leader is None else self.leader.isr.isr

    @property
    def is_reassigning(self) -> bool:
        """Whether its replicas are being moved (KIP-455)."""
        return bool(self.adding or self.removing)

    @property
    def is_under_min_isr(self) -> bool:
        return self.leader is not None and self.leader.is_under_min_isr(self.log.settings.min_insync_replicas)

    @property
    def is_at_min_isr(self) -> bool:
        """Whether one in-sync replica less would be too few."""
        leader, wanted = self.leader, self.log.settings.min_insync_replicas
        return leader is not None and len(leader.isr.isr) == leader.min_in_sync(wanted)

    # --- roles --------------------------------------------------------------------------------------------------------

    def apply(self, registration: PartitionRegistration) -> bool:
        """Lead or follow from now on, or go on doing so in another state; returns whether there was an election.

        The caller has checked that the leader epoch is not below the one known. A state with a lower partition epoch is
        ignored: the response to AlterPartition, which also tells a leader of a change, may have come first.
        """
        assert registration.leader_epoch >= self.leader_epoch
        if registration.partition_epoch < self.partition_epoch:
            logger.debug("%s-%d: %s is past", self.topic, self.log.partition, registration)
            return False
        self.fetches.notify_all()
        is_elected = registration.leader_epoch > self.leader_epoch
        former_leader, self.leader_id = self.leader_id, registration.leader
        self.leader_epoch = registration.leader_epoch
        self.partition_epoch = registration.partition_epoch
        self.replicas = registration.replicas
        self.adding, self.removing = registration.adding, registration.removing
        if registration.leader == self.broker_id:
            self._lead(registration, is_elected, former_leader)
        else:
            self._follow(is_elected)
        return is_elected

    def _lead(self, registration: PartitionRegistration, is_elected: bool, former_leader: int) -> None:
        log, leader, now = self.log, self.leader, trio.current_time()
        if leader is None:
            is_elected = True
            surroundings = self._surroundings
            leader = self.leader = LeaderRole(self.broker_id, surroundings.is_alive, surroundings.lag_seconds)
            # What is above the high watermark was appended as a follower or before a restart, and nobody has counted it.
            self._pending_visibility.size = 0 if log.high_watermark == log.log_end_offset else UNKNOWN_SIZE
        leader.assign(registration.replicas, registration.isr, now, former_leader)
        if is_elected:
            # Although nothing is written under it yet: followers may ask where the epoch before it ended (KIP-101).
            log.become_leader(registration.leader_epoch)
            leader.begin_epoch(log.log_end_offset, now)
            self.fetches.end()  # those that name the epoch before are fenced
        if registration.is_recovering:
            self._propose(leader, PendingRecovery(registration.isr))
        # The new state may have fewer replicas to wait for: one that is no longer assigned holds up neither watermark.
        self._advance_high_watermark(0)
        self._wake_low_watermark_waiters()

    def _follow(self, is_elected: bool) -> None:
        if self.leader is not None or is_elected:
            self.leader = None
            self._pending_visibility.stable_end = -1
            self.release_waiters()

    def stop(self) -> None:
        """This broker no longer has the replica, or is to leave it alone; the epochs stay known."""
        self.leader_id = NO_LEADER
        self._follow(True)

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with another log, which has the same records; waiting requests notice nothing."""
        self.log = log
        log.listener = self
        self.fetches.notify_all()

    def release_waiters(self) -> None:
        """End all waits here, so that their requests find out what has changed."""
        self.fetches.end()
        release(self.offset_waiters)
        release(self.low_watermark_waiters)

    def check_leader(self, current_leader_epoch: int = NO_EPOCH, or_follower: bool = False) -> None:
        """Raises NOT_LEADER_OR_FOLLOWER; FENCED_ or UNKNOWN_LEADER_EPOCH when the client's epoch differs (KIP-320).

        ``or_follower``: a follower will do, under the same epoch.
        """
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, not {current_leader_epoch}")
        if self.leader is None and not or_follower:
            raise self._not_leader()

    def _not_leader(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self.leader_id} leads")

    # --- appending ----------------------------------------------------------------------------------------------------

    def append(
        self,
        records: Records,
        now_ms: int,
        *,
        acks: int = -1,
        internal: bool = False,
        prepared: RecordBatch | None = None,
    ) -> AppendResult:
        """Append one batch as the leader; ``prepared`` is what ``PartitionLog.prepare`` made of it, where that was needed.

        Raises KafkaError: not leader, NOT_ENOUGH_REPLICAS with acks=-1 below min.insync.replicas, and whatever is
        wrong with the batch. Raises LargeBatchError for a batch that is to be prepared first.
        """
        leader = self.leader
        if leader is None:
            raise self._not_leader()
        if acks == -1 and leader.followers:  # a lone replica is always enough: see ``min_in_sync``
            self._check_in_sync(leader)
        if prepared is None:
            result = self.log.append_as_leader(records, self.leader_epoch, now_ms, internal=internal)
        else:
            result = self.log.append_prepared(prepared, self.leader_epoch, now_ms)
        if not result.is_duplicate:
            size = len(records)
            self.bytes_in += size
            self.messages_in += result.last_offset - result.first_offset + 1
            self._advance_high_watermark(size)
        return result

    def _check_in_sync(self, leader: LeaderRole) -> None:
        wanted = self.log.settings.min_insync_replicas
        if leader.is_under_min_isr(wanted):
            in_sync, needed = len(leader.isr.isr), leader.min_in_sync(wanted)
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{in_sync} in sync, where {needed} must be")

    def append_end_marker(self, marker: WritableTxnMarker, now_ms: int) -> int:
        """End a producer's transaction here; the offset after the marker.

        Raises KafkaError: not leader, NOT_ENOUGH_REPLICAS, or why the log refuses the marker.
        """
        leader = self.leader
        if leader is None:
            raise self._not_leader()
        self._check_in_sync(leader)
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

    # --- the high watermark -------------------------------------------------------------------------------------------

    def flushed(self) -> None:
        """Records that waited for their flush may be committed now."""
        if self.leader is not None:
            self._advance_high_watermark(0)

    def bounds_changed(self) -> None:
        """The log starts or ends elsewhere."""
        self.fetches.notify_all()
        if self.fetcher is not None:
            self.fetcher.bounds_changed(self)

    def _advance_high_watermark(self, appended: int) -> None:
        """Move the high watermark as far as the replicas allow, and wake what waits for it.

        ``appended`` bytes came with this change; they become visible when the watermark has passed them.
        """
        leader, log, unannounced, fetches = self.leader, self.log, self._pending_visibility, self.fetches
        assert leader is not None
        if appended:
            if unannounced.size != UNKNOWN_SIZE:
                unannounced.size += appended
            # Followers read up to the log's end, and the high watermark waits for them; so they are told first, in any case.
            if fetches.followers:
                fetches.notify_followers(appended)
        before, end_offset = log.high_watermark, log.safe_end_offset
        if end_offset < log.log_end_offset:
            log.request_flush()
        if leader.followers:
            if leader.is_under_min_isr(log.settings.min_insync_replicas):
                return
            end_offset = leader.committed_end(end_offset, log.log_end_offset, trio.current_time)
        if before >= end_offset:
            return
        log.high_watermark = end_offset
        visible, is_at_end = unannounced.size, end_offset == log.log_end_offset
        # Only a sum of bytes is kept, not where each batch ends. When a part of them becomes visible, how many bytes are left is
        # unknown until the watermark reaches the end. A size is looked up in the log only for a fetch that waits.
        unannounced.size = 0 if is_at_end else UNKNOWN_SIZE
        is_wanted = bool(fetches.consumers) and fetches.is_size_wanted
        if is_wanted and (visible == UNKNOWN_SIZE or not is_at_end):
            visible = visible_between(log, before, end_offset)
        stable = visible
        if log.producer_state.ongoing or unannounced.stable_end >= 0:
            stable = unannounced.newly_stable(log, before, is_wanted=is_wanted)
        if fetches.consumers:
            fetches.notify_consumers(visible, stable)
        if fetches.followers:
            fetches.notify_followers(0)  # the high watermark is part of the response to a follower
        if self.offset_waiters:
            wake_up_to(end_offset, self.offset_waiters)

    async def wait_for_high_watermark(
        self,
        offset: int,
        timeout: float = math.inf,
        *,
        role: LeaderRole | None = None,
        on_reached: Callable[[], None] | None = None,
    ) -> None:
        """Return once everything below ``offset`` is committed; ``timeout`` in seconds. ``on_reached`` as in ``wait_in``.

        ``role`` is what ``leader`` was when the records were appended, for a caller that has waited for something else since:
        another leader may have put other records at these offsets. Raises REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER when
        leadership was lost since the append; and NOT_ENOUGH_REPLICAS_AFTER_APPEND when by then fewer replicas than
        ``min.insync.replicas`` are in sync.
        """
        if self.leader is None or role not in (None, self.leader):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"leadership was lost before offset {offset} was reached"
            )
        if self.log.high_watermark < offset:
            await wait_in(self.offset_waiters, offset, timeout, on_reached)
        # The ISR may have shrunk since the append was let in (Kafka: ``Partition.checkEnoughReplicasReachOffset``).
        leader, wanted = self.leader, self.log.settings.min_insync_replicas
        if leader is not None and leader.lacks_replicas(wanted):
            why = f"{len(leader.isr.maximal_isr)} in sync, where {leader.min_in_sync(wanted)} must be; the records are written"
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, why)

    def has_committed(self, offset: int, role: LeaderRole | None) -> bool:
        """Whether ``wait_for_high_watermark`` with the same arguments would return at once, and raise nothing."""
        leader = self.leader
        return (
            leader is not None
            and leader is role
            and self.log.high_watermark >= offset
            and not leader.lacks_replicas(self.log.settings.min_insync_replicas)
        )

    # --- followers ----------------------------------------------------------------------------------------------------

    def fetched_by(
        self, follower: FollowerProgress, offset: int, log_start: int, log_end: int, epoch: int, now: float
    ) -> None:
        """A follower of the broker epoch ``epoch`` has fetched at ``offset`` when the log ended at ``log_end``.

        ``log_start`` is where its own log starts, ``now`` trio's time.
        """
        leader = self.leader
        assert leader is not None
        end_before = follower.log_end_offset
        follower.fetched(offset, log_start, log_end, now, epoch)
        self._wake_low_watermark_waiters()
        # Before the watermark moves: a replica that joins counts for it from the proposal on, as the controller may elect it.
        expansion = leader.expansion(follower, self.log.high_watermark)
        if expansion is not None:
            self._propose(leader, expansion)
        if offset != end_before:
            self._advance_high_watermark(0)

    def check_followers(self) -> None:
        """Drop followers that have fallen behind from the in-sync replicas; called twice per ``replica.lag.time.max.ms``."""
        leader = self.leader
        if leader is None or not leader.followers:
            return
        shrinkage = leader.shrinkage(self.log.log_end_offset, trio.current_time())
        if shrinkage is not None:
            self._propose(leader, shrinkage)
        self._advance_high_watermark(0)  # may have been held up by a follower that was about to join
        self._wake_low_watermark_waiters()

    @property
    def low_watermark(self) -> int:
        """The offset below which no live replica has records, as the leader knows it. Raises NOT_LEADER_OR_FOLLOWER."""
        if self.leader is None:
            raise self._not_leader()
        return self.leader.low_watermark(self.log.log_start_offset)

    async def wait_for_low_watermark(self, offset: int, timeout: float) -> None:
        """Return once no live replica has records below ``offset``; ``timeout`` in seconds.

        Raises REQUEST_TIMED_OUT, or NOT_LEADER_OR_FOLLOWER when leadership is lost meanwhile.
        """
        if self.low_watermark < offset:
            await wait_in(self.low_watermark_waiters, offset, timeout)

    def _wake_low_watermark_waiters(self) -> None:
        if self.low_watermark_waiters:
            wake_up_to(self.low_watermark, self.low_watermark_waiters)

    # --- changes of the in-sync replicas ------------------------------------------------------------------------------

    def _propose(self, leader: LeaderRole, change: PendingIsr) -> None:
        name = f"{self.topic}-{self.log.partition}"
        logger.debug("%s: in sync are %s, to be %s", name, list(change.isr), list(change.proposed))
        leader.isr = change
        self._surroundings.isr_changes.submit(self)

    def isr_changed(self, change: PendingIsr, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> None:
        """The controller's response to ``change``: these are in sync, under these epochs.

        Ignored when another state has come meanwhile. The partition epoch is the known one if the controller had these in-sync
        replicas already.
        """
        leader = self.leader
        if leader is None or leader.isr is not change:
            return
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            self.counters.failed_isr_updates += 1
            return
        self.counters.isr_expands += isinstance(change, PendingExpand)
        self.counters.isr_shrinks += isinstance(change, PendingShrink)
        self.partition_epoch = partition_epoch
        leader.isr = CommittedPartitionState(isr)
        self.fetches.notify_all()
        self._advance_high_watermark(0)

    def isr_refused(self, change: PendingIsr) -> None:
        """The controller has not done what ``change`` asks for, and never will: the state before it holds."""
        if self.leader is not None:
            self.leader.refused(change, trio.current_time())
            self._advance_high_watermark(0)

    # --- reading ------------------------------------------------------------------------------------------------------

    def fetchable_end(self, isolation_level: int) -> int:
        """The offset up to which a consumer reads: the high watermark, or the last stable offset (isolation 1)."""
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> SegmentSlice | None:
        """Whole batches from the one that holds ``offset`` on; see PartitionLog.read."""
        return self.log.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
