"""Acquisition of records by a member's fetch (KIP-932): first those that are available again, then new ones.

- A whole batch of the log is acquired, or all of it that is available; in record_limit mode no more than the member asks for. The
  rest of the last batch is then in flight as well, and available: both parts are one batch in flight.
- Near the limit of deliveries (``_narrow_from``) records of a batch are delivered in fewer and fewer at a time, those at the last
  delivery alone. So a record that no member survives does not take others along.
- What the log does not have any more, and what is of aborted transactions, is archived.

Otherwise than in Kafka, one fetch acquires 500 ranges or a few more, of 500 batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .delivery import ACQUIRED, ARCHIVED, AVAILABLE, InFlightBatch, Run, batch_of
from .share_partition import SharePartition, Terms, advance_start, batch_index, change_runs

_MOST_RANGES = 500
"""Once so many are acquired the rest waits for the next fetch."""
_LEAST_NARROWED = 2


class RecordLimits(NamedTuple):
    """How much a member asks for."""

    max_records: int
    batch_size: int
    """Acquired ranges are cut where a batch of the log begins, once they are so large."""
    is_exact: bool = False
    """Whether it is the mode record_limit, in which ``max_records`` is not exceeded. Otherwise batches of the log are whole."""


class FoundRecords(NamedTuple):
    """What was read from the log."""

    fetch_offset: int
    """From here on; the first batch may begin before it."""
    batches: Sequence[tuple[int, int]]
    """First and last offset of each batch."""
    aborted: Sequence[tuple[int, int]] = ()
    """Those that are not to be delivered, as they are of aborted transactions."""


class AcquiredRange(NamedTuple):
    """Records that were just acquired."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1


def acquire(
    partition: SharePartition, member_id: str, found: FoundRecords, wanted: RecordLimits, terms: Terms, now: float
) -> list[AcquiredRange]:
    """Give records that were read to a member; returns which, in the order of their offsets."""
    if wanted.max_records <= 0 or not found.batches or found.batches[-1][1] < partition.start_offset:
        return []
    most, last_offset = _room(partition, found, wanted, terms)
    if most <= 0:
        return []
    _archive_skipped(partition, found)
    acquisition = _Acquisition(partition, member_id, wanted, terms, now + terms.lock_seconds)
    acquisition.most, acquisition.last_offset = most, last_offset
    acquisition.take_again(found.batches[0][0])
    acquisition.take_new(found.batches)
    ranges = acquisition.ranges
    if found.aborted:
        ranges = _archive_aborted(partition, ranges, found.aborted)
        advance_start(partition)
    return ranges


def _room(partition: SharePartition, found: FoundRecords, wanted: RecordLimits, terms: Terms) -> tuple[int, int]:
    """How many records may be acquired, and up to which offset."""
    last_offset = found.batches[-1][1]
    most = min(wanted.max_records, terms.max_record_locks - partition.in_flight)
    if most <= 0 and found.fetch_offset < partition.next_offset:
        # The window is full, so only what was in it before is delivered again.
        most = min(wanted.max_records, partition.next_offset - found.fetch_offset)
        last_offset = min(last_offset, partition.next_offset - 1)
    return most, last_offset


