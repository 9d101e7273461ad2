"""Transaction tracking during compaction, which decides the batches and end markers that may be dropped.

Batches are shown in the order of the log. Those of an aborted transaction may all go. An end marker may go once no batch
of its transaction is left before it; the marker of an aborted transaction that stays keeps its entry in the transaction
index. That a marker may go does not mean that it goes now: see the delete horizon in ``batch_filter``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..wire.control_records import MAX_CONTROL_BYTES
from ..wire.records import RecordBatch

if TYPE_CHECKING:
    from .transaction_index import AbortedTxn

_ABORT = b"\0\0"  # after the version, in the key of an end marker
_COMMIT = b"\0\1"


class CleanedTransactions:
    """``on_kept`` is called with each aborted transaction whose marker stays, in the order of the markers."""

    def __init__(self, on_kept: Callable[[AbortedTxn], None] | None = None) -> None:
        self._on_kept = on_kept
        self._ahead: list[tuple[int, int, AbortedTxn]] = []  # heap of (first offset, last offset, transaction)
        self._aborted: dict[int, AbortedTxn] = {}  # open ones, by producer id
        self._aborted_with_batches: set[int] = set()
        self._committed: set[int] = set()  # producer ids with batches of a transaction that was not aborted

    def redirect(self, on_kept: Callable[[AbortedTxn], None]) -> None:
        """Call another function from here on: the markers to come go to another segment."""
        self._on_kept = on_kept

    def add(self, aborted: Iterable[AbortedTxn]) -> None:
        """Make transactions known whose batches have not been shown yet."""
        for transaction in aborted:
            heapq.heappush(self._ahead, (transaction.first_offset, transaction.last_offset, transaction))

    def _advance(self, offset: int) -> None:
        while self._ahead and self._ahead[0][0] <= offset:
            transaction = heapq.heappop(self._ahead)[2]
            self._aborted.setdefault(transaction.producer_id, transaction)

    def may_drop_data(self, batch: RecordBatch) -> bool:
        """Show a batch of data: whether it belongs to an aborted transaction."""
        self._advance(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_with_batches.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def may_drop_marker(self, batch: RecordBatch) -> bool:
        """Show a control batch: whether nothing of its transaction was shown. Raises KafkaError."""
        self._advance(batch.last_offset)
        marker = next(batch.records(MAX_CONTROL_BYTES), None)
        if marker is None:
            return True  # an earlier cleaning has emptied it
        kind = (marker.key or b"")[2:4]
        producer_id = batch.producer_id
        if kind == _COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.remove(producer_id)
            return False
        if kind != _ABORT:
            return False
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._aborted_with_batches:
            return True
        self._aborted_with_batches.remove(producer_id)
        if self._on_kept is not None:
            self._on_kept(transaction)
        return False
