"""The history of a run: what clients asked for, what they were told, and what they read, in the order in which it happened.

One line of JSON for each event, so that a history can be checked again, and looked through, long after its run. All clients are
threads of one process and write under one lock: a line that stands before another happened before it, or at the same time. So
what is recorded *before* a call (``invoke``) is early enough, and what is recorded *after* it (``ok``, ``fail``, ``info``)
late enough, to say that one came before the other.

``info`` is an outcome that is not known: a request that was not answered in time may have been done, or be done later. ``fail``
is said only of what certainly has not happened and never will.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TextIO


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class Type(StrEnum):
    """What is known of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Act(StrEnum):
    """What a process does."""

    SEND = "send"
    COMMIT = "commit"
    """Of a transaction."""
    ABORT = "abort"
    POLL = "poll"
    """Recorded when it returned something, and only then; one event for each partition."""
    ASSIGN = "assign"
    """To a member of a group: all partitions it now has. What it polls next may be anywhere."""
    REVOKE = "revoke"
    FINAL = "final"
    """Everything from the beginning of the partition to ``offset``, its end, has been polled by this process."""
    FAULT = "fault"
    """What the nemesis did; no part of what is checked."""


READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"
PROCESSED = "processed"
"""In place of an isolation level: the ``FINAL`` of a group that consumes and transforms is the offset that it has committed."""


class Read(NamedTuple):
    """A record of a poll."""

    offset: int
    value: int


@dataclasses.dataclass(frozen=True)
class Event:
    """A line of a history. Values are numbers that no other send of the run has.

    ``time`` is in seconds since the beginning. ``offset`` is where a record was written, as far as its producer was told;
    ``source`` is the value of which a consume-transform-produce made this one. ``transaction`` is given for the sends, commit and
    abort of one, and no other transaction of the run has its name. ``note`` is for people.
    """

    process: str
    type: Type
    act: Act
    time: float = 0.0
    partition: Partition | None = None
    offset: int | None = None
    value: int | None = None
    source: int | None = None
    transaction: str | None = None
    isolation: str | None = None
    reads: tuple[Read, ...] = ()
    group: str | None = None
    generation: int | None = None
    partitions: tuple[Partition, ...] = ()
    note: str | None = None


def to_line(event: Event) -> str:
    """The event as JSON, without what it has not got."""
    fields = {name: value for name, value in vars(event).items() if value is not None and value != ()}
    return json.dumps(fields, separators=(",", ":"))


def from_line(line: str) -> Event:
    """The event of a line. ValueError or TypeError where it is none."""
    fields: dict[str, Any] = json.loads(line)
    fields["type"] = Type(fields["type"])
    fields["act"] = Act(fields["act"])
    if "partition" in fields:
        fields["partition"] = Partition(*fields["partition"])
    fields["partitions"] = tuple(Partition(*each) for each in fields.get("partitions", ()))
    fields["reads"] = tuple(Read(*each) for each in fields.get("reads", ()))
    return Event(**fields)


def read_history(path: Path) -> Iterator[Event]:
    """The events of a file."""
    with path.open() as lines:
        for line in lines:
            yield from_line(line)


def write_history(path: Path, events: Iterable[Event]) -> None:
    """A file of these events."""
    path.write_text("".join(to_line(event) + "\n" for event in events))


class Recorder:
    """A history that is being written, from any thread, to ``file``; numbers that are given out once are its, too."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._next = 0
        self.events: list[Event] = []

    def add(self, process: str, type: Type, act: Act, **fields: Any) -> None:
        """Record an event, with the present time."""
        with self._lock:
            event = Event(process, type, act, round(time.monotonic() - self._started, 6), **fields)
            self.events.append(event)
            self._file.write(to_line(event) + "\n")
            self._file.flush()

    def number(self) -> int:
        """One that was not given out before: a value, or a part of a name."""
        with self._lock:
            self._next += 1
            return self._next
