"""Indexes a history by value, transaction and partition, for the checks.

A value is *acknowledged* when its send was acknowledged and, if it belongs to a transaction, also the commit. It is
*impossible* when its send or its transaction has certainly failed. All other values may be there or not.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from .history import READ_COMMITTED, Act, Event, Partition, Read, Type


@dataclasses.dataclass
class Send:
    """The send of one value; ``order`` counts the sends of all processes as they were invoked."""

    process: str
    partition: Partition
    value: int
    order: int
    transaction: str | None
    source: int | None
    outcome: Type = Type.INFO
    offset: int | None = None


@dataclasses.dataclass
class Transaction:
    """``commit_invoked`` is the index of that event in the history, None if there was no commit."""

    name: str
    sends: list[Send] = dataclasses.field(default_factory=list)
    commit_invoked: int | None = None
    commit: Type | None = None
    abort: Type | None = None

    @property
    def is_committed(self) -> bool:
        return self.commit is Type.OK

    @property
    def is_aborted(self) -> bool:
        """Whether it is certainly aborted: the abort succeeded, or there was no commit."""
        return self.commit is not Type.OK and (self.abort is Type.OK or self.commit_invoked is None)


@dataclasses.dataclass(frozen=True)
class Poll:
    """The records of one poll from one partition; ``index`` is that of its event."""

    index: int
    process: str
    partition: Partition
    isolation: str
    reads: tuple[Read, ...]


@dataclasses.dataclass(frozen=True)
class Final:
    """A process has read a partition from its beginning to ``end``."""

    process: str
    partition: Partition
    isolation: str
    end: int


class Operations:
    """All operations of a history."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events: Sequence[Event] = list(events)
        self.sends: dict[int, Send] = {}
        self.transactions: dict[str, Transaction] = {}
        self.polls: list[Poll] = []
        self.finals: list[Final] = []
        self.offsets: dict[Partition, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        """The values that were acknowledged or read at an offset."""
        self.places: dict[int, set[tuple[Partition, int]]] = defaultdict(set)
        """The places at which a value was acknowledged or read."""
        self.seen: dict[int, set[str]] = defaultdict(set)
        """The isolation levels at which a value was read."""
        self.seen_to: dict[Partition, int] = {}
        """The highest offset that was read of a partition."""
        for index, event in enumerate(self.events):
            self._take(index, event)

    def _take(self, index: int, event: Event) -> None:
        match event.act:
            case Act.SEND:
                self._take_send(event)
            case Act.COMMIT | Act.ABORT:
                self._take_end(index, event)
            case Act.POLL:
                self._take_poll(index, event)
            case Act.FINAL:
                assert event.partition is not None and event.isolation is not None and event.offset is not None
                self.finals.append(Final(event.process, event.partition, event.isolation, event.offset))
            case _:
                pass

    def _take_send(self, event: Event) -> None:
        assert event.value is not None and event.partition is not None, event
        if event.type is Type.INVOKE:
            assert event.value not in self.sends, f"{event.value} is sent twice: a history cannot be checked then"
            send = Send(event.process, event.partition, event.value, len(self.sends), event.transaction, event.source)
            self.sends[event.value] = send
            if event.transaction is not None:
                self._transaction(event.transaction).sends.append(send)
            return
        send = self.sends[event.value]
        send.outcome = event.type
        if event.type is Type.OK and event.offset is not None:
            send.offset = event.offset
            self._is_at(send.partition, event.offset, event.value)

    def _take_end(self, index: int, event: Event) -> None:
        assert event.transaction is not None, event
        transaction = self._transaction(event.transaction)
        if event.act is Act.ABORT:
            transaction.abort = event.type if event.type is not Type.INVOKE else transaction.abort
        elif event.type is not Type.INVOKE:
            transaction.commit = event.type
        elif transaction.commit_invoked is None:
            transaction.commit_invoked = index

    def _take_poll(self, index: int, event: Event) -> None:
        assert event.partition is not None and event.isolation is not None, event
        self.polls.append(Poll(index, event.process, event.partition, event.isolation, event.reads))
        for offset, value in event.reads:
            self._is_at(event.partition, offset, value)
            self.seen[value].add(event.isolation)
            self.seen_to[event.partition] = max(offset, self.seen_to.get(event.partition, -1))

    def _is_at(self, partition: Partition, offset: int, value: int) -> None:
        self.offsets[partition][offset].add(value)
        self.places[value].add((partition, offset))

    def _transaction(self, name: str) -> Transaction:
        return self.transactions.setdefault(name, Transaction(name))

    def transaction_of(self, value: int) -> Transaction | None:
        """The transaction in which a value was sent."""
        send = self.sends.get(value)
        return None if send is None or send.transaction is None else self.transactions[send.transaction]

    def is_acknowledged(self, send: Send) -> bool:
        """Whether it must be there: it was acknowledged, or another part of its transaction was read."""
        if send.outcome is not Type.OK:
            return False
        if send.transaction is None:
            return True
        transaction = self.transactions[send.transaction]
        return transaction.is_committed or self.was_seen_committed(transaction)

    def was_seen_committed(self, transaction: Transaction) -> bool:
        """Whether a read_committed reader has seen a part of it."""
        return any(READ_COMMITTED in self.seen[each.value] for each in transaction.sends)

    def end_of_final(self, partition: Partition, isolation: str) -> int | None:
        """The end of a final read; None if there was none."""
        ends = [each.end for each in self.finals if (each.partition, each.isolation) == (partition, isolation)]
        return max(ends, default=None)
