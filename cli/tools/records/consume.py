"""``ottla consume``: prints records up to a given limit, an interrupt, or the close of its output.

Without a group the partitions are assigned, and nothing is committed. As a member of a group it commits what it has
printed, and never more: records that were fetched but not printed come again.
"""

from __future__ import annotations

import codecs
import dataclasses
import re
import select
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import kafka.errors
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from ..client import ClusterConnection
from ..cluster_view import find_topics, no_partition
from ..nearest import no_topic
from ..running import ToolError, UsageError
from .format_template import LETTERS, SHARE_LETTERS, Formatter, template_formatter
from .offset_expressions import END, START, OffsetExpressionRange, parse_span, resolve
from .partition_offsets import ConsumerOffsets
from .record_format import json_line, value_line

_POLL_MS = 200


@dataclasses.dataclass(frozen=True)
class ConsumeOptions:
    """The options of the command."""

    topics: tuple[str, ...]
    """Those that begin with ^ are patterns."""
    partitions: tuple[int, ...]
    group: str | None
    share: str | None
    """A share group in place of ``group``."""
    offsets: tuple[str, ...]
    template: str | None
    key_separator: str | None
    show_null: bool
    as_json: bool
    max_records: int | None
    timeout_ms: int | None
    until_end: bool
    isolation_level: str
    quiet: bool

    def check(self) -> OffsetExpressionRange:
        """From where to where. Raises UsageError for options that exclude each other, or make no sense."""
        if self.share is not None:
            self._check_share()
        span = parse_span(self.offsets)
        if self.group is not None and (self.partitions or span.start not in (START, END) or span.end is not None):
            raise UsageError(
                "a group says where to read: --partitions, and an --offset other than start and end, don't go with --group "
                "('ottla groups reset-offsets' moves a group)"
            )
        if (self.template is not None) + self.as_json + (self.key_separator is not None) > 1:
            raise UsageError("--format, --json and --key-separator exclude each other")
        return span

    def _check_share(self) -> None:
        """Raises UsageError for options that a member of a share group has no use for."""
        if self.group is not None:
            raise UsageError("--group and --share exclude each other")
        if self.partitions or self.offsets or self.until_end:
            raise UsageError(
                "a share group chooses its records: --partitions, --offset and --until-end don't go with --share "
                "('ottla groups reset-offsets' moves a group, share.auto.offset.reset sets its start, "
                "--timeout-ms ends an idle read)"
            )
        if self.isolation_level != "read_uncommitted":
            raise UsageError(
                "share.isolation.level of the group says which transactions are read, not --isolation-level "
                "('ottla configs set --group')"
            )
        if any(name.startswith("^") for name in self.topics):
            raise UsageError("members of a share group name their topics: patterns don't go with --share")

    def formatter(self) -> Formatter:
        """How a record is printed. Raises UsageError."""
        null = b"NULL" if self.show_null else b""
        if self.as_json or self.template == "json":  # as rpk has it
            return json_line
        if self.key_separator is not None:
            between = codecs.decode(self.key_separator, "unicode_escape").encode()
            return lambda record: b"".join((record.key or null, between, record.value or null, b"\n"))
        if self.template is not None:
            return template_formatter(self.template, null, LETTERS if self.share is None else SHARE_LETTERS)
        return template_formatter("%s\\n", null) if null else value_line


def consume(connection: ClusterConnection, plan: ConsumeOptions) -> None:
    """Print records. Raises ToolError."""
    span = plan.check()
    formatter = plan.formatter()
    consumer = connection.consumer(
        group_id=plan.group,
        enable_auto_commit=False,
        auto_offset_reset="latest" if span.start == END else "earliest",
        isolation_level=plan.isolation_level,
        allow_auto_create_topics=False,
    )
    try:
        try:
            wanted = find_partitions(consumer, plan.topics, plan.partitions)
        except ToolError:
            check_topics(connection, [name for name in plan.topics if not name.startswith("^")])
            raise
        printer = Printer(consumer, plan, formatter)
        if plan.group is None:
            ends = _assign(consumer, span, wanted, until_end=plan.until_end)
            limits = ends or {}
        else:
            _subscribe(consumer, plan.topics)
            ends = consumer.end_offsets(wanted) if plan.until_end else None
            limits = {}  # what a member has not printed, another one would have to
        try:
            printer.run(ends, limits)
        except KeyboardInterrupt:
            pass
        finally:
            printer.commit()
    finally:
        consumer.close(autocommit=False)


def check_topics(connection: ClusterConnection, names: Sequence[str]) -> None:
    """Raises ToolError with the reason why a topic is not there for a consumer, which may be that it must not see it."""
    with closing(connection.admin()) as admin:
        find_topics(admin, names)


def find_partitions(consumer: Any, names: Sequence[str], numbers: Sequence[int]) -> list[TopicPartition]:
    """The partitions of topics, or those of them with these numbers. Raises ToolError when one is not there."""
    found: set[TopicPartition] = set()
    for name in names:
        if not name.startswith("^"):
            topics = [name]
        else:
            topics = [topic for topic in consumer.topics() if _compiled(name).match(topic)]
            if not topics:
                raise ToolError(f"no topic matches {name}; 'ottla topics list' shows the existing ones")
        for topic in topics:
            there = consumer.partitions_for_topic(topic)
            if not there:
                raise no_topic(topic, consumer.topics())
            for number in numbers or there:
                if number not in there:
                    raise no_partition(topic, number, len(there))
                found.add(TopicPartition(topic, number))
    return sorted(found)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern} is not a regular expression: {error}") from None


