"""Searches of partitions' records, forward from an offset or backward from the end, with or without a filter.

A ``Search`` reads windows of offsets from a ``RecordLog``, and goes through their batches. Each ``step`` is
one window of one partition, so that whoever drives it can tell how far it is, and stop. What it costs the broker is bounded:
files are read and batches decompressed by a worker, records are looked at in slices on the loop (``pace``), and of what is
found only the beginnings of keys and values are kept.

Records are counted, not offsets: what compaction took away, and control batches, are no records. A search reads up to the
high watermark, whatever became of transactions, and says of each record what became of its own.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence

from ..base.errors import KafkaError
from ..base.seams import Workers
from ..log.transaction_index import AbortedTxn
from ..wire.compression import NONE
from ..wire.records import Record, RecordBatch
from .found_records import KEPT_BYTES, FoundRecord, TransactionOutcome, fate_of, found_record
from .pace import Pace
from .record_log import RecordLog

READ_BYTES = 256 * 1024
MOST_DECOMPRESSED = 32 << 20
"""A batch with more is ignored, and told as a problem."""
MOST_KEPT_AT_ONCE = 4 << 20
"""Of what one step finds, where all of its bytes are kept; a batch may have more."""
_INLINE_BYTES = 16 * 1024
_INLINE_COSTLY_BYTES = 2048
_CHUNK_BYTES = 256 * 1024
_RECORDS_PER_SLICE = 1000
_RECORDS_PER_LOOK = 250
"""After so many the pace is asked: whoever finds all of them has a slower one."""
_FIRST_WINDOW = 64
_LARGEST_WINDOW = 1 << 20
_MOST_PROBLEMS = 20
_UNCOMMITTED = (TransactionOutcome.ABORTED, TransactionOutcome.OPEN, TransactionOutcome.CONTROL)


Matches = Callable[[Record], bool]
"""Whether a record is looked for."""

Prepare = Callable[[Sequence[Record]], Awaitable[None]]
"""What is to be waited for before records are matched."""


class Range:
    """The offsets [``low``, ``high``) of one partition that a search has not looked at yet."""

    def __init__(self, log: RecordLog, low: int, high: int) -> None:
        self.log = log
        self.low = max(low, log.start)
        self.high = min(high, log.end)
        self.total = max(self.high - self.low, 0)
        """The number of offsets at the start."""
        self.found: deque[FoundRecord] = deque()
        """In the order of offsets."""
        self.count = 0
        """The number of records found, without markers."""
        self.window = _FIRST_WINDOW
        """How many offsets the next backward step goes back."""
        self.begun = self.high
        """The start of the window that is being searched backwards."""

    @property
    def number(self) -> int:
        return self.log.number

    @property
    def left(self) -> int:
        return max(self.high - self.low, 0)


class Search:
    """A search for ``wanted`` records in each of several partitions or, with a filter, in all of them together.

    ``prepare`` is given if ``matches`` is costly, such as one that decodes records; then a worker calls ``matches``. ``keep``
    limits the bytes kept of each key and value. None keeps all of them, for a caller that takes what was found after each step.
    ``committed_only``: batches of aborted and of open transactions, and control batches, are passed over, as by a consumer of
    committed records.
    """

    def __init__(
        self,
        ranges: Sequence[Range],
        wanted: int,
        workers: Workers,
        pace: Pace,
        *,
        backwards: bool = False,
        matches: Matches | None = None,
        prepare: Prepare | None = None,
        keep: int | None = KEPT_BYTES,
        committed_only: bool = False,
    ) -> None:
        self.ranges = ranges
        self.wanted = wanted
        self.backwards = backwards
        self.looked_at = 0
        """The number of records."""
        self.bytes_read = 0
        """The size of all batches read."""
        self.problems: list[str] = []
        """Sentences about what could not be read."""
        self._workers = workers
        self._pace = pace
        self._matches = matches
        self._prepare = prepare
        self._keep = keep
        self._passed_over = _UNCOMMITTED if committed_only else ()
        self._turn = 0
        for each in ranges:
            each.window = max(each.window, min(wanted, _LARGEST_WINDOW))

    # --- how far it is ------------------------------------------------------------------------------------------------

    def _wants_more_of(self, each: Range) -> bool:
        return each.left > 0 and (self._matches is not None or each.count < self.wanted)

    @property
    def found_count(self) -> int:
        return sum(each.count for each in self.ranges)

    @property
    def is_done(self) -> bool:
        if self._matches is not None and self.found_count >= self.wanted:
            return True
        return not any(map(self._wants_more_of, self.ranges))

    @property
    def is_exhausted(self) -> bool:
        """Whether everything was looked at."""
        return not any(each.left for each in self.ranges)

    @property
    def done_share(self) -> float:
        """Of the offsets, from 0 to 1."""
        total = sum(each.total for each in self.ranges)
        return 1 - sum(each.left for each in self.ranges) / total if total else 1.0

    def found(self) -> list[FoundRecord]:
        """What was found, by time, newest first when it goes backwards. A partition's stay in the order of its offsets."""
        if self.backwards:
            return list(
                heapq.merge(*(reversed(each.found) for each in self.ranges), key=lambda record: -record.timestamp)
            )
        return list(heapq.merge(*(each.found for each in self.ranges), key=lambda record: record.timestamp))

    def take_found(self) -> list[FoundRecord]:
        """``found``, which is forgotten then; for one who shows what comes, as it comes."""
        records = self.found()
        for each in self.ranges:
            each.found.clear()
        return records

    # --- looking ------------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """Look through one window of one partition; there must be more to do."""
        places = len(self.ranges)
        for _ in range(places):
            each = self.ranges[self._turn % places]
            self._turn += 1
            if self._wants_more_of(each):
                await (self._step_back(each) if self.backwards else self._step_on(each))
                return
        raise AssertionError("nothing is left to be looked at")

    async def _step_on(self, each: Range) -> None:
        end, found = await self._look(each, each.low, each.high, READ_BYTES)
        room = self._room(each)
        if len(found) > room:
            found = found[:room]
            end = found[-1].offset + 1
        self._take(each, found)
        each.low = end

    async def _step_back(self, each: Range) -> None:
        """Of a window before what was seen already, all of it: what is in it stands in the order of offsets.

        It begins where its first batch does: a batch that was opened is looked at once, however large it is.
        """
        position = each.begun = max(each.low, each.high - each.window)
        low = each.low
        before = self.bytes_read
        found: deque[FoundRecord] = deque(maxlen=self._room(each))
        while position < each.high:
            position, some = await self._look(each, position, each.high, READ_BYTES, low)
            low = position
            found += some
            if self._is_too_much(found) and each.window > 1:
                # ``found`` is dropped: a window that was read in part lacks its newest records, which come first backwards.
                each.window = max(each.window // 8, 1)
                return
        each.found.extendleft(reversed(found))
        each.count += sum(not record.is_marker for record in found)
        # Where there was more than was wanted the next search goes on before what was kept.
        each.high = found[0].offset if len(found) == found.maxlen else each.begun
        is_small = self.bytes_read - before < READ_BYTES // 2
        each.window = min(each.window * 2, _LARGEST_WINDOW) if is_small else max(each.window // 2, _FIRST_WINDOW)

    def _is_too_much(self, found: Iterable[FoundRecord]) -> bool:
        return self._keep is None and sum(each.key_size + each.value_size for each in found) > MOST_KEPT_AT_ONCE

    def _room(self, each: Range) -> int:
        count = each.count if self._matches is None else self.found_count
        return max(self.wanted - count, 1)

    def _take(self, each: Range, found: Sequence[FoundRecord]) -> None:
        each.found.extend(found)
        each.count += sum(not record.is_marker for record in found)

    async def _look(
        self, each: Range, start: int, end: int, max_bytes: int, low: int | None = None
    ) -> tuple[int, list[FoundRecord]]:
        """The matching records from ``start`` on, and the offset up to which it was looked; at least one batch is.

        Of the first batch those from ``low`` on, where that is given.
        """
        try:
            read = await each.log.read(start, end, max_bytes)
        except (KafkaError, OSError) as error:
            self._note(each, start, error)
            return end, []
        if read is None:
            return end, []
        found: list[FoundRecord] = []
        position = start
        first = start if low is None else max(low, min(start, read.batches[0].base_offset))
        each.begun = min(each.begun, first)
        for batch in read.batches:
            if batch.base_offset >= end:
                return end, found
            self.bytes_read += batch.size
            await self._look_into(each, batch, first, end, read.aborted, found)
            position = max(position, min(batch.next_offset, end))
            if self._is_too_much(found):
                break
        if position == start:  # what is read has the offset in it, or comes after it
            self._note(each, start, ValueError("what the log has there is no batch"))
            return end, found
        return position, found

    async def _look_into(
        self,
        each: Range,
        batch: RecordBatch,
        start: int,
        end: int,
        aborted: Iterable[AbortedTxn],
        found: list[FoundRecord],
    ) -> None:
        fate = fate_of(batch, aborted, each.log.last_stable)
        if (batch.is_control and self._matches is not None) or fate in self._passed_over:
            return
        try:
            if batch.compression != NONE or batch.size > _INLINE_BYTES:
                records = await self._workers.run(_opened, batch)
            else:
                records = _opened(batch)
            looked = self._looked_at_with_care if self._prepare is not None else self._looked_at
            async for record in looked(records, batch):
                if start <= record.offset < end:  # one by one, for what comes before a bad place is good
                    found.append(found_record(each.number, batch, record, fate, self._keep))  # noqa: PERF401
        except KafkaError as error:
            self._note(each, batch.base_offset, error)

    async def _looked_at(self, records: Iterator[Record], batch: RecordBatch) -> AsyncIterator[Record]:
        """Those that match, in slices on the loop. Raises KafkaError."""
        matches = self._matches
        seen = 0
        for record in records:
            seen += 1
            if seen == _RECORDS_PER_LOOK:
                self.looked_at += 0 if batch.is_control else seen
                if self._pace.is_due(seen):
                    await self._pace.rest()
                seen = 0
            if matches is None or matches(record):
                yield record
        self.looked_at += 0 if batch.is_control else seen
        if self._pace.is_due(seen + 1):
            await self._pace.rest()

    async def _looked_at_with_care(self, records: Iterator[Record], batch: RecordBatch) -> AsyncIterator[Record]:
        """Those that match, by a worker but for a few small ones. Raises KafkaError."""
        assert self._prepare is not None
        is_inline = batch.compression == NONE and batch.size <= _INLINE_COSTLY_BYTES
        while chunk := _chunk(records) if is_inline else await self._workers.run(_chunk, records):
            await self._prepare(chunk)
            matching = self._matching(chunk) if is_inline else await self._workers.run(self._matching, chunk)
            for record in matching:
                yield record
            self.looked_at += len(chunk)
            if self._pace.is_due(len(chunk)):
                await self._pace.rest()

    def _matching(self, records: Sequence[Record]) -> list[Record]:
        assert self._matches is not None
        return list(filter(self._matches, records))

    def _note(self, each: Range, offset: int, error: Exception) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"Partition {each.number} from offset {offset} on: {error}")


def search_pace(elapsed: Callable[[], float]) -> Pace:
    """For a search: a record takes about a microsecond."""
    return Pace(elapsed, _RECORDS_PER_SLICE)


def _chunk(records: Iterator[Record]) -> list[Record]:
    """The next ones, ``_CHUNK_BYTES`` or a little more of them; none at the end. Raises KafkaError."""
    found = []
    size = 0
    for record in records:
        found.append(record)
        size += len(record.value or b"")
        if size >= _CHUNK_BYTES or len(found) == _RECORDS_PER_SLICE:
            break
    return found


def _opened(batch: RecordBatch) -> Iterator[Record]:
    """The batch's records, decompressed. Raises KafkaError."""
    batch.check_crc()
    return batch.records_of(list(batch.body_pieces(MOST_DECOMPRESSED)))


@dataclasses.dataclass(frozen=True, slots=True)
class WholeRecord:
    """One record with all of its bytes."""

    found: FoundRecord
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


async def whole_record(log: RecordLog, offset: int, workers: Workers) -> WholeRecord | None:
    """The record at an offset; None where there is none. Raises KafkaError, OSError."""
    if not log.start <= offset < log.end:
        return None
    read = await log.read(offset, offset + 1, 1)
    if read is None:
        return None
    found = await workers.run(_record_at, read.batches, offset)
    if found is None:
        return None
    batch, record = found
    row = found_record(log.number, batch, record, fate_of(batch, read.aborted, log.last_stable))
    return WholeRecord(row, record.key, record.value, record.headers)


def _record_at(batches: Iterable[RecordBatch], offset: int) -> tuple[RecordBatch, Record] | None:
    """Raises KafkaError."""
    for batch in batches:
        if batch.base_offset <= offset <= batch.last_offset:
            for record in _opened(batch):
                if record.offset == offset:
                    return batch, record
    return None
