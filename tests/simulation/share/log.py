"""The log of one partition as its leaders read it: batches of records, transactions, compaction, retention.

It has the interface of ``PartitionLog`` and of the slices that are read from it, as far as share partitions use them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ottla.log.scan import BatchSpan
from ottla.log.transaction_index import AbortedTxn
from ottla.wire.batch_layout import CONTROL_BIT, TRANSACTIONAL_BIT

_BYTES_OF_RECORD = 100
NO_PRODUCER = -1
LARGEST_BATCH = 20
"""So many records."""


class SimulatedLog:
    """See the module."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.batches: list[BatchSpan] = []
        """Their positions are unused."""
        self.log_start_offset = self.log_end_offset = rng.choice((0, 0, 7))
        self.aborted: list[AbortedTxn] = []
        self.undeliverable: set[int] = set()
        """The offsets of records that are not, or not to be, delivered to who reads committed records."""
        self.gone: set[int] = set()
        """The offsets of records that compaction has removed."""
        self._open: tuple[int, int] | None = None
        """Producer id and first offset of the transaction that goes on."""
        self._of_transaction: list[BatchSpan] = []
        self._producer_id = 0

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        return self.log_end_offset if self._open is None else self._open[1]

    def _append(self, count: int, attributes: int = 0, producer_id: int = NO_PRODUCER) -> BatchSpan:
        base = self.log_end_offset
        batch = BatchSpan(base, base + count - 1, 0, 0, attributes, producer_id)
        self.batches.append(batch)
        self.log_end_offset = base + count
        return batch

    def append(self) -> None:
        """Some records, in a transaction or not."""
        rng = self._rng
        count = rng.choice((1, 1, 2, 3, 5, 10, LARGEST_BATCH))
        if rng.random() < 0.3:
            if self._open is None:
                self._producer_id += 1
                self._open = self._producer_id, self.log_end_offset
            self._of_transaction.append(self._append(count, TRANSACTIONAL_BIT, self._open[0]))
        else:
            self._append(count)

    def end_transaction(self) -> None:
        """Commit or abort, if one goes on."""
        if self._open is None:
            return
        producer_id, first = self._open
        marker = self._append(1, TRANSACTIONAL_BIT | CONTROL_BIT, producer_id)
        self._open = None
        if self._rng.random() < 0.5:
            self.aborted.append(AbortedTxn(producer_id, first, marker.base_offset, self.last_stable_offset))
            for batch in self._of_transaction:
                self.undeliverable.update(range(batch.base_offset, batch.last_offset + 1))
        self._of_transaction = []

    def compact(self) -> None:
        """Remove a run of batches in the middle."""
        closed = [batch for batch in self.batches if batch.last_offset < self.last_stable_offset]
        if len(closed) > 3:
            begin = self._rng.randrange(len(closed) - 1)
            for batch in closed[begin : begin + self._rng.choice((1, 1, 2, 4))]:
                if batch is self.batches[-1]:
                    continue
                self.batches.remove(batch)
                self.gone.update(range(batch.base_offset, batch.last_offset + 1))

    def trim(self) -> None:
        """Move the start of the log, as DeleteRecords does."""
        last = self.last_stable_offset
        self.log_start_offset = self._rng.randint(self.log_start_offset, min(last, self.log_start_offset + 30))
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.log_start_offset]

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> SimulatedSlice | None:
        assert self.log_start_offset <= offset <= self.log_end_offset
        found: list[BatchSpan] = []
        size = 0
        for batch in self.batches:
            if batch.last_offset < offset:
                continue
            end = size + _BYTES_OF_RECORD * (batch.last_offset - batch.base_offset + 1)
            if batch.last_offset >= up_to or (end > max_bytes and not (at_least_one and not found)):
                break
            found.append(batch._replace(position=size, end=end))
            size = end
        return SimulatedSlice(self, found) if found else None


class SimulatedSlice:
    """Some batches."""

    def __init__(self, log: SimulatedLog, batches: Sequence[BatchSpan]) -> None:
        self.log = log
        self.batches = batches
        self.is_released = False
        self.nbytes = batches[-1].end

    def batch_spans(self, up_to: int, most: int) -> list[BatchSpan]:
        found = []
        for batch in self.batches:
            found.append(batch)
            if batch.last_offset >= up_to - 1 or len(found) == most:
                break
        return found

    def narrow(self, begin: int, end: int) -> None:
        self.batches = [batch for batch in self.batches if begin <= batch.position and batch.end <= end]
        self.nbytes = end - begin

    def release(self) -> None:
        assert not self.is_released
        self.is_released = True


def aborted_transactions(log: SimulatedLog, offset: int, found: SimulatedSlice) -> list[AbortedTxn]:
    """In place of the product's, which reads indexes."""
    last = found.batches[-1].last_offset
    return [each for each in log.aborted if each.last_offset >= offset and each.first_offset <= last]
