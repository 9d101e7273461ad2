"""Records found by a search, and the outcome of their transactions."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable

from ..log.transaction_index import AbortedTxn
from ..wire.records import Record, RecordBatch

KEPT_BYTES = 2048
_MOST_HEADERS = 50
_MAX_SEQUENCE = (1 << 31) - 1


class TransactionOutcome(enum.Enum):
    """The outcome of a record's transaction. The values are shown to people."""

    PLAIN = ""
    """The record is in no transaction."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    COMMIT_MARKER = "commit marker"
    ABORT_MARKER = "abort marker"
    CONTROL = "control"


@dataclasses.dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record as the log has it."""

    partition: int
    offset: int
    timestamp: int
    """In ms; -1 for none."""
    key: bytes | None
    """Possibly only its beginning, as with ``value``."""
    key_size: int
    """The size of the whole key."""
    value: bytes | None
    value_size: int
    """The size of the whole value."""
    headers: tuple[tuple[str, bytes | None], ...]
    fate: TransactionOutcome
    codec: int
    """Of the batch that the record is in."""
    batch_offset: int
    """The base offset of that batch."""
    producer_id: int
    producer_epoch: int
    sequence: int
    """-1 if the producer is not idempotent."""
    leader_epoch: int

    @property
    def is_marker(self) -> bool:
        return self.fate in (
            TransactionOutcome.COMMIT_MARKER,
            TransactionOutcome.ABORT_MARKER,
            TransactionOutcome.CONTROL,
        )


def fate_of(batch: RecordBatch, aborted: Iterable[AbortedTxn], last_stable_offset: int) -> TransactionOutcome:
    """Of a batch's records; of a control batch's each has its own."""
    if batch.is_control:
        return TransactionOutcome.CONTROL
    if not batch.is_transactional:
        return TransactionOutcome.PLAIN
    if any(
        entry.producer_id == batch.producer_id and entry.first_offset <= batch.base_offset <= entry.last_offset
        for entry in aborted
    ):
        return TransactionOutcome.ABORTED
    return TransactionOutcome.OPEN if batch.base_offset >= last_stable_offset else TransactionOutcome.COMMITTED


def found_record(
    number: int, batch: RecordBatch, record: Record, fate: TransactionOutcome, keep: int | None = KEPT_BYTES
) -> FoundRecord:
    """``number`` is the partition's, ``keep`` how many bytes of key, value and headers are kept; None: all of everything."""
    key, value = record.key, record.value
    if fate is TransactionOutcome.CONTROL:
        fate = _marker(key)
    return FoundRecord(
        number,
        record.offset,
        record.timestamp,
        None if key is None else key[:keep],
        0 if key is None else len(key),
        None if value is None else value[:keep],
        0 if value is None else len(value),
        tuple(
            (name[:keep], None if content is None else content[:keep])
            for name, content in record.headers[: None if keep is None else _MOST_HEADERS]
        ),
        fate,
        batch.compression,
        batch.base_offset,
        batch.producer_id,
        batch.producer_epoch,
        (batch.base_sequence + record.offset - batch.base_offset) & _MAX_SEQUENCE if batch.base_sequence >= 0 else -1,
        batch.partition_leader_epoch,
    )


def _marker(key: bytes | None) -> TransactionOutcome:
    """A control record's key: version int16, type int16."""
    kind = None if key is None else key[2:4]
    return {b"\0\0": TransactionOutcome.ABORT_MARKER, b"\0\1": TransactionOutcome.COMMIT_MARKER}.get(
        kind or b"", TransactionOutcome.CONTROL
    )
