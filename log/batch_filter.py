"""The selection of the records that compaction retains in a batch (Kafka's ``Cleaner``, KIP-98, KIP-354, KIP-534).

Of a key, the record with the newest offset stays; a tombstone (a record without a value) stays until its batch's *delete
horizon* has passed. The first cleaning that meets a tombstone, or an end marker whose transaction is empty, sets the
horizon: its own time plus ``delete.retention.ms``, kept in place of the base timestamp. Batches of aborted
transactions go. What lies above the offsets of the map stays as it is.

A batch keeps its offsets and sequence numbers, even when it has lost records. One that has lost all of them is dropped,
unless it is the last batch of a producer the log still knows, or the last one that was cleaned: such a batch stays as a
header without records, so that sequence numbers, or the end of the log, are not forgotten. What other replicas may not
have, and may be truncated, does not count as the last: there Kafka's cleaner forgets. A batch that has lost nothing stays
byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..wire.compression import NONE
from ..wire.records import LOG_APPEND_TIME, Record, RecordBatch, RecordsBuilder
from .cleaned_transactions import CleanedTransactions
from .offset_map import OffsetMap
from .producer_snapshot import ProducerStateEntry
from .settings import LONG_MAX
from .validation import MAX_DECOMPRESSED_BYTES

LastRecords = dict[int, tuple[int | None, int]]
"""Producer id -> (last offset of its newest committed data, -1 for none, None where that is not known; producer epoch)."""


def last_records(producers: Iterable[ProducerStateEntry], high_watermark: int, log_end_offset: int) -> LastRecords:
    """What the producers' last batches are, once everything from the high watermark on may have been truncated."""
    found: LastRecords = {}
    for state in producers:
        committed = [batch.last_offset for batch in state.batches if batch.last_offset < high_watermark]
        is_over = not state.batches and log_end_offset <= high_watermark  # else its end may be among what is truncated
        found[state.producer_id] = (max(committed, default=-1 if is_over else None), state.producer_epoch)
    return found


@dataclass(slots=True)
class BatchFilter:
    """Decides, batch by batch in the order of the log, what compaction retains."""

    offset_map: OffsetMap
    transactions: CleanedTransactions
    last_records: LastRecords
    end_offset: int
    """Where the cleaning ends, if it gets that far."""
    delete_retention_ms: int
    now_ms: int
    """The time at the start of the cleaning, the same for all its batches."""

    def keep(self, batch: RecordBatch) -> RecordBatch | None:
        """What takes the place of the next batch of the log; None for nothing.

        Raises KafkaError when the batch is damaged.
        """
        batch.check_crc()
        horizon = batch.delete_horizon_ms
        if batch.is_control:
            may_drop_marker = self.transactions.may_drop_marker(batch)
            drops_all = may_drop_marker and horizon is not None and horizon <= self.now_ms
        else:
            may_drop_marker = False
            drops_all = self.transactions.may_drop_data(batch)
        keeps_header = self._keeps_header(batch)
        if drops_all:
            return _empty(batch) if keeps_header else None
        count = 0
        has_tombstones = False
        for record in self._kept_records(batch, horizon):
            count += 1
            has_tombstones = has_tombstones or record.value is None
        if not count:
            return _empty(batch) if keeps_header else None
        if horizon is None and ((has_tombstones and not batch.is_control) or may_drop_marker):
            # The records are decompressed a second time: a list of them could hold millions in memory.
            begun = min(self.now_ms + self.delete_retention_ms, LONG_MAX)
            return _rebuild(batch, self._kept_records(batch, horizon), begun)
        if count == batch.record_count:
            return batch
        return _rebuild(batch, self._kept_records(batch, horizon), horizon)

    def _keeps_header(self, batch: RecordBatch) -> bool:
        if batch.next_offset == self.end_offset:
            return True
        if batch.producer_id < 0 or batch.producer_id not in self.last_records:
            return False
        last_data_offset, producer_epoch = self.last_records[batch.producer_id]
        if last_data_offset is None:
            return True
        if last_data_offset >= 0:
            return batch.last_offset == last_data_offset
        return batch.is_control and batch.producer_epoch == producer_epoch

    def _kept_records(self, batch: RecordBatch, horizon: int | None) -> Iterator[Record]:
        """Yield the records that stay, so that no more than one of millions is in memory. Raises KafkaError."""
        records = batch.records(MAX_DECOMPRESSED_BYTES)
        if batch.is_control:
            yield from records
            return
        latest_offset, newest = self.offset_map.latest_offset, self.offset_map.get
        keeps_tombstones = horizon is None or self.now_ms < horizon
        for record in records:
            if record.offset <= latest_offset:
                if record.key is None or record.offset < newest(record.key):
                    continue
                if record.value is None and not keeps_tombstones:
                    continue
            yield record


def _rebuild(batch: RecordBatch, records: Iterable[Record], horizon: int | None) -> RecordBatch:
    builder = _builder(batch, batch.compression, horizon, is_empty=False)
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers, record.offset, record.attributes)
    return RecordBatch(builder.build())


def _empty(batch: RecordBatch) -> RecordBatch:
    return RecordBatch(_builder(batch, NONE, None, is_empty=True).build())


def _builder(batch: RecordBatch, compression: int, horizon: int | None, *, is_empty: bool) -> RecordsBuilder:
    keeps_max_timestamp = is_empty or batch.timestamp_type == LOG_APPEND_TIME
    return RecordsBuilder(
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.partition_leader_epoch,
        compression=compression,
        timestamp_type=batch.timestamp_type,
        max_timestamp=batch.max_timestamp if keeps_max_timestamp else None,
        delete_horizon_ms=horizon,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )
