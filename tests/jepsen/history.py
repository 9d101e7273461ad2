"""The history of a run: the requests of clients, their outcomes, and the records read, in the order in which they happened.

One line of JSON for each event, so that a history can be checked and read again long after its run. All clients are
threads of one process and write under one lock: the event of an earlier line happened before that of a later one, or at the
same time. ``invoke`` is recorded *before* a call, and ``ok``, ``fail`` and ``info`` *after* it, so if the end of one call is
before the beginning of another in the history, it was so in reality.

``info`` is an unknown outcome: a request that was not answered in time may have been executed, or be executed later. ``fail``
is recorded only if the operation certainly has not happened and never will.
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
    """The known outcome of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Act(StrEnum):
    """The operations of processes."""

    SEND = "send"
    COMMIT = "commit"
    """The commit of a transaction."""
    ABORT = "abort"
    POLL = "poll"
    """Recorded only when it returned records; one event for each partition."""
    ASSIGN = "assign"
    """All partitions that a member of a group now has. Its next poll may be at any offset."""
    REVOKE = "revoke"
    FINAL = "final"
    """Everything from the beginning of the partition to ``offset``, its end, has been polled by this process."""
    FAULT = "fault"
    """An action of the nemesis; not checked."""


READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"
PROCESSED = "processed"
"""In place of an isolation level: the ``FINAL`` of a consume-transform-produce group is its committed offset."""


class Read(NamedTuple):
    """A record of a poll."""

    offset: int
    value: int


@dataclasses.dataclass(frozen=True)
class Event:
    """A line of a history. Values are numbers that are unique to each send of the run.

    ``time`` is in seconds since the beginning. ``offset`` is where a record was written, if its producer knows;
    ``source`` is the value from which consume-transform-produce made this one. ``transaction`` is the unique name of the
    transaction to which a send, commit or abort belongs. ``note`` is for readers.
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
    """The event as JSON, without empty fields."""
    fields = {name: value for name, value in vars(event).items() if value is not None and value != ()}
    return json.dumps(fields, separators=(",", ":"))


def from_line(line: str) -> Event:
    """The event in a line. Raises ValueError or TypeError if it is malformed."""
    fields: dict[str, Any] = json.loads(line)
    fields["type"] = Type(fields["type"])
    fields["act"] = Act(fields["act"])
    if "partition" in fields:
        fields["partition"] = Partition(*fields["partition"])
    fields["partitions"] = tuple(Partition(*each) for each in fields.get("partitions", ()))
    fields["reads"] = tuple(Read(*each) for each in fields.get("reads", ()))
    return Event(**fields)


def read_history(path: Path) -> Iterator[Event]:
    """Read the events of a file."""
    with path.open() as lines:
        for line in lines:
            yield from_line(line)


def write_history(path: Path, events: Iterable[Event]) -> None:
    """Write the events to a file."""
    path.write_text("".join(to_line(event) + "\n" for event in events))


class Recorder:
    """Writes a history to ``file``, from any thread; also gives out unique numbers."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._next = 0
        self.events: list[Event] = []

    def add(self, process: str, type: Type, act: Act, **fields: Any) -> None:
        """Record an event with the current time."""
        with self._lock:
            event = Event(process, type, act, round(time.monotonic() - self._started, 6), **fields)
            self.events.append(event)
            self._file.write(to_line(event) + "\n")
            self._file.flush()

    def number(self) -> int:
        """A number that was not given out before, for a value or a name."""
        with self._lock:
            self._next += 1
            return self._next