class _Acquisition:
    """The records that one reading gives to one member."""

    def __init__(
        self, partition: SharePartition, member_id: str, wanted: RecordLimits, terms: Terms, locked_until: float
    ) -> None:
        self._partition = partition
        self._member_id = member_id
        self._wanted = wanted
        self._limit = terms.delivery_count_limit
        self._locked_until = locked_until
        self.most = 0
        self.last_offset = 0
        self.ranges: list[AcquiredRange] = []
        self._count = 0
        self._is_over = False

    def take_again(self, first_offset: int) -> None:
        """Acquire what is available in the batches in flight."""
        batches = self._partition.batches
        for index in range(max(0, batch_index(batches, first_offset)), len(batches)):
            batch = batches[index]
            if batch.first_offset > self.last_offset or self._count >= self.most or self._is_over:
                break
            if len(self.ranges) >= _MOST_RANGES:
                self._is_over = True
                break
            available = [run for run in batch.within(first_offset, self.last_offset) if run.is_available]
            if not available:
                continue
            is_narrowed = max(run.delivery_count for run in available) >= _narrow_from(self._limit)
            if is_narrowed and self._count:
                self._is_over = True
                break
            until = self._until(batch, available)
            batches[index] = batch.changed(available[0].first_offset, until, self._acquired)
            self._is_over = is_narrowed

    def _until(self, batch: InFlightBatch, available: Sequence[Run]) -> int:
        """The last offset up to which available records of a batch are acquired."""
        left = self.most - self._count if self._wanted.is_exact else batch.size
        is_narrowed = False
        until, taken = available[0].first_offset - 1, 0
        for run in available:
            if self._limit > _LEAST_NARROWED and run.delivery_count == self._limit - 1:
                return until if taken else run.first_offset
            if not is_narrowed and run.delivery_count >= _narrow_from(self._limit):
                is_narrowed = True
                most = max(1, batch.size >> run.delivery_count - _narrow_from(self._limit) + 1)
                if taken < most:  # after as many others it is too late, as in Kafka
                    left = min(left, most - taken)
            count = min(run.size, left)
            if count <= 0:
                break
            until = run.first_offset + count - 1
            taken += count
            left -= count
        return until

    def _acquired(self, run: Run) -> Iterable[Run]:
        if not run.is_available:
            return (run,)
        count = run.delivery_count + 1
        if count > 1:
            self._partition.redelivered += run.size
        self._note(run.first_offset, run.last_offset, count)
        return (self._run(run.first_offset, run.last_offset, count),)

    def _run(self, first_offset: int, last_offset: int, count: int) -> Run:
        return Run(first_offset, last_offset, ACQUIRED, count, self._member_id, self._locked_until)

    def _note(self, first_offset: int, last_offset: int, count: int) -> None:
        self.ranges.append(AcquiredRange(first_offset, last_offset, count))
        self._count += last_offset - first_offset + 1

    def take_new(self, log_batches: Sequence[tuple[int, int]]) -> None:
        """Acquire what was never delivered."""
        partition, last = self._partition, self.last_offset
        first = max(log_batches[0][0], partition.next_offset)
        most = self.most - self._count
        if self._is_over or most <= 0 or first > last:
            return
        in_flight_until = last
        if last - first + 1 > most:
            last = first + most - 1
            in_flight_until = _end_of_batch(log_batches, last)
            if not self._wanted.is_exact:
                last = in_flight_until
        if not partition.batches:
            partition.start_offset = first
        if last < in_flight_until:
            self._note(first, last, 1)
            runs = self._run(first, last, 1), Run(last + 1, in_flight_until, AVAILABLE, 0)
            partition.batches.append(InFlightBatch(runs, in_flight_until - first + 1))
            partition.next_offset = in_flight_until + 1
            partition.may_have_available = True
            return
        for begin, end in self._cut(log_batches, first, last):
            self._note(begin, end, 1)
            partition.batches.append(batch_of(self._run(begin, end, 1)))
            partition.next_offset = end + 1
            if len(self.ranges) >= _MOST_RANGES:
                break

    def _cut(self, log_batches: Sequence[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
        """First and last offset of the ranges."""
        batch_size = self._wanted.batch_size
        if not self._wanted.is_exact and last - first + 1 > batch_size:
            for base, _ in log_batches:
                if base > last:
                    break
                if base - first >= batch_size:
                    yield first, base - 1
                    first = base
        yield first, last


def _narrow_from(delivery_count_limit: int) -> int:
    """From this delivery count on fewer records are delivered at a time."""
    return max(_LEAST_NARROWED, (delivery_count_limit + 1) // 2)


def _end_of_batch(log_batches: Sequence[tuple[int, int]], offset: int) -> int:
    """The last offset of the batch with ``offset``, which is itself where no batch has it."""
    index = bisect_right(log_batches, offset, key=lambda batch: batch[0]) - 1
    return max(offset, log_batches[index][1])


def _archive_skipped(partition: SharePartition, found: FoundRecords) -> None:
    """Archive what is available where no batch was found: the log does not have it any more."""

    def archived(run: Run) -> Iterable[Run]:
        return (run.settled(ARCHIVED) if run.is_available else run,)

    expected, is_any = found.fetch_offset, False
    for first, last in found.batches:
        if expected >= partition.next_offset:
            break
        if expected < first:
            is_any = True
            change_runs(partition, expected, first - 1, archived)
        expected = last + 1
    if is_any:
        advance_start(partition)


def _archive_aborted(
    partition: SharePartition, ranges: Iterable[AcquiredRange], aborted: Sequence[tuple[int, int]]
) -> list[AcquiredRange]:
    """Archive what was just acquired of aborted transactions; returns the other ranges."""
    kept = []
    for acquired in ranges:
        first = acquired.first_offset
        index = max(0, bisect_right(aborted, first, key=lambda batch: batch[0]) - 1)
        while index < len(aborted) and aborted[index][0] <= acquired.last_offset:
            begin, end = max(aborted[index][0], first), min(aborted[index][1], acquired.last_offset)
            index += 1
            if begin > end:
                continue
            change_runs(partition, begin, end, lambda run: (run.settled(ARCHIVED),))
            if first < begin:
                kept.append(acquired._replace(first_offset=first, last_offset=begin - 1))
            first = end + 1
        if first <= acquired.last_offset:
            kept.append(acquired._replace(first_offset=first))
    return kept
