"""What is known of each offset of a share partition, and what must not happen to it.

- A record that is acknowledged, as its member was told, is not delivered again.
- A record is one member's at a time, until its lock ends, it is released, or acknowledged.
- Its delivery count grows by one with each delivery of one leader, and never exceeds the limit. At the last delivery it is alone.
- Who has a record may acknowledge it; nobody else may.
- In the end every record was acknowledged, or rejected, or delivered as often as it may be, or the log does not have it any more.

A broker that leads no more may not know it yet, and deliver what another one has delivered. Of it only counts are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import trio

from ottla.share_partitions.acknowledgement import ACCEPT, RELEASE, RENEW, Acknowledgement
from ottla.share_partitions.acquisition import AcquiredRange
from ottla.share_partitions.led_partition import Outcome

from .log import SimulatedLog


@dataclass
class Hold:
    """A record that a member has."""

    member_id: str
    until: float
    count: int
    ending: Outcome | None = None
    """Of what the member has said of it last, where that is to be stored."""
    kind: int = ACCEPT
    """What it has said."""

    @property
    def is_over(self) -> bool:
        """Whether its end is stored, though the member may not have been told yet."""
        return self.ending is not None and self.ending.is_done and self.ending.error is None


@dataclass
class LeaderModel:
    """What one leader has delivered."""

    holds: dict[int, Hold] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    """Delivery counts that it has told."""


class PartitionModel:
    """One share partition."""

    def __init__(
        self, log: SimulatedLog, limit: int, lock_seconds: float, *, is_committed: bool, violate: Callable[[str], None]
    ) -> None:
        self._log = log
        self._limit = limit
        self._lock_seconds = lock_seconds
        self._is_committed = is_committed
        self._violate = violate
        self.done: set[int] = set()
        """Acknowledged, rejected or a gap, as a member was told."""
        self.begin: int | None = None
        """The first record that was delivered."""
        self.deliveries: dict[int, int] = {}

    def delivered(
        self, leader: LeaderModel, member_id: str, ranges: Sequence[AcquiredRange], *, is_current: bool
    ) -> None:
        now = trio.current_time()
        total = sum(each.size for each in ranges)
        first_offset = ranges[0].first_offset
        self.begin = first_offset if self.begin is None else min(self.begin, first_offset)
        last = -1
        for first, end, count in ranges:
            if first <= last:
                self._violate(f"acquired ranges are not in order: {ranges}")
            last = end
            if count > self._limit:
                self._violate(f"{first}-{end} are delivered {count} times")
            if count == self._limit > 2 and total > 1:
                self._violate(f"{first}-{end} are delivered for the last time, among {total} records")
            for offset in range(first, end + 1):
                self._delivered_one(leader, offset, count, is_current=is_current)
                leader.holds[offset] = Hold(member_id, now + self._lock_seconds, count)

    def _delivered_one(self, leader: LeaderModel, offset: int, count: int, *, is_current: bool) -> None:
        deliveries = self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
        if is_current and offset in self.done:
            self._violate(f"{offset} is delivered again, although it was acknowledged")
        if count > deliveries:
            self._violate(f"{offset} is told to be delivered {count} times, not {deliveries}")
        if leader.counts.get(offset, count - 1) != count - 1:
            self._violate(f"{offset} was delivered {leader.counts[offset]} times, and now {count}")
        leader.counts[offset] = count
        if not self._log.log_start_offset <= offset < self._log.log_end_offset:
            self._violate(f"{offset} is delivered, which is not in the log")
        is_there = offset not in self._log.gone  # a range may have offsets without a record
        if (
            self._is_committed
            and is_there
            and (offset in self._log.undeliverable or offset >= self._log.last_stable_offset)
        ):
            self._violate(f"{offset} is delivered, which is not committed")
        hold = leader.holds.get(offset)
        if hold is not None and hold.is_over:
            if hold.kind != RELEASE:
                self._violate(f"{offset} is delivered, although {hold.member_id} has acknowledged it")
        elif hold is not None and hold.until > trio.current_time():
            self._violate(f"{offset} is delivered, and {hold.member_id} has it until {hold.until:.3f}")

    def may_say(
        self,
        leader: LeaderModel,
        member_id: str,
        acknowledgement: Acknowledgement,
        start_offset: int,
        *,
        has_lock: bool,
    ) -> bool:
        """Whether a member has all records of which it says something; with ``has_lock`` not for longer than it may."""
        now = trio.current_time() if has_lock else -1
        for offset in range(max(acknowledgement.first_offset, start_offset), acknowledgement.last_offset + 1):
            hold = leader.holds.get(offset)
            if hold is None and not has_lock and offset in self._log.gone:
                continue  # between two batches in flight there may be offsets of no record: nothing is kept of them
            if hold is None or hold.member_id != member_id or hold.ending is not None or hold.until <= now:
                return False
        return True

    def says(
        self, leader: LeaderModel, acknowledgement: Acknowledgement, start_offset: int, outcome: Outcome | None
    ) -> None:
        """It was taken, and is to be stored."""
        for offset, kind in each_offset(acknowledgement, start_offset):
            hold = leader.holds.get(offset)
            if hold is None:
                continue
            if kind == RENEW:
                hold.until = trio.current_time() + self._lock_seconds
            else:
                hold.ending, hold.kind = outcome, kind

    def said(
        self,
        leader: LeaderModel,
        acknowledgement: Acknowledgement,
        start_offset: int,
        outcome: Outcome | None,
        *,
        is_stored: bool,
    ) -> None:
        """What was taken is stored, or is not."""
        for offset, kind in each_offset(acknowledgement, start_offset):
            if kind == RENEW:
                continue
            if is_stored and kind != RELEASE:
                self.done.add(offset)
            hold = leader.holds.get(offset)
            if hold is not None and hold.ending is outcome:
                hold.ending = None
                if is_stored:
                    del leader.holds[offset]

    def released(self, leader: LeaderModel, member_id: str) -> None:
        """The session of a member is over."""
        for offset in [offset for offset, hold in leader.holds.items() if hold.member_id == member_id]:
            del leader.holds[offset]

    def lost(self, ended: Set[int]) -> list[int]:
        """The records that nobody will get any more, although they should be delivered. The store has had ``ended`` as done."""
        log = self._log
        if self.begin is None:
            return []
        there = [offset for batch in log.batches for offset in range(batch.base_offset, batch.last_offset + 1)]
        return [
            offset
            for offset in there
            if offset >= max(self.begin, log.log_start_offset)
            and offset not in ended
            and self.deliveries.get(offset, 0) < self._limit
            and not (self._is_committed and offset in log.undeliverable)
        ]


def each_offset(acknowledgement: Acknowledgement, start_offset: int) -> list[tuple[int, int]]:
    """Offset and type of each record from ``start_offset`` on."""
    first, last, types = acknowledgement
    return [
        (offset, types[0] if len(types) == 1 else types[offset - first])
        for offset in range(max(first, start_offset), last + 1)
    ]
