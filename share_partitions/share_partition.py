"""A partition as one share group reads it: what was delivered to whom, and what became of it (KIP-932). No I/O is in here.

Offsets below ``start_offset`` are done with, those from ``next_offset`` on were never delivered. Between them are the batches in
flight, in the order of their offsets; what is between two batches is not in the log. The rules are those of Kafka's
SharePartition:

- A record is available, acquired, acknowledged or archived. Acquiring it counts a delivery. When that does not succeed the
  record is available again, or archived after as many deliveries as there may be (``delivery_count_limit``).
- What a member says of its records is a *write*: the records stay acquired until it is stored, and then change together
  (``complete``). After a failure they are the member's as before. A request is valid as a whole, or changes nothing.
- When a lock ends the records are available at once; that is stored as well, and it does not matter whether that works.
- ``start_offset`` moves over records that are done with, when a write is.
- Near the limit (``_narrow_from``) records of a batch are delivered in fewer and fewer at a time, those at the last delivery
  alone. So a record that no member survives does not take others along.
- At most ``max_record_locks`` records are in flight, from the first one that is not done with on; the last batch may exceed it.

Acquisitions and renewals are not written. A new leader has what is stored; records between stored batches count as available.

In record_limit mode the rest of the last batch is in flight as well, and available. Both parts are one batch in flight.

Differences from Kafka: one fetch acquires 500 ranges or a few more, of 500 batches. Records of aborted transactions and those
that compaction removed let the start offset move at once: in Kafka a full window of them is never left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from ..base.errors import ErrorCode, KafkaError
from ..share_coordinator.state import ShareState, StateBatch
from .delivery import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NO_WRITE,
    TERMINAL,
    InFlightBatch,
    Run,
    StateBatches,
    batch_of,
    join,
)

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""What a member says of a record. A gap is an offset without a record, as its batch shows."""

STEP = 400
"""So many runs of records are changed in one step of the loop, or about as many: it takes a millisecond or two."""
_MOST_RANGES = 500
"""Once so many are acquired the rest waits for the next fetch."""
_ATTEMPTS = 3
_LEAST_NARROWED = 2
T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that pauses now and then, so that others have their turn; the records may change meanwhile."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The configuration of the group, as it is now."""

    delivery_count_limit: int
    max_record_locks: int
    lock_seconds: float
    may_renew: bool = True


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


class Acknowledgement(NamedTuple):
    """What a member says of records that follow each other."""

    first_offset: int
    last_offset: int
    types: Sequence[int]
    """One for all, or one for each."""


class Write(NamedTuple):
    """What is to be stored of a change."""

    write_id: int
    batches: tuple[StateBatch, ...]


class SharePartition:
    """The state of one share partition; the functions of this module change it."""

    __slots__ = (
        "archived",
        "batches",
        "last_write_id",
        "may_have_available",
        "next_offset",
        "redelivered",
        "start_offset",
    )

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.next_offset = start_offset
        self.batches: list[InFlightBatch] = []
        self.last_write_id = NO_WRITE
        self.may_have_available = False
        """Whether it is worth while to look for available records in flight."""
        self.redelivered = 0
        """How many deliveries, since it was loaded, were not the first ones of their records."""
        self.archived = 0
        """How many records were given up in that time: rejected, or delivered as often as they may be without success."""

    @property
    def in_flight(self) -> int:
        """How many records count against ``max_record_locks``."""
        return self.next_offset - self.start_offset


def load(state: ShareState, start_offset: int) -> SharePartition:
    """The share partition as it was stored, or as it begins at ``start_offset``. Raises KafkaError for a state that cannot be."""
    partition = SharePartition(start_offset)
    expected = start_offset
    for first, last, delivery_state, count in state.batches:
        if not expected <= first <= last or delivery_state not in (AVAILABLE, *TERMINAL):
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"stored batch {first}-{last} does not follow {expected - 1}"
            )
        if expected < first:
            partition.batches.append(batch_of(Run(expected, first - 1, AVAILABLE, 0)))
        partition.batches.append(batch_of(Run(first, last, delivery_state, count)))
        expected = last + 1
    partition.next_offset = expected
    partition.may_have_available = True
    _advance_start(partition)
    return partition


def next_fetch_offset(partition: SharePartition) -> int:
    """Where the log is to be read: the first available record."""
    if partition.may_have_available:
        for batch in partition.batches:
            for run in batch.runs:
                if run.is_available:
                    return run.first_offset
        partition.may_have_available = False
    return partition.next_offset


