"""``ottla produce``: reads lines, sends records, and fails when one of them was not written.

A record that is refused ends the run: what comes after it in the input is not sent. In a transaction nothing of the run
is then to be seen by consumers that read committed records.
"""

from __future__ import annotations

import codecs
import dataclasses
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import kafka.errors

from ....base.wording import counted, plural
from ..client import ClusterConnection, NoBrokerError, pairs
from ..cluster_view import refusing_acks_all
from ..output import progress
from ..running import ToolError, UsageError, explain
from .input_records import InputRecord, from_json, from_line
from .target_topic import check_target

_MAX_BLOCK_MS = 15_000
_CLOSE_S = 10
_SHOW_EVERY = 1000
_SHOWN_PLACES = 10


@dataclasses.dataclass(frozen=True)
class ProduceOptions:
    """The options."""

    topic: str
    files: tuple[Path, ...]
    key: str | None
    key_separator: str | None
    headers: tuple[str, ...]
    tombstones: bool
    as_json: bool
    partition: int | None
    rate: float | None
    acks: str
    compression: str
    transactional_id: str | None
    quiet: bool

    @property
    def is_typed(self) -> bool:
        """Whether a person types the records."""
        return not self.files and sys.stdin.isatty()


def produce(connection: ClusterConnection, plan: ProduceOptions) -> None:
    """Send everything and wait until it is written. Raises ToolError, which tells how much was written before."""
    records = read_records(plan)
    check_target(connection, plan.topic)
    is_transactional = plan.transactional_id is not None
    producer = connection.producer(
        acks="all" if is_transactional else plan.acks if plan.acks == "all" else int(plan.acks),
        compression_type=None if plan.compression == "none" else plan.compression,
        enable_idempotence=is_transactional or plan.acks == "all",
        max_block_ms=_MAX_BLOCK_MS,
        transactional_id=plan.transactional_id,
    )
    sender = RecordSender(producer, plan)
    try:
        if is_transactional:
            producer.init_transactions()
            producer.begin_transaction()
        try:
            sender.send_all(records)
            sender.wait()
        except BaseException as error:
            if is_transactional:
                producer.abort_transaction()
            else:
                producer.close(timeout=_CLOSE_S)  # what is under way is counted, too
            if isinstance(error, UsageError) or not isinstance(error, ToolError | kafka.errors.KafkaError | OSError):
                raise
            why = _what_is_wrong(connection, plan.topic) if sender.is_out_of_time else None
            raise ToolError(f"{why or explain(error)} ({_written(sender, is_transactional)})") from error
        if is_transactional:
            producer.commit_transaction()
            sender.check()
    finally:
        producer.close(timeout=_CLOSE_S)
    if not plan.quiet:
        print(f"{counted(sender.sent, 'record')} written to {plan.topic}{sender.places()}", file=sys.stderr)


def _what_is_wrong(connection: ClusterConnection, topic: str) -> str | None:
    """What the client has kept to itself while it tried again and again."""
    try:
        with closing(connection.admin()) as admin:
            why = refusing_acks_all(admin, topic)
    except (NoBrokerError, kafka.errors.KafkaError):
        return None
    except ToolError as error:
        why = str(error)
    return why and f"a record was not written to {topic}: {why}"


def _written(sender: RecordSender, is_transactional: bool) -> str:
    if is_transactional:
        return "the transaction was aborted, and nothing was written"
    count = sender.acknowledged
    return f"{count or 'no'} {plural(count or 1, 'record')} {plural(count or 1, 'was', 'were')} written"


@dataclasses.dataclass
class Written:
    """What was acknowledged of one partition. Without acks nothing is known of offsets: they are -1."""

    count: int = 0
    first: int = -1
    last: int = -1

    def add(self, offset: int) -> None:
        """One more record."""
        self.first = offset if self.count == 0 else min(self.first, offset)
        self.last = max(self.last, offset)
        self.count += 1

    def where(self, partition: int) -> str:
        """The partition, and the offsets that are known."""
        if self.first < 0:
            return f"in partition {partition}"
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"in partition {partition} at {offsets}"


