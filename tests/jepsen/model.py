"""A correct queue with clients, and the history of their operations, in which a checker must find no errors.

Numbers drive it, so that hypothesis can draw and shrink what happens. ``corrupted`` histories are made from correct ones.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from .history import READ_COMMITTED, READ_UNCOMMITTED, Act, Event, Partition, Read, Type

PARTITIONS = (Partition("t", 0), Partition("t", 1))
PRODUCERS = ("p", "q")
READERS = (("c", READ_COMMITTED), ("d", READ_COMMITTED), ("u", READ_UNCOMMITTED))


@dataclasses.dataclass
class Record:
    value: int
    transaction: str | None


class Queue:
    """``events`` is the history so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._logs: dict[Partition, list[Record | None]] = defaultdict(list)  # None: a transaction's end marker
        self._open: dict[str, str] = {}
        self._in: dict[str, set[Partition]] = defaultdict(set)
        self._state: dict[str, Act | None] = {}
        self._positions: dict[tuple[str, Partition], int] = defaultdict(int)
        self._values = iter(range(1, 1_000_000))

    # What producers do

    def begin(self, process: str) -> None:
        """Begin a transaction, if none is open."""
        if process not in self._open:
            self._open[process] = f"{process}/{len(self._state)}"
            self._state[self._open[process]] = None

    def send(self, process: str, partition: Partition, outcome: Type, *, is_done: bool) -> None:
        """Send one value. ``is_done``: whether a send with unknown outcome is executed; in a transaction every send succeeds."""
        value = next(self._values)
        transaction = self._open.get(process)
        if transaction is not None:
            outcome = Type.OK
            self._in[transaction].add(partition)
        about = {"partition": partition, "value": value, "transaction": transaction}
        self._add(process, Type.INVOKE, Act.SEND, **about)
        log = self._logs[partition]
        if outcome is Type.OK or (outcome is Type.INFO and is_done):
            log.append(Record(value, transaction))
        offset = len(log) - 1 if outcome is Type.OK else None
        self._add(process, outcome, Act.SEND, offset=offset, **about)

    def finish(self, process: str, act: Act, outcome: Type) -> None:
        """Commit or abort its transaction, if one is open; ends with unknown outcome are recorded as unknown."""
        transaction = self._open.pop(process, None)
        if transaction is None:
            return
        self._add(process, Type.INVOKE, act, transaction=transaction)
        self._state[transaction] = act
        for partition in self._in[transaction]:
            self._logs[partition].append(None)
        self._add(process, outcome, act, transaction=transaction)

    # What consumers do

    def poll(self, process: str, partition: Partition, isolation: str, most: int) -> None:
        """Poll the next records."""
        start = self._positions[process, partition]
        visible = [each for each in self._visible(partition, isolation) if each.offset >= start][:most]
        if visible:
            self._positions[process, partition] = visible[-1].offset + 1
            self._add(process, Type.OK, Act.POLL, partition=partition, isolation=isolation, reads=tuple(visible))

    def rebalance(self, process: str, back: int) -> None:
        """Continue from the current position, or a little before."""
        self._add(process, Type.OK, Act.ASSIGN, group=process, generation=len(self.events), partitions=PARTITIONS)
        for partition in PARTITIONS:
            self._positions[process, partition] = max(0, self._positions[process, partition] - back)

    def finals(self) -> None:
        """End all transactions, and read everything, as final reads."""
        for process in PRODUCERS:
            self.finish(process, Act.ABORT, Type.OK)
        for process, isolation in (("final-c", READ_COMMITTED), ("final-u", READ_UNCOMMITTED)):
            for partition in PARTITIONS:
                self.poll(process, partition, isolation, 1_000_000)
                about = {"partition": partition, "isolation": isolation, "offset": len(self._logs[partition])}
                self._add(process, Type.OK, Act.FINAL, **about)

    def _visible(self, partition: Partition, isolation: str) -> Iterator[Read]:
        for offset, record in enumerate(self._logs[partition]):
            if record is None:
                continue
            act = Act.COMMIT if record.transaction is None else self._state[record.transaction]
            if isolation == READ_COMMITTED and act is None:
                return  # the last stable offset
            if isolation == READ_UNCOMMITTED or act is Act.COMMIT:
                yield Read(offset, record.value)

    def _add(self, process: str, type: Type, act: Act, **fields: object) -> None:
        self.events.append(Event(process, type, act, float(len(self.events)), **fields))  # type: ignore[arg-type]


# --- Histories of queues that do something wrong ----------------------------------------------------------------------


def acknowledged(events: Sequence[Event]) -> list[Event]:
    """The acknowledgements of sends that belong to no transaction, or to one whose commit was acknowledged."""
    committed = {event.transaction for event in events if (event.act, event.type) == (Act.COMMIT, Type.OK)}
    return [
        event
        for event in events
        if (event.act, event.type) == (Act.SEND, Type.OK)
        and (event.transaction is None or event.transaction in committed)
    ]


def without(events: Sequence[Event], value: int) -> list[Event]:
    """A history in which one value is never read."""
    return [
        dataclasses.replace(event, reads=tuple(read for read in event.reads if read.value != value)) for event in events
    ]


def doubled(events: Sequence[Event], value: int) -> list[Event]:
    """A history in which final reads of a partition find a value again at its end."""
    (partition,) = {event.partition for event in events if event.value == value}
    changed = []
    for event in events:
        if event.process.startswith("final") and event.act is Act.POLL and event.partition == partition:
            event = dataclasses.replace(event, reads=(*event.reads, Read(event.reads[-1].offset + 1000, value)))
        changed.append(event)
    return changed


def replaced(events: Sequence[Event], value: int, other: int) -> list[Event]:
    """A history in which final reads find another value in place of one."""
    return [
        dataclasses.replace(
            event,
            reads=tuple(read._replace(value=other) if read.value == value else read for read in event.reads),
        )
        if event.process.startswith("final")
        else event
        for event in events
    ]