def can_acquire(partition: SharePartition, terms: Terms) -> bool:
    """Whether there may be something to acquire, as far as locks go."""
    return partition.in_flight < terms.max_record_locks or next_fetch_offset(partition) < partition.next_offset


def lock_end(partition: SharePartition) -> float | None:
    """When the first lock ends of those that nothing else will end."""
    return min((run.locked_until for batch in partition.batches for run in batch.runs if run.is_held), default=None)


def delivery_complete_count(partition: SharePartition, writes: Collection[int] = ()) -> int:
    """How many records in flight will not be delivered again, once ``writes`` are done."""
    return sum(
        run.size
        for batch in partition.batches
        for run in batch.runs
        if run.is_terminal or (run.write_id in writes and run.next_state in TERMINAL)
    )


def at_once(steps: Steps[T]) -> T:
    """All steps without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)


# --- acquire ----------------------------------------------------------------------------------------------------------


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
        _advance_start(partition)
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
        for index in range(max(0, _index(batches, first_offset)), len(batches)):
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
            _change(partition, expected, first - 1, archived)
        expected = last + 1
    if is_any:
        _advance_start(partition)


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
            _change(partition, begin, end, lambda run: (run.settled(ARCHIVED),))
            if first < begin:
                kept.append(acquired._replace(first_offset=first, last_offset=begin - 1))
            first = end + 1
        if first <= acquired.last_offset:
            kept.append(acquired._replace(first_offset=first))
    return kept


# --- what becomes of it -----------------------------------------------------------------------------------------------


def acknowledge(
    partition: SharePartition, member_id: str, acknowledgements: Sequence[Acknowledgement], terms: Terms, now: float
) -> Write | None:
    """Take what a member says of its records; returns what is to be stored. Raises KafkaError, and has changed nothing then.

    INVALID_REQUEST for offsets beyond those in flight, INVALID_RECORD_STATE for records that the member has not acquired, or
    of which it has said something already, in this request or before. Records below the start offset are ignored.
    """
    return at_once(acknowledge_in_steps(partition, member_id, acknowledgements, terms, now))


def acknowledge_in_steps(
    partition: SharePartition, member_id: str, acknowledgements: Sequence[Acknowledgement], terms: Terms, now: float
) -> Steps[Write | None]:
    """As ``acknowledge``, with pauses. Nothing changes before the end; what others change meanwhile counts."""
    for attempt in range(1, _ATTEMPTS + 1):
        said = _Said(partition, member_id, terms, now)
        for _ in said.steps(acknowledgements):
            if attempt < _ATTEMPTS:
                yield
        if said.take_effect():
            break
    return said.write


class _Said:
    """What one request says. ``steps``, then ``take_effect``: the batches are values, so whether one has changed is seen."""

    def __init__(self, partition: SharePartition, member_id: str, terms: Terms, now: float) -> None:
        partition.last_write_id += 1
        self._partition = partition
        self._write_id = partition.last_write_id
        self._start_offset = partition.start_offset
        self._batches = list(partition.batches)
        self._member_id = member_id
        self._limit = terms.delivery_count_limit
        self._locked_until = now + terms.lock_seconds if terms.may_renew else None
        self._acknowledgements: list[Acknowledgement] = []
        self._index = 0
        """Of the acknowledgement that is looked at."""
        self._changes: list[tuple[int, InFlightBatch]] = []
        self._ended = StateBatches()
        self._gaps = 0
        """How many offsets are said to have no record."""

    @property
    def write(self) -> Write | None:
        """What is to be stored; None where nothing is. It is asked for once."""
        return Write(self._write_id, self._ended.take()) if self._ended else None

    def steps(self, acknowledgements: Iterable[Acknowledgement]) -> Iterator[None]:
        """Work out what becomes of the batches. Raises KafkaError."""
        touched: list[int] = []
        for count, acknowledgement in enumerate(acknowledgements, 1):
            if count % STEP == 0:
                yield
            if acknowledgement.last_offset < self._start_offset:
                continue
            first = max(acknowledgement.first_offset, self._start_offset)
            self._add(acknowledgement)
            near = touched[-1] if touched else None
            begin, end = _batches_between(self._batches, first, acknowledgement.last_offset, near)
            if end != near:
                touched.extend(range(begin if begin != near else begin + 1, end + 1))
        count = 0
        for index in touched:
            batch = self._batches[index]
            runs: list[Run] = []
            for run in batch.runs:
                for made in self._made_of(run):
                    join(runs, made)
                    count += 1
                    if count % STEP == 0:
                        yield
            self._changes.append((index, InFlightBatch(tuple(runs), batch.size)))

    def take_effect(self) -> bool:
        """Change the batches, unless others have changed some of them, or the start, since the beginning."""
        if not self._changes:
            return True
        batches, before = self._partition.batches, self._batches
        first = self._changes[0][0]
        gone = first - _index(batches, before[first].first_offset)
        """How many batches are done with since; they were the first ones."""
        for index, _ in self._changes:
            if not 0 <= index - gone < len(batches) or batches[index - gone] is not before[index]:
                return False
        for index, batch in self._changes:
            batches[index - gone] = batch
        self._partition.archived += self._ended.archived - self._gaps
        return True

    def _add(self, acknowledgement: Acknowledgement) -> None:
        """Raises KafkaError where something is said of a record already."""
        before = self._acknowledgements
        if before and before[-1].last_offset >= acknowledgement.first_offset:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"{acknowledgement.first_offset} is acknowledged before")
        before.append(acknowledgement)

    def _made_of(self, run: Run) -> Iterator[Run]:
        """What becomes of a run; they are asked for in their order."""
        acknowledgements = self._acknowledgements
        first, last = run.first_offset, run.last_offset
        while first <= last:
            while self._index < len(acknowledgements) and acknowledgements[self._index].last_offset < first:
                self._index += 1
            if self._index == len(acknowledgements) or acknowledgements[self._index].first_offset > last:
                yield run.cut(first, last)
                break
            acknowledgement = acknowledgements[self._index]
            if acknowledgement.first_offset > first:
                yield run.cut(first, acknowledgement.first_offset - 1)
                first = acknowledgement.first_offset
            end = min(last, acknowledgement.last_offset)
            yield from self._end(run.cut(first, end), acknowledgement)
            first = end + 1

    def _end(self, run: Run, acknowledgement: Acknowledgement) -> Iterator[Run]:
        """What becomes of a run of which this one acknowledgement says something."""
        if not run.is_held or run.member_id != self._member_id:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"member has not acquired {run.first_offset}-{run.last_offset}"
            )
        base, _, types = acknowledgement
        if len(types) == 1:
            yield self._part(run, types[0])
            return
        first = run.first_offset
        for offset in range(first + 1, run.last_offset + 2):
            if offset > run.last_offset or types[offset - base] != types[first - base]:
                yield self._part(run.cut(first, offset - 1), types[first - base])
                first = offset

    def _part(self, run: Run, kind: int) -> Run:
        if kind == RENEW:
            if self._locked_until is None:
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "the group does not allow to renew locks")
            return run._replace(locked_until=self._locked_until)
        state = ARCHIVED
        if kind == ACCEPT:
            state = ACKNOWLEDGED
        elif kind == RELEASE:
            state = run.released(self._limit)
        elif kind == GAP:
            self._gaps += run.size
        made = run.ending(self._write_id, state)
        self._ended.add(made)
        return made


def _batches_between(
    batches: Sequence[InFlightBatch], first_offset: int, last_offset: int, near: int | None
) -> tuple[int, int]:
    """The first and the last index of the batches with these offsets, which begin and end in flight, from ``near`` on."""
    begin = _index(batches, first_offset) if near is None else _next_index(batches, first_offset, near)
    if begin < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"no records at {first_offset} are in flight")
    end = _next_index(batches, last_offset, begin)
    last_found = batches[end].last_offset
    if last_found < first_offset or last_found < last_offset:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"offsets {first_offset}-{last_offset} are past acquired records")
    return begin, end


def release(partition: SharePartition, member_id: str, terms: Terms) -> Write | None:
    """Release what a member has acquired, as its session is over; returns what is to be stored."""
    partition.last_write_id += 1
    write_id, ended = partition.last_write_id, StateBatches()

    def released(run: Run) -> Run:
        if run.is_held and run.member_id == member_id:
            run = run.ending(write_id, run.released(terms.delivery_count_limit))
            ended.add(run)
        return run

    for index, batch in enumerate(partition.batches):
        if any(run.member_id == member_id and run.is_held for run in batch.runs):
            partition.batches[index] = batch.each(released)
    partition.archived += ended.archived
    return Write(write_id, ended.take()) if ended else None


def expire(partition: SharePartition, terms: Terms, now: float, most: int | None = None) -> Write | None:
    """End the locks whose time is over; returns what is to be stored.

    With ``most``, once so many runs of records are available others may be left, whose ``lock_end`` is over then.
    """
    ended, count = StateBatches(), 0

    def released(run: Run) -> Run:
        nonlocal count
        if run.locked_until <= now and run.is_held:
            run = run.settled(run.released(terms.delivery_count_limit))
            ended.add(run)
            count += 1
        return run

    for index, batch in enumerate(partition.batches):
        if any(run.locked_until <= now and run.is_held for run in batch.runs):
            partition.batches[index] = batch.each(released)
            if most is not None and count >= most:
                break
    return _settled(partition, ended) if ended else None


def end_deliveries(
    partition: SharePartition, first_offset: int, last_offset: int, state_of: Callable[[Run], int | None]
) -> Write | None:
    """Have records in flight change their state at once, whoever has them; returns what is to be stored.

    ``state_of`` says which state a run gets; None: it stays as it is.
    """
    ended = StateBatches()

    def settled(run: Run) -> Iterable[Run]:
        state = state_of(run)
        if state is not None:
            run = run.settled(state)
            ended.add(run)
        return (run,)

    _change(partition, first_offset, last_offset, settled)
    return _settled(partition, ended) if ended else None


def _settled(partition: SharePartition, ended: StateBatches) -> Write:
    """What is to be stored of runs that are in their new states already."""
    partition.may_have_available = True
    partition.last_write_id += 1
    partition.archived += ended.archived
    return Write(partition.last_write_id, ended.take())


def complete(partition: SharePartition, writes: Collection[int], *, is_stored: bool) -> None:
    """The writes are done: their records change their state, or after a failure are their members' again."""
    at_once(complete_in_steps(partition, writes, is_stored=is_stored))


