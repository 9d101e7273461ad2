"""The batches of records that were read, by their headers: which offsets they have, and which are of aborted transactions.

Their records are not looked at. Headers are read in windows, up to an offset that the reader knows, and not many at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..log.partition_log import PartitionLog
from ..log.scan import BatchSpan
from ..log.segment import SegmentSlice
from ..log.transaction_index import AbortedTxn
from ..log.transactional_reads import aborted_transactions
from ..wire.batch_layout import CONTROL_BIT, TRANSACTIONAL_BIT

MOST_BATCHES = 500
"""So many are looked at in one step of the loop: it takes a millisecond."""


@dataclass(slots=True)
class FoundBatches:
    """Some batches of the log, one after the other."""

    records: SegmentSlice
    spans: Sequence[tuple[int, int]]
    """First and last offset of each."""
    aborted: Sequence[tuple[int, int]]
    """Of these, the ones of aborted transactions."""
    positions: Sequence[int]
    """Where each begins in ``records``, and last where the last one ends."""

    def cut(self, first_offset: int, last_offset: int) -> None:
        """Keep only the batches with offsets between these, of which there are some."""
        begin = next(index for index, (_, last) in enumerate(self.spans) if last >= first_offset)
        end = len(self.spans)
        while end > begin + 1 and self.spans[end - 1][0] > last_offset:
            end -= 1
        self.records.narrow(self.positions[begin], self.positions[end])


def find_batches(
    log: PartitionLog, records: SegmentSlice, offset: int, up_to: int, isolation_level: int
) -> FoundBatches:
    """The batches in ``records``, which were read from ``offset`` on, up to the one with ``up_to`` - 1. Raises KafkaError.

    With ``isolation_level`` 1 those of aborted transactions are told.
    """
    found = records.batch_spans(up_to, MOST_BATCHES)
    aborted: list[tuple[int, int]] = []
    if isolation_level:
        transactions = aborted_transactions(log, offset, records)
        if transactions:
            aborted = _aborted(found, transactions)
    spans = [(span.base_offset, span.last_offset) for span in found]
    return FoundBatches(records, spans, aborted, [*(span.position for span in found), found[-1].end])


def _aborted(found: Sequence[BatchSpan], transactions: Sequence[AbortedTxn]) -> list[tuple[int, int]]:
    """The batches of aborted transactions: those of a producer from the first one of its transaction up to its marker."""
    ordered = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    aborted: list[tuple[int, int]] = []
    for span in found:
        while ordered and ordered[-1].first_offset <= span.last_offset:
            producers.add(ordered.pop().producer_id)
        if span.producer_id not in producers or not span.attributes & TRANSACTIONAL_BIT:
            continue
        if span.attributes & CONTROL_BIT:
            producers.discard(span.producer_id)
        elif aborted and aborted[-1][1] + 1 == span.base_offset:
            aborted[-1] = aborted[-1][0], span.last_offset
        else:
            aborted.append((span.base_offset, span.last_offset))
    return aborted
