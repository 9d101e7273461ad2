"""A leader's state of its followers, which determines the high watermark and the in-sync replicas.

Nothing here waits or sends; ``Partition`` does that. Times are seconds of ``trio.current_time``, which never go back. All
rules are those of Kafka's Partition and Replica:

- A follower that fetches at offset X has everything below X: X is its ``log_end_offset`` here.
- A follower is *caught up* while the last moment at which it had all that the leader had is not longer ago than
  ``replica.lag.time.max.ms``. A follower of a busy leader never fetches at the leader's end; so it also counts if it now
  fetches at what was the leader's end at its fetch before: then it had everything at the time of that one.
- It *may join* the in-sync replicas when it has all that is committed and all that the leader had when it was elected. The
  latter, because the records above the leader's high watermark may have been acknowledged by the leader before it.
- The high watermark is the lowest end of those that are, or may be, in sync (``isr``), and of those that are caught up and
  about to join; else it would run away from a follower that is always a little behind. It stays where it is while fewer
  than ``min.insync.replicas`` are in sync (KIP-966, since Kafka 3.7), or than there are replicas.
- When the controller refuses to take a follower in, it is asked again after half a second, then after a second, and so on up
  to half a minute, because its broker may be slow to stop. Meanwhile the high watermark does not wait for it. Kafka asks at
  every fetch, and waits. A follower that the controller itself has taken out counts as refused once: its broker is about to
  stop (``ottla cluster drain``), or was down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_BROKER_EPOCH
from .isr import CommittedPartitionState, IsrState, PendingExpand, PendingIsr, PendingShrink

UNKNOWN_OFFSET = -1
LONG_AGO = -math.inf

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0


class FollowerSession(Protocol):
    """The fetch session of a follower."""

    fetched_at: float
    """The time of its last fetch."""


class FollowerProgress:
    """One follower, as its fetches show it. Its offsets are unknown (-1) until it has fetched from this leader."""

    __slots__ = (
        "_caught_up_at",
        "_fetched_at",
        "_leader_end_at_last_fetch",
        "_not_proposed_until",
        "_parked_in",
        "_pause",
        "broker_epoch",
        "broker_id",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NO_BROKER_EPOCH
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self._caught_up_at = LONG_AGO
        self._fetched_at = LONG_AGO
        # While the follower rests at the leader's end its fetches do not come here: the session has the time of the last one.
        self._parked_in: FollowerSession | None = None
        self._leader_end_at_last_fetch = UNKNOWN_OFFSET
        self._not_proposed_until = LONG_AGO
        self._pause = _FIRST_PAUSE_SECONDS

    def begin_epoch(self, leader_end: int, now: float, *, is_in_sync: bool) -> None:
        """The leader was elected, or elected again.

        A follower in sync has the whole ``replica.lag.time.max.ms`` to show that it still is; another one must not hold up the
        high watermark, nor count as caught up because of a fetch in the epoch before.
        """
        self._parked_in = None
        self._caught_up_at = self._fetched_at = now if is_in_sync else LONG_AGO
        self._leader_end_at_last_fetch = leader_end

    def fetched(self, offset: int, log_start: int, leader_end: int, now: float, broker_epoch: int) -> None:
        """It has asked for ``offset`` when the leader's log ended at ``leader_end``."""
        self.settle()
        if offset >= leader_end:
            self._caught_up_at = max(self._caught_up_at, now)
        elif offset >= self._leader_end_at_last_fetch:
            self._caught_up_at = max(self._caught_up_at, self._fetched_at)
        self.log_end_offset = offset
        self.log_start_offset = log_start
        if broker_epoch != self.broker_epoch:
            if self.broker_epoch != NO_BROKER_EPOCH:
                self.reset_refusals()  # its broker was restarted, so it is no longer the one that was about to stop
            self.broker_epoch = broker_epoch
        self._leader_end_at_last_fetch = max(self._leader_end_at_last_fetch, leader_end)
        self._fetched_at = now

    def park_in(self, session: FollowerSession) -> None:
        """It has all that the leader has, and is in sync: from now on each fetch of its session is one at the leader's end."""
        self.settle()
        self._parked_in = session

    def settle(self) -> None:
        """Its next fetch is noted by itself: the leader's log is about to change, or has just changed, or it left the session."""
        session = self._parked_in
        if session is not None:
            self._parked_in = None
            self._caught_up_at = self._fetched_at = max(self._fetched_at, session.fetched_at)

    @property
    def last_caught_up(self) -> float:
        """The last time at which it had all that the leader had."""
        session = self._parked_in
        return self._caught_up_at if session is None else max(self._caught_up_at, session.fetched_at)

    @property
    def last_fetch(self) -> float:
        session = self._parked_in
        return self._fetched_at if session is None else max(self._fetched_at, session.fetched_at)

    def refused(self, now: float) -> None:
        """The controller does not take it in."""
        self._not_proposed_until = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)

    def reset_refusals(self) -> None:
        """Something has changed, so the controller may answer differently: ask it again."""
        self._not_proposed_until = LONG_AGO
        self._pause = _FIRST_PAUSE_SECONDS

    @property
    def is_refused(self) -> bool:
        """Whether its last fetch was before the controller may be asked again; a follower that has stopped stays refused."""
        return self.last_fetch < self._not_proposed_until

    def is_caught_up(self, leader_end: int, now: float, lag_seconds: float) -> bool:
        return self.log_end_offset == leader_end or now - self.last_caught_up <= lag_seconds