def complete_in_steps(partition: SharePartition, writes: Collection[int], *, is_stored: bool) -> Steps[None]:
    """As ``complete``, with pauses. The start offset moves at the end."""

    def settled(run: Run) -> Run:
        if run.write_id not in writes:
            return run
        if is_stored:
            return run.settled(run.next_state)
        return run._replace(write_id=NO_WRITE, next_state=AVAILABLE)

    index, left = 0, STEP
    while index < len(partition.batches):
        batch = partition.batches[index]
        index += 1
        if any(run.write_id in writes for run in batch.runs):
            partition.batches[index - 1] = batch.each(settled)
            left -= len(batch.runs)
            if left <= 0:
                yield
                left = STEP
                index = _index(partition.batches, batch.last_offset) + 1  # the first batches may be gone
    partition.may_have_available = True
    _advance_start(partition)


def log_start_moved(partition: SharePartition, offset: int) -> None:
    """Forget what is below ``offset``, whoever has it: the log does not have it any more."""
    if offset > partition.start_offset:
        _move_start(partition, offset)
        _advance_start(partition)


# --- parts of it ------------------------------------------------------------------------------------------------------


def _index(batches: Sequence[InFlightBatch], offset: int) -> int:
    """The index of the last batch that does not begin after ``offset``; -1 where all do."""
    return bisect_right(batches, offset, key=lambda batch: batch.first_offset) - 1


