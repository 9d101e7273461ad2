"""A partition as one share group reads it: what was delivered to whom, and what became of it (KIP-932). No I/O is in here.

Offsets below ``start_offset`` are done with, those from ``next_offset`` on were never delivered. Between them are the batches in
flight, in the order of their offsets; what is between two batches is not in the log. The rules are those of Kafka's
SharePartition:

- A record is available, acquired, acknowledged or archived. Acquiring it counts a delivery. When that does not succeed the
  record is available again, or archived after as many deliveries as there may be (``delivery_count_limit``).
- What a member says of its records (``acknowledgement``) is a *write*: the records stay acquired until it is stored, and then
  change together (``complete``). After a failure they are the member's as before.
- When a lock ends the records are available at once; that is stored as well, and it does not matter whether that works.
- ``start_offset`` moves over records that are done with, when a write is.
- At most ``max_record_locks`` records are in flight, from the first one that is not done with on; the last batch may exceed it.

Acquisitions and renewals are not written. A new leader has what is stored; records between stored batches count as available.

What members get is decided in ``acquisition``.

Otherwise than in Kafka, records of aborted transactions and those that compaction removed let the start offset move at once: in
Kafka a full window of them is never left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

from ..base.errors import ErrorCode, KafkaError
from ..share_coordinator.state import ShareState, StateBatch
from .delivery import (
    AVAILABLE,
    NO_WRITE,
    TERMINAL,
    InFlightBatch,
    Run,
    StateBatches,
    batch_of,
)

STEP = 400
"""So many runs of records are changed in one step of the loop, or about as many: it takes a millisecond or two."""
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
    advance_start(partition)
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


# --- what becomes of it -----------------------------------------------------------------------------------------------


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

    change_runs(partition, first_offset, last_offset, settled)
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
                index = batch_index(partition.batches, batch.last_offset) + 1  # the first batches may be gone
    partition.may_have_available = True
    advance_start(partition)


def log_start_moved(partition: SharePartition, offset: int) -> None:
    """Forget what is below ``offset``, whoever has it: the log does not have it any more."""
    if offset > partition.start_offset:
        _move_start(partition, offset)
        advance_start(partition)


# --- parts of it ------------------------------------------------------------------------------------------------------


def batch_index(batches: Sequence[InFlightBatch], offset: int) -> int:
    """The index of the last batch that does not begin after ``offset``; -1 where all do."""
    return bisect_right(batches, offset, key=lambda batch: batch.first_offset) - 1


def change_runs(
    partition: SharePartition, first_offset: int, last_offset: int, change: Callable[[Run], Iterable[Run]]
) -> None:
    """Put what ``change`` makes of the runs with these offsets, or of their parts with them, in their place."""
    batches = partition.batches
    for index in range(max(0, batch_index(batches, first_offset)), len(batches)):
        batch = batches[index]
        if batch.first_offset > last_offset:
            break
        if batch.last_offset >= first_offset:
            batches[index] = batch.changed(first_offset, last_offset, change)


def advance_start(partition: SharePartition) -> None:
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
