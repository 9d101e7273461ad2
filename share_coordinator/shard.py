"""One partition of ``__share_group_state`` that this broker leads, as a replicated state machine.

``write`` is the only way to change its state: it appends records as one batch and replays them, without waiting in between. A new
leader gets the same states by ``load`` of the same records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..replication.coordinator_loading import SkippedRecords
from ..replication.coordinator_log import CoordinatorLog
from ..wire.records import RecordBatch
from .records import ShareRecord, build_batch, read_batch
from .share_group_offset import ShareGroupOffset, after
from .state import SharePartitionKey


class ShareCoordinatorShard:
    """The share partitions of one partition."""

    def __init__(self, partition: int, leader_epoch: int, log: CoordinatorLog, compression: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.share_partitions: dict[SharePartitionKey, ShareGroupOffset] = {}
        self.last_offset = 0
        """The offset after the newest record: what is told of any share partition depends on the records before it."""
        self._log = log
        self._compression = compression

    def write(self, records: Sequence[ShareRecord], now_ms: int) -> None:
        """Append ``records`` as one batch and replay them. KafkaError, and nothing changed, when the log refuses."""
        if not records:
            return
        self.last_offset = self._log.append(self.partition, build_batch(records, now_ms, self._compression))
        for offset, record in enumerate(records, self.last_offset - len(records)):
            self._replay(record, offset)

    def load(self, batch: RecordBatch, skipped: SkippedRecords) -> Iterator[None]:
        """Replay a batch of the log, and yield after each record; those that cannot be understood are noted."""
        if batch.is_control:
            return
        for offset, record in read_batch(batch, skipped):
            if record is not None:
                self._replay(record, offset)
            yield
        self.last_offset = batch.next_offset

    def _replay(self, record: ShareRecord, offset: int) -> None:
        key, value = record
        if value is None:
            self.share_partitions.pop(key, None)
        else:
            self.share_partitions[key] = after(self.share_partitions.get(key), value, offset)