def _subscribe(consumer: Any, names: Sequence[str]) -> None:
    if any(name.startswith("^") for name in names):
        each = (name if name.startswith("^") else f"^{re.escape(name)}$" for name in names)
        consumer.subscribe(pattern="|".join(f"(?:{pattern})" for pattern in each))
    else:
        consumer.subscribe(list(names))
    # Waits for metadata asked for before: kafka-python 3.0 forgets the topics with them, and a member that leads
    # its group and joins just then gives all members nothing to read, for good.
    consumer.topics()


def _assign(
    consumer: Any, span: OffsetExpressionRange, wanted: list[TopicPartition], *, until_end: bool
) -> dict[TopicPartition, int] | None:
    """Have the consumer begin where it is to; before which offset each partition ends, None for no end."""
    consumer.assign(wanted)
    offsets = ConsumerOffsets(consumer)
    ends = None if span.end is None and not until_end else resolve(span.end or END, wanted, offsets)
    if span.start == START:
        consumer.seek_to_beginning(*wanted)
    elif span.start == END:
        consumer.seek_to_end(*wanted)
    else:
        for where, offset in resolve(span.start, wanted, offsets).items():
            consumer.seek(where, offset)
    return ends


class Printer:
    """Polls, prints and commits: before each poll, in which the group may give partitions to others, all is committed."""

    def __init__(self, consumer: Any, plan: ConsumeOptions, formatter: Formatter) -> None:
        self._consumer = consumer
        self._plan = plan
        self._formatter = formatter
        self._printed = 0
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._stopped_early = False
        self._is_told_of_ends = not plan.quiet and sys.stderr.isatty()
        self._told: dict[TopicPartition, int] = {}

    def run(self, ends: dict[TopicPartition, int] | None, limits: dict[TopicPartition, int]) -> None:
        """Until one of the plan's ends is reached; what is behind a limit is not printed.

        Raises BrokenPipeError when its output is not read any more.
        """
        last_record = time.monotonic()
        while True:
            if ends is not None and self._is_behind(ends):
                return
            polled = self._consumer.poll(timeout_ms=_POLL_MS)
            for where, records in polled.items():
                if self._print(where, records, limits.get(where)):
                    return
            now = time.monotonic()
            if polled:
                last_record = now
                sys.stdout.buffer.flush()
            elif self._plan.timeout_ms is not None and now - last_record >= self._plan.timeout_ms / 1000:
                return
            if self._is_told_of_ends:
                self._tell_ends()
            if not polled and is_output_closed():
                raise BrokenPipeError
            self.commit()

    def commit(self) -> None:
        """Commit what was printed, if there is a group. What could not be committed is printed again next time."""
        if self._plan.group is None:
            return
        wanted = {where: self._place(where) for where in self._consumer.assignment() if where in self._next}
        uncommitted = {where: offset for where, offset in wanted.items() if offset != self._committed.get(where)}
        if not uncommitted:
            return
        try:
            self._consumer.commit({w: OffsetAndMetadata(offset, "", -1) for w, offset in uncommitted.items()})
            self._committed.update(uncommitted)
        except kafka.errors.CommitFailedError:
            print("ottla: the group gave the partitions to others before the offsets were committed", file=sys.stderr)

    def _place(self, where: TopicPartition) -> int:
        """Behind what was printed; and behind the ends of transactions after it, unless records were fetched in vain."""
        printed = self._next[where]
        return printed if self._stopped_early else max(printed, self._consumer.position(where))

    def _print(self, where: TopicPartition, records: Iterable[Any], limit: int | None) -> bool:
        """Print records; whether they were the last wanted ones."""
        for record in records:
            if limit is not None and record.offset >= limit:
                self._consumer.pause(where)
                break
            sys.stdout.buffer.write(self._formatter(record))
            self._next[where] = record.offset + 1
            self._printed += 1
            if self._printed == self._plan.max_records:
                sys.stdout.buffer.flush()
                self._stopped_early = True
                return True
        return False

    def _is_behind(self, ends: dict[TopicPartition, int]) -> bool:
        assigned = self._consumer.assignment()
        return bool(assigned) and all(self._consumer.position(where) >= ends.get(where, 0) for where in assigned)

    def _tell_ends(self) -> None:
        """Tell a person, who would wonder, that nothing is left to print."""
        for where in self._consumer.assignment():
            end = self._consumer.highwater(where)
            if end is not None and self._told.get(where) != end and self._consumer.position(where) >= end:
                self._told[where] = end
                print(f"ottla: the end of {where.topic}-{where.partition}, at offset {end}", file=sys.stderr)


def is_output_closed() -> bool:
    """Whether standard output is a pipe that is not read any more: a write would tell, but there is nothing to write."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)  # macOS does not look at a pipe of which nothing is asked
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