class LeaderRole:
    """The leadership of a partition by this broker."""

    __slots__ = ("_broker_id", "_is_alive", "_lag_seconds", "epoch_start_offset", "followers", "isr")

    def __init__(self, broker_id: int, is_alive: Callable[[int], bool], lag_seconds: float) -> None:
        """``is_alive`` tells of a broker whether it is in the cluster."""
        self._broker_id = broker_id
        self._is_alive = is_alive
        self._lag_seconds = lag_seconds
        self.followers: dict[int, FollowerProgress] = {}
        """The other replicas, by broker id; a lone replica has none."""
        self.isr: IsrState = CommittedPartitionState(())
        self.epoch_start_offset = 0
        """Where the log ended when this broker was elected."""

    def assign(self, replicas: Iterable[int], isr: tuple[int, ...], now: float, former_leader: int) -> None:
        """Apply the controller's state. A change that was under way is void. ``former_leader`` may be this broker, or none."""
        # A new leader knows no ISR before this one, but that the former leader was in it.
        dropped = {*self.isr.isr, former_leader}.difference(isr)
        self.followers = {
            replica: self.followers.get(replica) or FollowerProgress(replica)
            for replica in replicas
            if replica != self._broker_id
        }
        for follower in self.followers.values():
            follower.reset_refusals()
            if follower.broker_id in dropped:
                follower.refused(now)
        self.isr = CommittedPartitionState(isr)

    def begin_epoch(self, leader_end: int, now: float) -> None:
        """This broker was elected; called after ``assign``."""
        self.epoch_start_offset = leader_end
        for follower in self.followers.values():
            follower.begin_epoch(leader_end, now, is_in_sync=follower.broker_id in self.isr.isr)

    def follower(self, broker_id: int, broker_epoch: int, current_leader_epoch: int) -> FollowerProgress:
        """The follower that fetches.

        Raises UNKNOWN_LEADER_EPOCH for a broker that has no replica as far as is known here (the follower may have heard
        of a reassignment first), NOT_LEADER_OR_FOLLOWER if its request has no leader epoch, or an older broker epoch than
        is known: the broker was restarted since, and may have lost what it had (KIP-903).
        """
        follower = self.followers.get(broker_id)
        if follower is None:
            asks_with_epoch = current_leader_epoch >= 0
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if asks_with_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {broker_id} is not among the replicas")
        if NO_BROKER_EPOCH < broker_epoch < follower.broker_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker epoch {broker_epoch} is past")
        return follower

    # --- committed ----------------------------------------------------------------------------------------------------

    def min_in_sync(self, wanted: int) -> int:
        """``min.insync.replicas``, but never more than there are replicas (KAFKA-15583)."""
        return min(wanted, len(self.followers) + 1)

    def is_under_min_isr(self, wanted: int) -> bool:
        in_sync = len(self.isr.isr)
        return in_sync < wanted and in_sync <= len(self.followers)  # ``min_in_sync``, without a call for each batch

    def lacks_replicas(self, wanted: int) -> bool:
        """Whether fewer than ``min_in_sync`` are, or may be, in sync."""
        return len(self.isr.maximal_isr) < self.min_in_sync(wanted)

    def committed_end(self, own_end: int, log_end: int, clock: Callable[[], float]) -> int:
        """The offset up to which every replica that matters has the log.

        ``own_end`` is how far this broker counts itself, ``log_end`` where its log ends. The clock is asked only where a replica
        is not in sync.
        """
        end = own_end
        maximal_isr = self.isr.maximal_isr
        for follower in self.followers.values():
            if follower.log_end_offset < end and (
                follower.broker_id in maximal_isr or self._is_about_to_join(follower, log_end, clock())
            ):
                end = follower.log_end_offset
        return end

    def _is_about_to_join(self, follower: FollowerProgress, log_end: int, now: float) -> bool:
        return (
            follower.is_caught_up(log_end, now, self._lag_seconds)
            and not follower.is_refused
            and self._is_alive(follower.broker_id)
        )

    def low_watermark(self, log_start: int) -> int:
        """The offset below which no live replica has records."""
        starts = (f.log_start_offset for f in self.followers.values() if self._is_alive(f.broker_id))
        return min((log_start, *starts))

    # --- in sync ------------------------------------------------------------------------------------------------------

    def expansion(self, follower: FollowerProgress, high_watermark: int) -> PendingExpand | None:
        """The change that takes a follower into the in-sync replicas, where it may join."""
        state = self.isr
        if (
            isinstance(state, CommittedPartitionState)
            and follower.broker_id not in state.isr
            and follower.log_end_offset >= max(high_watermark, self.epoch_start_offset)
            and not follower.is_refused
            and self._is_alive(follower.broker_id)
        ):
            return PendingExpand(state.isr, follower.broker_id, follower.broker_epoch)
        return None

    def refused(self, change: PendingIsr, now: float) -> None:
        """The controller has not done what ``change`` asks for, and never will: the state before it holds."""
        if self.isr is change:
            self.isr = CommittedPartitionState(change.isr)
            if isinstance(change, PendingExpand) and change.joining in self.followers:
                self.followers[change.joining].refused(now)

    def shrinkage(self, log_end: int, now: float) -> PendingShrink | None:
        """The change that drops the followers that are no longer caught up; a member without a replica is dropped too."""
        state = self.isr
        if not isinstance(state, CommittedPartitionState):
            return None
        leaving = [
            replica
            for replica in state.isr
            if replica != self._broker_id and not self._is_caught_up(replica, log_end, now)
        ]
        return PendingShrink(state.isr, leaving) if leaving else None

    def _is_caught_up(self, replica: int, log_end: int, now: float) -> bool:
        follower = self.followers.get(replica)
        return follower is not None and follower.is_caught_up(log_end, now, self._lag_seconds)
