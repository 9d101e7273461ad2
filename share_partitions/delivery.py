"""Runs of records in one delivery state, and the batches in which they were acquired: immutable values, and how they are cut.

A batch keeps the offsets it was acquired with as its ``size``, though records leave it: the delivery of records that often failed
is narrowed by it. Its runs are in the order of their offsets, without gaps between them, and neighbours differ in more than their
offsets. So a batch costs what its records differ in, not how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..share_coordinator.state import StateBatch

AVAILABLE = 0
"""To be delivered."""
ACQUIRED = 1
"""Delivered to a member, which has a lock on it for a while. It is never stored."""
ACKNOWLEDGED = 2
"""Accepted by a member: it is not delivered any more."""
ARCHIVED = 4
"""Rejected, delivered too often, or not there: it is not delivered any more."""
TERMINAL = (ACKNOWLEDGED, ARCHIVED)

NOBODY = ""
NO_WRITE = 0
UNLOCKED = math.inf


class Run(NamedTuple):
    """Records that follow each other in one state."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int
    member_id: str = NOBODY
    """Who acquired them."""
    locked_until: float = UNLOCKED
    """When they are available again, in seconds of the clock; ``UNLOCKED`` where they are not acquired."""
    write_id: int = NO_WRITE
    """The write that is to end the acquisition. Until it is done they are neither available nor the member's to acknowledge."""
    next_state: int = AVAILABLE
    """Their state once that is written."""

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def is_available(self) -> bool:
        return self.state == AVAILABLE

    @property
    def is_held(self) -> bool:
        """Whether a member has it, and has not said yet what becomes of it."""
        return self.state == ACQUIRED and self.write_id == NO_WRITE

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    def released(self, delivery_count_limit: int) -> int:
        """The state after a delivery that did not succeed."""
        return ARCHIVED if self.delivery_count >= delivery_count_limit else AVAILABLE

    def settled(self, state: int) -> Run:
        """In a state in which nobody has it."""
        return Run(self.first_offset, self.last_offset, state, self.delivery_count)

    def ending(self, write_id: int, state: int) -> Run:
        """To be in ``state`` once that is written."""
        first, last, before, count, member_id, locked_until, _, _ = self
        return Run(first, last, before, count, member_id, locked_until, write_id, state)

    def cut(self, first_offset: int, last_offset: int) -> Run:
        """The part of it within these offsets, which overlap it."""
        if first_offset <= self.first_offset and last_offset >= self.last_offset:
            return self
        first, last = max(first_offset, self.first_offset), min(last_offset, self.last_offset)
        return Run(first, last, *self[2:])


class InFlightBatch(NamedTuple):
    """Records that were acquired together first, or that the store has as one batch."""

    runs: tuple[Run, ...]
    size: int
    """How many records it had in the beginning."""

    @property
    def first_offset(self) -> int:
        return self.runs[0].first_offset

    @property
    def last_offset(self) -> int:
        return self.runs[-1].last_offset

    def within(self, first_offset: int, last_offset: int) -> Iterator[Run]:
        """The parts of its runs within these offsets."""
        for run in self.runs:
            if run.last_offset >= first_offset and run.first_offset <= last_offset:
                yield run.cut(first_offset, last_offset)

    def changed(self, first_offset: int, last_offset: int, change: Callable[[Run], Iterable[Run]]) -> InFlightBatch:
        """With the runs that ``change`` makes of each part within these offsets, which have the same offsets together."""
        runs: list[Run] = []
        for run in self.runs:
            if run.last_offset < first_offset or run.first_offset > last_offset:
                join(runs, run)
                continue
            if run.first_offset < first_offset:
                join(runs, run.cut(run.first_offset, first_offset - 1))
            for made in change(run.cut(first_offset, last_offset)):
                join(runs, made)
            if run.last_offset > last_offset:
                join(runs, run.cut(last_offset + 1, run.last_offset))
        return InFlightBatch(tuple(runs), self.size)

    def each(self, change: Callable[[Run], Run]) -> InFlightBatch:
        """With what becomes of each run as a whole."""
        if len(self.runs) == 1:
            return InFlightBatch((change(self.runs[0]),), self.size)
        runs: list[Run] = []
        for run in self.runs:
            join(runs, change(run))
        return InFlightBatch(tuple(runs), self.size)

    def cut_before(self, offset: int) -> InFlightBatch:
        """Without the records below ``offset``, which is not above its last one."""
        if offset <= self.first_offset:
            return self
        return InFlightBatch(tuple(self.within(offset, self.last_offset)), self.size)


def batch_of(run: Run) -> InFlightBatch:
    return InFlightBatch((run,), run.size)


def join(runs: list[Run], run: Run) -> None:
    """Append ``run``, as a part of the last one where it only continues that."""
    if runs:
        before = runs[-1]
        if before[2:] == run[2:] and before.last_offset + 1 == run.first_offset:
            runs[-1] = Run(before.first_offset, run.last_offset, *run[2:])
            return
    runs.append(run)


class StateBatches:
    """Runs in the order of their offsets as they are stored: in the states that they have or will have, neighbours joined."""

    __slots__ = ("_count", "_first", "_last", "_made", "_state", "archived")

    def __init__(self) -> None:
        self._made: list[StateBatch] = []
        self._first, self._last, self._state, self._count = 0, -1, AVAILABLE, 0
        self.archived = 0
        """How many records of them are archived, or are to be."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self._first <= self._last

    def add(self, run: Run) -> None:
        """One more."""
        state = run.state if run.write_id == NO_WRITE else run.next_state
        if state == ARCHIVED:
            self.archived += run.size
        if self._last + 1 == run.first_offset and self._count == run.delivery_count and self._state == state:
            self._last = run.last_offset
            return
        self._close()
        self._first, self._last, _, self._count, *_ = run
        self._state = state

    def _close(self) -> None:
        if self:
            self._made.append(StateBatch(self._first, self._last, self._state, self._count))

    def take(self) -> tuple[StateBatch, ...]:
        """All; it is called once."""
        self._close()
        return tuple(self._made)


def painted(older: Sequence[StateBatch], newer: Sequence[StateBatch]) -> tuple[StateBatch, ...]:
    """What two writes, one after the other, say together: the newer one decides where they overlap.

    Both are in the order of their offsets, and so is the result.
    """
    left: list[StateBatch] = []
    index = 0
    for batch in older:
        while index < len(newer) and newer[index].last_offset < batch.first_offset:
            index += 1
        first, over = batch.first_offset, index
        while over < len(newer) and newer[over].first_offset <= batch.last_offset:
            if first < newer[over].first_offset:
                left.append(batch._replace(first_offset=first, last_offset=newer[over].first_offset - 1))
            first = newer[over].last_offset + 1
            over += 1
        if first <= batch.last_offset:
            left.append(batch._replace(first_offset=first))
    return tuple(sorted([*left, *newer]))
