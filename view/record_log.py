"""The interface of a partition that is read record by record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ..log.transaction_index import AbortedTxn
from ..log.validation import MAX_DECOMPRESSED_BYTES
from ..wire.records import RecordBatch


class Batches(NamedTuple):
    """Whole batches in the order of their offsets, and the aborted transactions that reach into them."""

    batches: Sequence[RecordBatch]
    aborted: Sequence[AbortedTxn]


class RecordLog(Protocol):
    """A partition's records from ``start`` to before ``end``, the high watermark, both as of the last ``refresh``.

    From ``last_stable`` on, the last stable offset, there may be records of open transactions.
    """

    @property
    def number(self) -> int: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def last_stable(self) -> int: ...

    async def refresh(self) -> None:
        """See where the log starts and ends now. Raises KafkaError, OSError."""
        ...

    async def read(self, start: int, end: int, max_bytes: int) -> Batches | None:
        """The batches with the offsets from ``start`` on, up to ``end`` or a little further; None where there are none.

        At least one whole batch, whatever its size; the first one may begin before ``start``. Raises KafkaError, OSError.
        """
        ...

    async def offset_at(self, time_ms: int) -> int | None:
        """The first offset with a timestamp as large, or larger; None where there is none. Raises KafkaError, OSError."""
        ...


def first_timestamp(batches: Iterable[RecordBatch], offset: int) -> int | None:
    """The timestamp, in ms, of the first record from ``offset`` on; None where there is none. Raises KafkaError."""
    for batch in batches:
        if batch.last_offset < offset or batch.is_control:
            continue
        batch.check_crc()
        for record in batch.records(MAX_DECOMPRESSED_BYTES):
            if record.offset >= offset:
                return record.timestamp if record.timestamp >= 0 else None
    return None
