"""A copy of records into another topic, while it runs and after it.

Records are sent with acks=all, in batches of at most 500 records or 512 KiB, one after another. A batch that the target finds
too large is split, as Kafka's producer does it. The first other error ends the copy. Nothing is sent twice and nothing is
passed over: ``written`` are the records that a broker has acknowledged, ``left`` what is to be copied from there on. Only of
``in_doubt``, a batch whose answer did not come, nobody knows whether it was written; it belongs to ``left``.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Workers
from ..view.found_records import FoundRecord
from ..view.own.broker_view import NotFoundError
from ..wire.records import Record, build_batch
from .copy_reading import CopyReading, size_of
from .kafka_requests import KafkaRequests
from .problems import problem_of
from .producing import partition_of, produce_batch
from .questions import Rest
from .visitor import Visitor

logger = logging.getLogger(__name__)

ORIGIN_HEADER = "copied-from"
"""Its value is ``TOPIC:PARTITION:OFFSET``."""
MOST_SECONDS = 600.0
MOST_READ = 4 << 30
"""Bytes of batches; a copy with a filter ends then, with the rest to go on with."""
_AT_ONCE = 500
_AT_ONCE_BYTES = 512 * 1024
_MOST_AT_ONCE = 2
_MOST_KEPT = 20
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_IN_DOUBT = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
"""After these a batch may have been written."""


@dataclasses.dataclass(frozen=True)
class CopyOrder:
    """What is to be done with each record."""

    source: str
    target: str
    keeps_partition: bool
    """Whether it goes to the partition of the same number, and else to that of its key."""
    keeps_time: bool
    """Whether it has its own timestamp, and else the present one."""
    names_origin: bool
    """Whether it gets another header, ``ORIGIN_HEADER``."""


class CopyState(enum.StrEnum):
    """How far a copy is."""

    RUNNING = "running"
    DONE = "done"
    """Everything that was read was written; something may be left beyond a bound."""
    STOPPED = "stopped"
    """By the visitor."""
    FAILED = "failed"


class CopiedRange(NamedTuple):
    """What was written of one partition of the source."""

    number: int
    first: int
    last: int
    records: int


class _CopyBatch(NamedTuple):
    """Records for one partition of the target."""

    partition: int
    records: Sequence[FoundRecord]
    data: bytearray


class Copy:
    """One copy; ``run`` does it.

    ``partitions`` is how many the target has. ``check`` raises KafkaError for who may not read the source any more.
    """

    def __init__(
        self,
        order: CopyOrder,
        given: Mapping[str, str],
        reading: CopyReading,
        partitions: int,
        kafka: KafkaRequests,
        workers: Workers,
        now_ms: Callable[[], int],
        check: Callable[[], None],
    ) -> None:
        self.order = order
        self.given = given
        """The fields of the form that asked for it."""
        self.reading = reading
        self.state = CopyState.RUNNING
        self.why = ""
        """A sentence about why it has failed, or has ended with something left."""
        self.written = 0
        self.size = 0
        """The bytes written, without framing."""
        self.in_doubt: Sequence[FoundRecord] = ()
        self._partitions = partitions
        self._kafka = kafka
        self._workers = workers
        self._now_ms = now_ms
        self._check = check
        self._copied: dict[int, CopiedRange] = {}
        self._piece: Sequence[FoundRecord] = ()
        self._acknowledged: set[int] = set()
        """The offsets of ``_piece`` that are written."""
        self._chunks = 0
        self._is_stopped = False

    @property
    def copied(self) -> list[CopiedRange]:
        """By partition of the source."""
        return sorted(self._copied.values())

    @property
    def left(self) -> list[Rest]:
        """The ranges that are to be copied yet."""
        return joined([*_runs(self._piece, self._acknowledged), *self.reading.left()])

    def stop(self) -> None:
        """End it after the batch that is under way."""
        self._is_stopped = True

    async def run(self, visitor: Visitor) -> None:
        """Copy until the end, a bound, an error, ``stop`` or the end of the visitor's session."""
        with trio.CancelScope(deadline=visitor.ends) as scope:
            visitor.scopes.add(scope)
            try:
                await self._run()
            except (KafkaError, NotFoundError) as error:
                self._fail(problem_of(error).why)
            except OSError as error:
                self._fail(f"No broker answers: {error}")
            except Exception:
                logger.exception("a copy of %s into %s has failed", self.order.source, self.order.target)
                self._fail("The console has failed. Its log says why.")
            finally:
                visitor.scopes.discard(scope)
        if scope.cancelled_caught:
            self._fail("The session has ended.")

    def _fail(self, why: str) -> None:
        self.state, self.why = CopyState.FAILED, why

    async def _run(self) -> None:
        """Raises KafkaError, OSError."""
        until = trio.current_time() + MOST_SECONDS
        while not self.reading.is_done and not self._is_stopped:
            if trio.current_time() >= until or self.reading.bytes_read >= MOST_READ:
                self.why = "It has read for long enough."
                break
            self._check()
            self._piece = await self.reading.step()
            for chunk in _chunks(self._piece):
                if self._is_stopped:
                    break
                await self._write(chunk)
            else:
                self._piece = ()
                self._acknowledged.clear()
        if self.reading.problem is not None:
            self._fail(self.reading.problem)
        else:
            self.state = CopyState.STOPPED if self._is_stopped and self.left else CopyState.DONE

    async def _write(self, chunk: Sequence[FoundRecord]) -> None:
        """Raises KafkaError."""
        self._chunks += 1
        pending = deque(await self._workers.run(self._batches, chunk))
        while pending:
            batch = pending.popleft()
            self.in_doubt = batch.records
            try:
                await produce_batch(self._kafka, self.order.target, batch.partition, batch.data)
            except KafkaError as error:
                if error.code not in _IN_DOUBT:
                    self.in_doubt = ()
                if error.code not in _TOO_LARGE or len(batch.records) == 1:
                    raise KafkaError(error.code, self._about(batch, error.message)) from None
                middle = len(batch.records) // 2
                halves = (batch.records[:middle], batch.records[middle:])
                made = [await self._workers.run(self._made, batch.partition, half) for half in halves]
                pending.extendleft(reversed(made))
            else:
                self._note(batch.records)

    def _about(self, batch: _CopyBatch, message: str | None) -> str:
        first = batch.records[0]
        what = f"{self.order.source}-{first.partition} at offset {first.offset}"
        what += (
            " was not written" if len(batch.records) == 1 else f" and {len(batch.records) - 1} more were not written"
        )
        return f"{message.rstrip('.')}: {what}." if message else f"{what}."

    def _note(self, records: Sequence[FoundRecord]) -> None:
        self.in_doubt = ()
        self.written += len(records)
        self.size += sum(map(size_of, records))
        self._acknowledged.update(record.offset for record in records)
        number, first, last = records[0].partition, records[0].offset, records[-1].offset
        before = self._copied.get(number, CopiedRange(number, first, last, 0))
        self._copied[number] = CopiedRange(
            number, min(before.first, first), max(before.last, last), before.records + len(records)
        )

    def _batches(self, chunk: Sequence[FoundRecord]) -> list[_CopyBatch]:
        """One for each partition of the target, in a worker. Records without a key go to one partition, each time the next."""
        found: dict[int, list[FoundRecord]] = {}
        for record in chunk:
            kept = record.partition if self.order.keeps_partition else None
            number = partition_of(record.key, self._partitions, self._chunks) if kept is None else kept
            found.setdefault(number, []).append(record)
        return [self._made(number, records) for number, records in found.items()]

    def _made(self, number: int, records: Sequence[FoundRecord]) -> _CopyBatch:
        now_ms = self._now_ms()
        return _CopyBatch(number, records, build_batch([self._copy_of(record, now_ms) for record in records]))

    def _copy_of(self, record: FoundRecord, now_ms: int) -> Record:
        headers = list(record.headers)
        if self.order.names_origin:
            origin = f"{self.order.source}:{record.partition}:{record.offset}"
            headers.append((ORIGIN_HEADER, origin.encode()))
        timestamp = record.timestamp if self.order.keeps_time else now_ms
        return Record(timestamp=timestamp, key=record.key, value=record.value, headers=headers)