class RecordSender:
    """Sends records at the wanted rate and keeps the first failure."""

    def __init__(self, producer: Any, plan: ProduceOptions) -> None:
        self._producer = producer
        self._plan = plan
        self._failure: BaseException | None = None
        self._written: dict[int, Written] = {}
        self.sent = 0

    @property
    def acknowledged(self) -> int:
        """How many records are known to be written."""
        return sum(written.count for written in self._written.values())

    def places(self) -> str:
        """Where the records are that are known to be written, in words to go on with."""
        shown = [f"{counted(w.count, 'record')} {w.where(number)}" for number, w in sorted(self._written.items())]
        if len(shown) == 1:
            ((number, only),) = self._written.items()
            return f": {only.where(number)}"
        more = f", … ({len(shown)} partitions)" if len(shown) > _SHOWN_PLACES else ""
        return f": {', '.join(shown[:_SHOWN_PLACES])}{more}" if shown else ""

    def send_all(self, records: Iterator[InputRecord]) -> None:
        """Raises ToolError for the first record that is refused."""
        rate, start = self._plan.rate, time.monotonic()
        # A bar would be drawn over what is typed.
        is_wanted = not self._plan.is_typed and not self._plan.quiet
        with progress(f"to {self._plan.topic}", None, is_wanted=is_wanted) as show:
            for record in records:
                if rate is not None:
                    delay = start + self.sent / rate - time.monotonic()
                    if delay > 0:
                        time.sleep(delay)
                self._send(record)
                self.sent += 1
                if self.sent % _SHOW_EVERY == 0:
                    show(self.sent)
                self.check()

    @property
    def is_out_of_time(self) -> bool:
        """Whether a record was given up that the client had tried to send for long."""
        return isinstance(self._failure, kafka.errors.KafkaTimeoutError)

    def wait(self) -> None:
        """Until all that was sent is written. Raises ToolError."""
        self._producer.flush()
        self.check()

    def check(self) -> None:
        """Raises ToolError when a record was refused."""
        if self._failure is not None:
            raise ToolError(f"a record was not written to {self._plan.topic}: {explain(self._failure)}")

    def _send(self, record: InputRecord) -> None:
        why = _unsendable(record)
        if why is not None:
            raise ToolError(f"a record was not written to {self._plan.topic}: {why}, which kafka-python cannot send")
        partition = self._plan.partition if record.partition is None else record.partition
        try:
            future = self._producer.send(
                self._plan.topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=partition,
                timestamp_ms=record.timestamp_ms,
            )
        except (kafka.errors.KafkaError, ValueError) as error:
            self._failure = self._failure or error
            raise ToolError(f"a record was not written to {self._plan.topic}: {explain(error)}") from error
        future.add_callback(self._count)
        future.add_errback(self._note)

    def _count(self, metadata: Any) -> None:
        self._written.setdefault(metadata.partition, Written()).add(metadata.offset)

    def _note(self, error: BaseException) -> None:
        self._failure = self._failure or error


def _unsendable(record: InputRecord) -> str | None:
    """What Kafka would take and the client does not."""
    if record.key is None and record.value is None:
        return "it has neither key nor value"
    if any(value is None for _, value in record.headers):
        return "it has a header without a value"
    return None


def read_records(plan: ProduceOptions) -> Iterator[InputRecord]:
    """The records of the input, as they come. Raises ToolError that tells the line."""
    separator = None if plan.key_separator is None else codecs.decode(plan.key_separator, "unicode_escape").encode()
    headers = tuple((name, value.encode()) for name, value in pairs("--header", plan.headers).items())
    key = None if plan.key is None else plan.key.encode()
    for name, number, line in _lines(plan):
        try:
            record = from_json(line) if plan.as_json else from_line(line, separator)
        except ToolError as error:
            raise ToolError(f"{name}, line {number}: {error}") from None
        if headers:
            record = record._replace(headers=record.headers + headers)
        if key is not None and record.key is None:
            record = record._replace(key=key)
        yield record._replace(value=None) if plan.tombstones and record.value == b"" else record


def _lines(plan: ProduceOptions) -> Iterator[tuple[str, int, bytes]]:
    if not plan.files:
        if plan.is_typed:
            print("Each line is a record; end with Ctrl-D.", file=sys.stderr)
        yield from _lines_of("standard input", sys.stdin.buffer)
    for path in plan.files:
        with path.open("rb") as file:
            yield from _lines_of(str(path), file)


def _lines_of(name: str, file: BinaryIO) -> Iterator[tuple[str, int, bytes]]:
    for number, line in enumerate(file, 1):
        yield name, number, line.removesuffix(b"\n").removesuffix(b"\r")
