"""Filtering of the records that a coordinator replays: unreadable ones are skipped and counted.

A record of an unknown type or version, or with a malformed key or value, is skipped and counted: by its batch's CRC its bytes
are what was written, so that no broker of this version will ever understand them. Kafka 4.3 skips unknown types, and of
``__transaction_state`` unknown versions; for the rest its group coordinator refuses the partition, and its transaction
coordinator serves what it has read so far.

A batch whose CRC is wrong is never skipped: its records are lost, and without them an older state would count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ..base.errors import KafkaError, ProtocolError
from ..log.validation import MAX_DECOMPRESSED_BYTES
from ..wire.records import Record, RecordBatch

T = TypeVar("T")


class SkippedRecords:
    """The records of one load that could not be understood. ``first`` says where the first of them is, and why."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def note(self, offset: int, why: str, count: int = 1) -> None:
        """Count ``count`` records from ``offset`` on."""
        if not self.count:
            self.first = f"offset {offset}: {why}"
        self.count += count


def check_batch(batch: RecordBatch) -> None:
    """Raise KafkaError(CORRUPT_MESSAGE), which names its offsets, for a batch whose CRC is wrong."""
    try:
        batch.check_crc()
    except KafkaError as error:
        offsets = f"offsets {batch.base_offset} to {batch.last_offset}"
        raise KafkaError(error.code, f"the batch of {offsets} is damaged: {error.message}") from None


def readable_records(batch: RecordBatch, skipped: SkippedRecords) -> Iterator[Record]:
    """The records of ``batch`` up to the first that cannot be told from its bytes; the others are noted."""
    seen, next_offset = 0, batch.base_offset
    try:
        for record in batch.records(MAX_DECOMPRESSED_BYTES):
            seen, next_offset = seen + 1, record.offset + 1
            yield record
    except KafkaError as error:
        skipped.note(next_offset, str(error), max(batch.record_count - seen, 1))


def decoded_records(
    batch: RecordBatch, skipped: SkippedRecords, decode: Callable[[Record], T]
) -> Iterator[tuple[int, T | None]]:
    """The records of ``batch`` with their offsets; those for which ``decode`` raises ProtocolError are None, and noted."""
    for record in readable_records(batch, skipped):
        try:
            decoded = decode(record)
        except ProtocolError as error:
            skipped.note(record.offset, str(error))
            yield record.offset, None
            continue
        yield record.offset, decoded
