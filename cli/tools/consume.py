"""``ottla consume``: prints records until it is told to end, or what it prints is not read any more.

Without a group the partitions are assigned, and nothing is committed. As a member of a group it commits what it has
printed, and never more: records that were fetched but not printed come again.
"""

from __future__ import annotations

import dataclasses
import select
import sys
import time
from collections.abc import Iterable
from typing import Any

import kafka.errors
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from .client import Connection
from .record_format import Formatter, json_line, template_formatter, value_line
from .running import ToolError, UsageError
from .times import parse_time_ms

_POLL_MS = 200


@dataclasses.dataclass(frozen=True)
class Plan:
    """The options."""

    topic: str
    partitions: tuple[int, ...]
    group: str | None
    from_beginning: bool
    offset: str | None
    from_timestamp: str | None
    template: str | None
    as_json: bool
    max_messages: int | None
    timeout_ms: int | None
    until_end: bool
    isolation_level: str

    def check(self) -> None:
        """Raises UsageError for options that exclude each other, or make no sense."""
        if self.from_beginning + (self.offset is not None) + (self.from_timestamp is not None) > 1:
            raise UsageError("--from-beginning, --offset and --from-timestamp exclude each other")
        if self.group is not None and (self.partitions or self.offset is not None or self.from_timestamp is not None):
            raise UsageError(
                "a group says where to read: --partition, --offset and --from-timestamp don't go with --group "
                "('ottla groups reset-offsets' moves a group)"
            )
        if self.template is not None and self.as_json:
            raise UsageError("--format and --json exclude each other")
        if self.offset is not None and not self.offset.removeprefix("-").isdigit():
            raise UsageError(f"--offset takes a number, not {self.offset!r}")

    def formatter(self) -> Formatter:
        """How a record is printed. Raises UsageError."""
        if self.as_json:
            return json_line
        return value_line if self.template is None else template_formatter(self.template)


def consume(connection: Connection, plan: Plan) -> None:
    """Print records. Raises ToolError."""
    plan.check()
    formatter = plan.formatter()
    consumer = connection.consumer(
        group_id=plan.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest" if plan.from_beginning else "latest",
        isolation_level=plan.isolation_level,
        allow_auto_create_topics=False,
    )
    try:
        numbers = consumer.partitions_for_topic(plan.topic)
        if not numbers:
            raise ToolError(f"there is no topic {plan.topic}; 'ottla topics list' shows those that are there")
        printer = Printer(consumer, plan, formatter)
        if plan.group is not None:
            consumer.subscribe([plan.topic])
            # Waits for metadata asked for before: kafka-python 3.0 forgets the topic with them, and a member that leads
            # its group and joins just then gives all members nothing to read, for good.
            consumer.topics()
        else:
            _assign(consumer, plan, sorted(numbers))
        ends = consumer.end_offsets([TopicPartition(plan.topic, n) for n in numbers]) if plan.until_end else None
        try:
            printer.run(ends)
        except KeyboardInterrupt:
            pass
        finally:
            printer.commit()
    finally:
        consumer.close(autocommit=False)


def _assign(consumer: Any, plan: Plan, numbers: list[int]) -> None:
    unknown = sorted(set(plan.partitions) - set(numbers))
    if unknown:
        raise ToolError(f"{plan.topic} has no partition {unknown[0]}, only 0 to {numbers[-1]}")
    wanted = [TopicPartition(plan.topic, number) for number in plan.partitions or numbers]
    consumer.assign(wanted)
    if plan.from_beginning:
        consumer.seek_to_beginning(*wanted)
    elif plan.from_timestamp is not None:
        found = consumer.offsets_for_times(dict.fromkeys(wanted, parse_time_ms(plan.from_timestamp)))
        ends = consumer.end_offsets(wanted)
        for where in wanted:
            consumer.seek(where, found[where].offset if found.get(where) else ends[where])
    elif plan.offset is not None:
        starts, ends = consumer.beginning_offsets(wanted), consumer.end_offsets(wanted)
        offset = int(plan.offset)
        for where in wanted:
            goal = ends[where] + offset if plan.offset.startswith("-") else offset
            consumer.seek(where, min(max(goal, starts[where]), ends[where]))
    else:
        consumer.seek_to_end(*wanted)


class Printer:
    """Polls, prints and commits: before each poll, in which the group may give partitions to others, all is committed."""

    def __init__(self, consumer: Any, plan: Plan, formatter: Formatter) -> None:
        self._consumer = consumer
        self._plan = plan
        self._formatter = formatter
        self._printed = 0
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._stopped_early = False

    def run(self, ends: dict[TopicPartition, int] | None) -> None:
        """Until one of the plan's ends is reached. Raises BrokenPipeError when its output is not read any more."""
        last_record = time.monotonic()
        while True:
            if ends is not None and self._is_behind(ends):
                return
            polled = self._consumer.poll(timeout_ms=_POLL_MS)
            for where, records in polled.items():
                if self._print(where, records):
                    return
            now = time.monotonic()
            if polled:
                last_record = now
                sys.stdout.buffer.flush()
            elif self._plan.timeout_ms is not None and now - last_record >= self._plan.timeout_ms / 1000:
                return
            if not polled and _is_closed(sys.stdout.fileno()):
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

    def _print(self, where: TopicPartition, records: Iterable[Any]) -> bool:
        """Print records; whether they were the last wanted ones."""
        for record in records:
            sys.stdout.buffer.write(self._formatter(record))
            self._next[where] = record.offset + 1
            self._printed += 1
            if self._printed == self._plan.max_messages:
                sys.stdout.buffer.flush()
                self._stopped_early = True
                return True
        return False

    def _is_behind(self, ends: dict[TopicPartition, int]) -> bool:
        assigned = self._consumer.assignment()
        return bool(assigned) and all(self._consumer.position(where) >= ends.get(where, 0) for where in assigned)


def _is_closed(descriptor: int) -> bool:
    """Whether standard output is a pipe that is not read any more: a write would tell, but there is nothing to write."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)  # macOS does not look at a pipe of which nothing is asked
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
