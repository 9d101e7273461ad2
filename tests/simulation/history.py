"""What the clients of a simulation have sent, and the responses that they got.

Every record has a unique value, so that it can be identified wherever it is found; a tombstone, which has
no value, has its name in a header.
"""

from __future__ import annotations

import dataclasses
import enum

from ottla.wire.records import Record

TopicPartition = tuple[str, int]
NAME_HEADER = "name"


class Outcome(enum.Enum):
    """How a transaction ended, as far as its producer knows. ``UNKNOWN``: committed or aborted, but as a whole."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclasses.dataclass
class Transaction:
    """``offsets`` are (group, number), a commit of offset ``number`` for partition 0 of the group's topic."""

    name: str
    outcome: Outcome = Outcome.ABORTED
    records: list[Sent] = dataclasses.field(default_factory=list)
    offsets: tuple[str, int] | None = None


@dataclasses.dataclass
class Sent:
    """A record that was sent. ``offset`` is the one in the producer's response; None without a response."""

    name: bytes
    key: bytes | None
    value: bytes | None
    timestamp: int
    partition: TopicPartition
    producer: str
    number: int
    transaction: Transaction | None = None
    offset: int | None = None

    @property
    def is_committed(self) -> bool:
        """Whether consumers must see it."""
        transaction = self.transaction
        return self.offset is not None and (transaction is None or transaction.outcome is Outcome.COMMITTED)

    def as_record(self) -> Record:
        headers = [] if self.value is not None else [(NAME_HEADER, self.name)]
        return Record(key=self.key, value=self.value, timestamp=self.timestamp, headers=headers)


class History:
    """All records that were sent."""

    def __init__(self) -> None:
        self.sent: dict[bytes, Sent] = {}
        self.transactions: list[Transaction] = []
        self.deleted_up_to: dict[TopicPartition, int] = {}
        """The highest offset of DeleteRecords requests."""
        self.commits: dict[tuple[str, TopicPartition], list[Commit]] = {}
        """Offset commits of groups, in the order in which they were sent."""
        self.producer_ids: dict[int, str] = {}
        """The producers that are not transactional, by the ids that they were given."""
        self._numbers: dict[tuple[str, TopicPartition], int] = {}

    def record(
        self,
        producer: str,
        partition: TopicPartition,
        timestamp: int,
        *,
        key: bytes | None = None,
        is_tombstone: bool = False,
        padding: int = 0,
        transaction: Transaction | None = None,
    ) -> Sent:
        """A new record, before it is sent for the first time."""
        number = self._numbers[producer, partition] = self._numbers.get((producer, partition), 0) + 1
        name = f"{producer}/{partition[0]}-{partition[1]}/{number}".encode()
        value = None if is_tombstone else name + b"/" + b"." * padding
        sent = Sent(name, key, value, timestamp, partition, producer, number, transaction)
        self.sent[name] = sent
        if transaction is not None:
            transaction.records.append(sent)
        return sent

    def find(self, record: Record) -> Sent | None:
        """The sent record with the name of this one; None for bytes that were not sent."""
        if record.value is not None:
            name = bytes(record.value).rpartition(b"/")[0]
        else:
            name = bytes(dict(record.headers).get(NAME_HEADER) or b"")
        sent = self.sent.get(name)
        if sent is None or sent.value != record.value or sent.key != record.key or sent.timestamp != record.timestamp:
            return None
        return sent


@dataclasses.dataclass
class Commit:
    """One OffsetCommit; ``answered`` is when it was acknowledged, None when it was not."""

    offset: int
    sent: float
    answered: float | None = None
    was_refused: bool = False
