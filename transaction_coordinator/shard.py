"""One partition of ``__transaction_state`` that this broker leads, as a replicated state machine.

State changes in ``write`` and ``forget`` only: each appends records and then changes the state, without waiting in between. A new
leader gets the same state by ``load`` of the same records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import trio

from ..replication.coordinator_loading import SkippedRecords
from ..replication.coordinator_log import CoordinatorLog
from ..wire.records import RecordBatch
from .records import build_batch, build_batches, read_batch
from .transaction import PREPARED, Transaction


class TransactionShard:
    """The transactional ids of one partition."""

    def __init__(self, partition: int, leader_epoch: int, log: CoordinatorLog) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.transactions: dict[str, Transaction] = {}
        self.last_offset = 0
        self.scopes: set[trio.CancelScope] = set()
        """Of the tasks that end its transactions; they stop with the shard."""
        # The offset after the newest record of each id written here; ids that were only loaded wait for all of the log.
        self._offsets: dict[str, int] = {}
        self._log = log
        # By transactional id, set when its transaction is no longer ending.
        self._ended: dict[str, trio.Event] = {}

    def depends_on(self, transactional_id: str) -> int:
        """The offset up to which the log must be committed before anything about this id may be told."""
        return self._offsets.get(transactional_id, self.last_offset)

    def write(self, transaction: Transaction, now_ms: int) -> int:
        """Append the new state of an id and take it over; the offset after its record.

        KafkaError, and nothing changed, when the log refuses.
        """
        transactional_id = transaction.transactional_id
        self.last_offset = self._log.append(self.partition, build_batch(transactional_id, transaction, now_ms))
        self.transactions[transactional_id] = transaction
        self._offsets[transactional_id] = self.last_offset
        if transaction.state not in PREPARED and (ended := self._ended.pop(transactional_id, None)) is not None:
            ended.set()
        return self.last_offset

    def repeat(self, transactional_id: str, now_ms: int) -> int:
        """Append the state of an id once more (a tombstone where it is unknown); the offset after the record. KafkaError."""
        known = self.transactions.get(transactional_id)
        self.last_offset = self._log.append(self.partition, build_batch(transactional_id, known, now_ms))
        return self.last_offset

    def forget(self, transactional_ids: Sequence[str], now_ms: int) -> None:
        """Forget ids that have expired. KafkaError, and nothing changed, when the log refuses."""
        records = [(transactional_id, None) for transactional_id in transactional_ids]
        self.last_offset = self._log.append(self.partition, build_batches(records, now_ms))
        for transactional_id in transactional_ids:
            del self.transactions[transactional_id]
            self._offsets.pop(transactional_id, None)

    def load(self, batch: RecordBatch, skipped: SkippedRecords) -> Iterator[None]:
        """Replay a batch of the log, and yield after each record; those that cannot be understood are noted."""
        if batch.is_control:
            return
        for read in read_batch(batch, skipped):
            if read is not None:
                transactional_id, transaction = read
                if transaction is None:
                    self.transactions.pop(transactional_id, None)
                else:
                    self.transactions[transactional_id] = transaction
            yield
        self.last_offset = batch.next_offset

    async def wait_ended(self, transactional_id: str) -> None:
        """Return once the id has no transaction that is ending, or the shard is dropped."""
        transaction = self.transactions.get(transactional_id)
        if transaction is not None and transaction.state in PREPARED:
            await self._ended.setdefault(transactional_id, trio.Event()).wait()

    def release(self) -> None:
        """The partition has moved: let requests that wait find out, and stop what works on it."""
        for scope in self.scopes:
            scope.cancel()
        for ended in self._ended.values():
            ended.set()
        self._ended.clear()
