"""One ShareFetch: records of several share partitions for one member, waiting for some while there are none.

Rules:

- Share partitions are looked at in their order. Reading one and acquiring what was read is one step, so no two members read the
  same share partition at the same time (Kafka's fetch lock).
- At most ``max_records`` are acquired in all; the first batch is read whole even if it is larger than ``max_bytes``. What is sent
  are the batches with acquired records, as they are in the log; which of their records count is told beside them.
- With less than ``min_bytes`` to read, or with nothing, there is a wait. It ends when some share partition has something, cannot
  be served here any more, or the time is over; then there is what there is. A member that has gone acquires nothing.
- A share partition that cannot be served does not hold up the others. The wait ends at once unless it is unknown here.
- An offset beyond the end of the log, after an unclean election, waits for the log to grow (Kafka does as well).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.presence import is_client_gone
from ..base.wakeup import Wakeup
from ..log.segment import SegmentSlice
from ..replication.partition import Partition
from ..share_coordinator.state import SharePartitionKey
from . import acquisition, share_partition
from .acquisition import AcquiredRange, FoundRecords, RecordLimits
from .found_batches import FoundBatches, find_batches
from .led_partition import LedPartition
from .manager import SharePartitionEntry, SharePartitions
from .share_partition import Terms

_NOT_URGENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_TURN_SECONDS = 0.003
_LOOKS_BETWEEN = 32
_MOST_READINGS = 8
"""So often one share partition is read in one turn, where all that was found is not to be delivered."""


@dataclass(frozen=True, slots=True)
class ShareFetchLimits:
    """What a member asks for."""

    wanted: RecordLimits
    min_bytes: int
    max_bytes: int
    isolation_level: int = 0
    """1: records of open and aborted transactions are not delivered."""


@dataclass(slots=True)
class Fetched:
    """The result for one share partition: an error, or records that were acquired."""

    key: SharePartitionKey
    partition: Partition | None = None
    acquired: list[AcquiredRange] = field(default_factory=list)
    records: SegmentSlice | None = None
    """Whole batches; the caller releases it. None exactly where nothing was acquired."""
    error: KafkaError | None = None


class ShareFetch:
    """See the module. ``run`` is called once."""

    def __init__(
        self,
        share_partitions: SharePartitions,
        member_id: str,
        keys: Sequence[SharePartitionKey],
        limits: ShareFetchLimits,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """``keys`` are those of one group, in the order of their turns."""
        self._share_partitions = share_partitions
        self._member_id = member_id
        self._limits = limits
        self._elapsed = elapsed
        self._terms = share_partitions.terms_of(keys[0].group_id) if keys else None
        self._waiting: dict[SharePartitionKey, SharePartitionEntry | None] = dict.fromkeys(keys)
        """Share partitions without a result."""
        self._results: dict[SharePartitionKey, Fetched] = {}
        self._is_urgent = False
        self._records = 0
        self._bytes = 0
        self._wakeup = Wakeup()
        self._untold: dict[SharePartitionEntry, None] = {}
        """The entries that told of a change, which were not looked at since."""

    async def run(self, max_wait: float, flush: Callable[[], Awaitable[None]]) -> list[Fetched]:
        """Fetch within ``max_wait`` seconds; ``flush`` is called before a wait. Only results with records or an error."""
        deadline = trio.current_time() + max_wait
        has_flushed = False
        try:
            while self._waiting:
                left = deadline - trio.current_time()
                await self._look(is_last=left <= 0)
                if self._is_urgent or left <= 0:
                    break
                if not has_flushed:
                    has_flushed = True
                    await flush()
                await self._wakeup.wait(deadline - trio.current_time())
                if is_client_gone():
                    break
                self._wakeup = Wakeup()
        except BaseException:
            self.release()
            raise
        finally:
            self._leave()
        return list(self._results.values())

    def release(self) -> None:
        """Release the slices that were read, as they are not sent."""
        for result in self._results.values():
            if result.records is not None:
                result.records.release()
                result.records = None

    def wake(self, entry: SharePartitionEntry) -> None:
        """As a ``Watcher``."""
        self._untold[entry] = None
        self._wakeup.set()

    def _leave(self) -> None:
        for entry in self._waiting.values():
            if entry is not None:
                entry.leave(self)
        for entry in self._untold:
            entry.wake()

    # --- looking ------------------------------------------------------------------------------------------------------

    async def _look(self, *, is_last: bool) -> None:
        """Acquire what there is, if that is enough."""
        if not is_last and self._limits.min_bytes > 1 and not self._is_enough():
            return
        turn_began = self._elapsed()
        for count, key in enumerate(list(self._waiting), 1):
            self._look_at(key, self._take)
            if self._records >= self._limits.wanted.max_records or self._bytes >= self._limits.max_bytes:
                return
            if count % _LOOKS_BETWEEN == 0 and self._elapsed() - turn_began >= _TURN_SECONDS:
                await trio.lowlevel.checkpoint()
                turn_began = self._elapsed()

    def _is_enough(self) -> bool:
        """Whether ``min_bytes`` can be read, or an answer is due for another reason."""
        found = 0

        def measure(entry: SharePartitionEntry, led: LedPartition, terms: Terms) -> None:
            nonlocal found
            if share_partition.can_acquire(led.state, terms):
                records = self._read(entry.partition, share_partition.next_fetch_offset(led.state), found)
                if records is not None:
                    found += records.nbytes
                    records.release()

        for key in list(self._waiting):
            self._look_at(key, measure)
        return self._is_urgent or found >= self._limits.min_bytes

    def _look_at(
        self, key: SharePartitionKey, look: Callable[[SharePartitionEntry, LedPartition, Terms], None]
    ) -> None:
        """Look at one share partition, which tells of its next change; where it cannot be served that is its result."""
        assert self._terms is not None
        try:
            entry = self._waiting[key]
            if entry is None or entry.error is None:
                entry = self._share_partitions.open(key)
            self._waiting[key] = entry
            self._untold.pop(entry, None)
            if entry.error is not None:
                raise entry.error
            entry.watch(self)
            led = entry.led
            if led is None or entry.is_retiring:
                return
            share_partition.log_start_moved(led.state, entry.partition.log.log_start_offset)
            look(entry, led, self._terms)
        except KafkaError as error:
            self._finish(Fetched(key, error=error))
            self._is_urgent |= error.code not in _NOT_URGENT

    def _finish(self, result: Fetched) -> None:
        entry = self._waiting.pop(result.key)
        if entry is not None:
            entry.leave(self)
        self._results[result.key] = result

    def _take(self, entry: SharePartitionEntry, led: LedPartition, terms: Terms) -> None:
        """Acquire what there is in one share partition."""
        limits, state = self._limits, led.state
        wanted = limits.wanted._replace(max_records=limits.wanted.max_records - self._records)
        for _ in range(_MOST_READINGS):
            before = share_partition.next_fetch_offset(state)
            if not share_partition.can_acquire(state, terms):
                return
            found = self._find(entry.partition, before, state.next_offset + wanted.max_records)
            if found is None:
                return
            now = trio.current_time()
            described = FoundRecords(before, found.spans, found.aborted)
            acquired = acquisition.acquire(state, self._member_id, described, wanted, terms, now)
            if acquired:
                found.cut(acquired[0].first_offset, acquired[-1].last_offset)
                self._note(entry, acquired, found.records)
                self._share_partitions.schedule(entry, now + terms.lock_seconds)
                entry.wake()  # somebody else may find more
                return
            found.records.release()
            if share_partition.next_fetch_offset(state) == before:
                return
        self._wakeup.set()  # after a turn of others there may be more to pass over

    def _note(self, entry: SharePartitionEntry, acquired: list[AcquiredRange], records: SegmentSlice) -> None:
        self._records += sum(each.size for each in acquired)
        self._bytes += records.nbytes
        self._is_urgent = True
        self._finish(Fetched(entry.key, entry.partition, acquired, records))

    def _read(self, partition: Partition, offset: int, total: int) -> SegmentSlice | None:
        """Batches from ``offset`` on, of which ``total`` bytes are read already; None where there are none."""
        up_to = partition.fetchable_end(self._limits.isolation_level)
        if offset >= up_to:
            return None
        return partition.read(offset, max(self._limits.max_bytes - total, 0), up_to, at_least_one=total == 0)

    def _find(self, partition: Partition, offset: int, up_to: int) -> FoundBatches | None:
        records = self._read(partition, offset, self._bytes)
        if records is None:
            return None
        try:
            return find_batches(partition.log, records, offset, up_to, self._limits.isolation_level)
        except BaseException:
            records.release()
            raise


def rotated(keys: Iterable[SharePartitionKey], session_epoch: int) -> list[SharePartitionKey]:
    """The share partitions with another one first in each epoch of the session, so that each has its turn."""
    ordered = list(keys)
    if not ordered or session_epoch < 1:
        return ordered
    by = session_epoch % len(ordered)
    return ordered[by:] + ordered[:by]