def _chunks(piece: Sequence[FoundRecord]) -> Iterator[Sequence[FoundRecord]]:
    """At most ``_AT_ONCE`` records each, or ``_AT_ONCE_BYTES``, one record at least."""
    chunk: list[FoundRecord] = []
    size = 0
    for record in piece:
        if chunk and (len(chunk) == _AT_ONCE or size + size_of(record) > _AT_ONCE_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(record)
        size += size_of(record)
    if chunk:
        yield chunk


def _runs(piece: Iterable[FoundRecord], written: set[int]) -> Iterator[Rest]:
    """The ranges of a piece between the records that are written."""
    run: Rest | None = None
    for record in piece:
        if record.offset not in written:
            run = Rest(record.partition, record.offset if run is None else run.low, record.offset + 1)
        elif run is not None:
            yield run
            run = None
    if run is not None:
        yield run


def joined(ranges: Iterable[Rest]) -> list[Rest]:
    """Those that follow one another without a gap made one."""
    found: list[Rest] = []
    for each in ranges:
        if found and found[-1].number == each.number and found[-1].high == each.low:
            found[-1] = found[-1]._replace(high=each.high)
        else:
            found.append(each)
    return found


class TooManyCopiesError(Exception):
    """So many are under way that no other is begun."""


class Copies:
    """The copies of one console; ``run`` beside its pages. The last ones are kept, for their pages."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._kept: dict[int, tuple[Copy, Visitor]] = {}
        self._count = 0

    async def run(self) -> None:
        """Until cancelled, which ends the copies that are under way."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await trio.sleep_forever()

    def start(self, copy: Copy, visitor: Visitor) -> int:
        """The number of a copy that has begun. Raises TooManyCopiesError."""
        under_way = sum(each.state is CopyState.RUNNING for each, _ in self._kept.values())
        if self._nursery is None or under_way >= _MOST_AT_ONCE:
            raise TooManyCopiesError(f"{under_way} copies are under way: wait for one of them, or stop it.")
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[
                next(number for number, (each, _) in self._kept.items() if each.state is not CopyState.RUNNING)
            ]
        self._count += 1
        self._kept[self._count] = copy, visitor
        self._nursery.start_soon(copy.run, visitor)  # as the visitor: a task has the context of who starts it
        return self._count

    def find(self, source: str, number: int, visitor: Visitor) -> Copy:
        """A copy of a topic that this visitor has begun. Raises NotFoundError."""
        copy, owner = self._kept.get(number, (None, None))
        if copy is None or owner is None or copy.order.source != source or owner.name != visitor.name:
            raise NotFoundError(f"No copy {number} of {source} is remembered.")
        return copy
