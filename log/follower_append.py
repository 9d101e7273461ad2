"""The append of a leader's batches on a follower, with the offsets and leader epochs that they carry.

Rules, Apache Kafka's (``UnifiedLog.appendAsFollower``, ``Partition.appendRecordsToFollowerOrFutureReplica``):

- Only whole batches count; a part of one at the end is dropped.
- Every batch is checked before the first is written: its CRC, and offsets that ascend from the log's end on. Gaps are what
  compaction has left. One bad batch refuses them all, and the follower asks again.
- A batch of an epoch above the one that the fetch was made with ends the append (KAFKA-18723). A leader wrote it that this
  replica has not been told of yet; appended now, it could contradict records that this leader has.
- The records of data batches are not looked at. Leader and producer have answered for keys, timestamps, sizes and
  sequences, and ``max_timestamp`` of the header is what the leader made of it (``validation``). End markers are read, as
  on the leader: they end transactions, fill the transaction index and carry the coordinator's epoch.
- The leader's log may start inside the first batch (DeleteRecords). A log that has nothing from that start on then begins
  again where the batch does; the leader's start follows with its watermarks. Kafka does so for an empty log only, and gives
  up a replica whose last records the leader never had.

Batches that fit into the active segment are written together, with one call of the disk.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from ..wire.control_records import MAX_CONTROL_BYTES
from ..wire.records import RecordBatch, iter_complete_batches
from .disk import Bytes
from .offset_index import MAX_RELATIVE_OFFSET
from .partition_log import PartitionLog


class FollowerAppend(NamedTuple):
    """The result of a follower's append."""

    size: int
    """Bytes of the batches that were appended."""
    flush_due: bool
    """``flush.messages`` is reached, so the next fetch waits for a flush."""


def append_as_follower(log: PartitionLog, records: Bytes, fetch_epoch: int, leader_start: int = 0) -> FollowerAppend:
    """Append the batches of a fetch response; ``fetch_epoch`` is the leader epoch that the fetch was made with.

    ``leader_start`` is where the leader's log starts.

    Raises KafkaError: CORRUPT_MESSAGE and INVALID_RECORD for what is no batch, UNKNOWN_SERVER_ERROR for offsets that do
    not follow, KAFKA_STORAGE_ERROR. Nothing was appended then, except for the last one.
    """
    log.folder.check_online()
    batches = _checked(records, fetch_epoch)
    if not batches:
        return FollowerAppend(0, False)
    _align_with_log_end(log, batches, leader_start)
    first_offset = log.log_end_offset
    size = batches[0].size if len(batches) == 1 else sum([batch.size for batch in batches])
    _write(log, batches, memoryview(records)[:size])
    return FollowerAppend(size, log.is_flush_due(first_offset))


def _checked(records: Bytes, fetch_epoch: int) -> list[RecordBatch]:
    """The whole batches up to the first of a later epoch, each found sound. Raises KafkaError."""
    batches: list[RecordBatch] = []
    next_offset = 0
    for batch in iter_complete_batches(records):
        if batch.partition_leader_epoch > fetch_epoch:
            return batches
        batch.check_crc()
        if batch.base_offset < next_offset or batch.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"offsets {batch.base_offset} to {batch.last_offset} come where {next_offset} is the lowest",
            )
        if batch.is_control:
            _check_readable(batch)
        next_offset = batch.next_offset
        batches.append(batch)
    if not batches and len(records):
        # The first batch of a response is whole whatever its size (KIP-74), so its length is wrong.
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no batch ends within {len(records)} bytes")
    return batches


def _check_readable(batch: RecordBatch) -> None:
    """An end marker is read once it is written, which must not fail then."""
    try:
        for _ in batch.records(MAX_CONTROL_BYTES):
            pass
    except KafkaError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the control batch cannot be read: {error.message}") from error


def _align_with_log_end(log: PartitionLog, batches: list[RecordBatch], leader_start: int) -> None:
    """Make sure that the first batch begins at or after the log's end. Raises KafkaError where it cannot."""
    first, end = batches[0].base_offset, log.log_end_offset
    if first >= end:
        return
    if max(log.log_start_offset, leader_start) < end or batches[-1].last_offset < end:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"offset {first} comes where {end} is the next one")
    log.truncate_fully_and_start_at(first)


def _write(log: PartitionLog, batches: list[RecordBatch], data: memoryview) -> None:
    """Append checked batches, which lie end to end in ``data``. Raises KafkaError(KAFKA_STORAGE_ERROR).

    A segment's first batch, and those that may belong in the next segment, are written one by one.
    """
    now_ms = log.folder.clock.now_ms()
    newest = batches[0].max_timestamp if len(batches) == 1 else max([batch.max_timestamp for batch in batches])
    position = 0
    for slot, batch in enumerate(batches):
        if slot + 1 < len(batches) and _has_room(log, batches, slot, len(data) - position, newest, now_ms):
            log.write_together(batches[slot:], data[position:])
            return
        # Compaction may leave a gap too wide for a segment's relative offsets: the log goes on in a new one.
        if batch.last_offset - log.log_end_offset > MAX_RELATIVE_OFFSET:
            log.skip_to(batch.base_offset)
        epoch = batch.partition_leader_epoch
        # A batch without an epoch (-1) says nothing of a new leader: with the latest one the cache stays as it is.
        log.write_stamped(batch, epoch if epoch >= 0 else log.latest_epoch, now_ms)
        position += batch.size


def _has_room(log: PartitionLog, batches: list[RecordBatch], slot: int, size: int, newest_ms: int, now_ms: int) -> bool:
    """Whether the active segment takes the batches from ``slot`` on, ``size`` bytes. Raises KafkaError."""
    segment = log.segments.active
    if segment is None or not segment.size:
        return False  # whether others fit depends on the time of its first batch
    settings, last_offset = log.settings, batches[-1].last_offset
    index_bytes = settings.segment_index_bytes - 12 * (len(batches) - slot)  # at most an entry of either index for each
    try:
        if segment.should_roll(settings, size, last_offset, newest_ms, now_ms):
            return False
        return segment.indexes.has_room(last_offset, index_bytes)
    except OSError as error:
        raise log.folder.fail(f"cannot read {log.directory}", error) from error
