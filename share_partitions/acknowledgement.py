"""Acknowledgements of acquired records (KIP-932): what a request says is valid as a whole, or changes nothing.

What it ends is stored (``Write``); the records stay acquired until then. A renewal is not stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from .delivery import ACKNOWLEDGED, ARCHIVED, InFlightBatch, Run, StateBatches, join
from .share_partition import STEP, SharePartition, Steps, Terms, Write, at_once, batch_index

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""What a member says of a record. A gap is an offset without a record, as its batch shows."""

_ATTEMPTS = 3


class Acknowledgement(NamedTuple):
    """What a member says of records that follow each other."""

    first_offset: int
    last_offset: int
    types: Sequence[int]
    """One for all, or one for each."""


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
        gone = first - batch_index(batches, before[first].first_offset)
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
    begin = batch_index(batches, first_offset) if near is None else _next_index(batches, first_offset, near)
    if begin < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"no records at {first_offset} are in flight")
    end = _next_index(batches, last_offset, begin)
    last_found = batches[end].last_offset
    if last_found < first_offset or last_found < last_offset:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"offsets {first_offset}-{last_offset} are past acquired records")
    return begin, end


def _next_index(batches: Sequence[InFlightBatch], offset: int, near: int) -> int:
    """As ``batch_index``, of a batch at ``near`` or after it."""
    while near + 1 < len(batches) and batches[near + 1].first_offset <= offset:
        near += 1
    return near