def _next_index(batches: Sequence[InFlightBatch], offset: int, near: int) -> int:
    """As ``_index``, of a batch at ``near`` or after it."""
    while near + 1 < len(batches) and batches[near + 1].first_offset <= offset:
        near += 1
    return near


def _change(
    partition: SharePartition, first_offset: int, last_offset: int, change: Callable[[Run], Iterable[Run]]
) -> None:
    batches = partition.batches
    for index in range(max(0, _index(batches, first_offset)), len(batches)):
        batch = batches[index]
        if batch.first_offset > last_offset:
            break
        if batch.last_offset >= first_offset:
            batches[index] = batch.changed(first_offset, last_offset, change)


def _advance_start(partition: SharePartition) -> None:
    """Move the start offset to the first record that is not done with."""
    for batch in partition.batches:
        for run in batch.runs:
            if not run.is_terminal:
                if run.first_offset > partition.start_offset:
                    _move_start(partition, run.first_offset)
                return
    partition.batches.clear()
    partition.start_offset = partition.next_offset


def _move_start(partition: SharePartition, offset: int) -> None:
    batches = partition.batches
    done = 0
    while done < len(batches) and batches[done].last_offset < offset:
        done += 1
    del batches[:done]
    if batches:
        batches[0] = batches[0].cut_before(offset)
    partition.start_offset = offset
    partition.next_offset = max(partition.next_offset, offset)
