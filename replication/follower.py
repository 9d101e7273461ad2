"""The handling of a leader's fetch responses on a follower: appends, truncation and watermark updates.

Plain functions on a ``Partition`` that follows; ``fetcher`` sends the requests. Where the next fetch begins is always the
end of the log, and the last epoch fetched is the newest one in the log's epochs: a follower has no other state.

Rules (Kafka's AbstractFetcherThread, ReplicaFetcherThread; KIP-101, KIP-279, KIP-320, KIP-595):

- A response counts if offset and leader epoch are still those of the request (KAFKA-18991); if not, there is another leader
  now, or the log was truncated meanwhile.
- A leader in whose log the last fetched epoch ends before the fetch offset says where (``diverging_epoch``). The log is
  truncated to there, and to where that epoch ends in it. The rest of the response is ignored, above all its watermark: it may
  be above what the two logs have in common.
- The high watermark is the leader's, or the end of the log where that is lower. The log start follows the leader's;
  segments below it go with the next retention check.
- Where the leader's log has a gap, compaction may have taken the end marker of a transaction that is open here, and was fetched
  from an earlier leader, or longer than ``delete.retention.ms`` ago. What compaction has taken had ended, so the log is cut off
  at the transaction's beginning, and fetched from there once more. Kafka goes on; its replica, once it leads, has a last
  stable offset that goes back to where the transaction began.
- A replica without epochs cannot be compared with its leader. It begins at its high watermark, because the leader may lack
  what is above.
"""

from __future__ import annotations

import enum
import logging
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..log.disk import Bytes
from ..log.follower_append import append_as_follower
from ..log.partition_log import PartitionLog
from ..wire.messages.fetch import EpochEndOffset, PartitionData
from ..wire.records import iter_complete_batches
from .partition import Partition
from .pending_visibility import visible_between

logger = logging.getLogger(__name__)

_REPEATED_WHILE_LEADERS_CHANGE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
_RETRIED = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)


class Position(NamedTuple):
    """What a fetch says of a partition."""

    offset: int
    """Where the fetch begins: the end of the follower's log."""
    leader_epoch: int
    last_fetched_epoch: int
    """The epoch of the last record before ``offset``, by which the leader finds a divergence; -1 if unknown."""
    log_start_offset: int
    """Where the follower's log starts."""


class FollowerAction(enum.Enum):
    """What comes next for a partition."""

    FETCH = enum.auto()
    REFETCH = enum.auto()
    """Fetch in a new session: the watermarks of this response were not taken, and in its session they would not come again."""
    FLUSH = enum.auto()
    """Fetch, but not before the log is flushed: the fetch says that this replica has the records (``flush.messages``)."""
    RETRY = enum.auto()
    """Fetch again in a moment: the leader may not have heard yet that it leads."""
    BACK_OFF = enum.auto()
    """Fetch again after ``replica.fetch.backoff.ms``."""
    RESET = enum.auto()
    """Ask the leader where its log begins and ends, and begin again from there."""
    STOP = enum.auto()
    """Nothing, until the controller sends a new state of the partition."""


def position_of(partition: Partition) -> Position:
    """Where the next fetch begins."""
    log = partition.log
    return Position(log.log_end_offset, partition.leader_epoch, log.latest_epoch, log.log_start_offset)


def begin_following(partition: Partition) -> None:
    """Prepare the log for the first fetch from a leader. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
    log = partition.log
    if log.latest_epoch < 0 and log.high_watermark < log.log_end_offset:
        _truncate(log, log.high_watermark)
    partition.coherent_from = log.log_end_offset


def process_partition_data(partition: Partition, asked: Position, data: PartitionData) -> FollowerAction:
    """Apply a leader's response to the fetch at ``asked``; returns what comes next."""
    log = partition.log
    if asked.offset != log.log_end_offset or asked.leader_epoch != partition.leader_epoch:
        return FollowerAction.REFETCH
    try:
        if data.error_code:
            return _process_error(log, asked, known_code(data.error_code))
        diverging = data.diverging_epoch
        if diverging is not None and diverging.epoch >= 0:
            _truncate(log, divergence(log, diverging))
            return FollowerAction.REFETCH
        return _append_records(partition, asked, data)
    except KafkaError as error:
        return _process_failure(log, error)


def _append_records(partition: Partition, asked: Position, data: PartitionData) -> FollowerAction:
    records = data.records or b""
    assert isinstance(records, bytes | bytearray | memoryview), "received records are in memory"
    silent_since, partition.last_response_at = partition.last_response_at, trio.current_time()
    if partition.log.producer_state.ongoing and _may_lack_a_marker(partition, records, silent_since):
        return FollowerAction.REFETCH
    appended = append_as_follower(partition.log, records, asked.leader_epoch, data.log_start_offset)
    partition.counters.bytes_in += appended.size
    if partition.broker_id in partition.adding:
        partition.counters.reassignment_bytes_in += appended.size
    update_watermarks(partition, data.high_watermark, data.log_start_offset)
    if len(records) and not appended.size:
        return FollowerAction.BACK_OFF  # all of it is of a leader that this broker has not heard of
    return FollowerAction.FLUSH if appended.flush_due else FollowerAction.FETCH


def _may_lack_a_marker(partition: Partition, records: Bytes, silent_since: float) -> bool:
    """Whether a transaction that is open here may have ended where the response has a gap; then the log is cut before it.

    ``silent_since`` is when the leader's last response came.
    """
    log = partition.log
    if partition.last_response_at - silent_since > log.settings.delete_retention_ms / 1000:
        partition.coherent_from = log.log_end_offset
    first = next(iter(log.producer_state.ongoing))
    if first >= partition.coherent_from or not _has_gap(records, log.log_end_offset):
        return False
    logger.info("%s: fetching again from %d, the start of a transaction whose end may be missing", _name(log), first)
    partition.coherent_from = first
    _truncate(log, max(first, log.log_start_offset))
    return True


def _has_gap(records: Bytes, next_offset: int) -> bool:
    """Whether compaction has taken batches before the end of these, or emptied an end marker."""
    for batch in iter_complete_batches(records):
        if batch.base_offset > next_offset or (batch.is_control and not batch.record_count):
            return True
        next_offset = batch.next_offset
    return False


def update_watermarks(partition: Partition, high_watermark: int, log_start_offset: int) -> None:
    """Take over the leader's high watermark and log start, as far as the log reaches."""
    log = partition.log
    fetches = partition.fetches
    before = (log.high_watermark, log.last_stable_offset) if fetches.consumers else None
    # The watermark first, because the log start must not pass it.
    log.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
    start = min(log_start_offset, log.high_watermark)
    if start > log.log_start_offset:
        log.advance_log_start_offset(start)
    producers = log.producer_state
    if producers.unreplicated:
        # Called for its side effect, to forget transactions that are stable now: reads would do it, and are rare on a follower.
        producers.first_unstable_offset(log.high_watermark)
    if before is not None and before != (log.high_watermark, log.last_stable_offset):
        committed = stable = 0
        if fetches.is_size_wanted:
            committed = visible_between(log, before[0], log.high_watermark)
            stable = visible_between(log, before[1], log.last_stable_offset)
        fetches.notify_consumers(committed, stable)


def divergence(log: PartitionLog, leader: EpochEndOffset) -> int:
    """Up to where the log is surely the leader's, judged by one epoch of which ``leader`` says where it ends there.

    Kafka's getOffsetTruncationState. After the truncation the next fetch compares again, by an earlier epoch.
    """
    end_offset = log.log_end_offset
    if leader.end_offset < 0:
        return end_offset  # the leader does not know it either
    epoch, epoch_end = log.end_offset_for_epoch(leader.epoch)
    if epoch_end < 0:
        return min(leader.end_offset, end_offset)
    if epoch != leader.epoch:
        return min(epoch_end, end_offset)  # all that is here of later epochs is not the leader's
    return min(epoch_end, leader.end_offset, end_offset)


def reset_to_leader(partition: Partition, leader_start: int, leader_end: int) -> FollowerAction:
    """The fetch offset is not in the leader's log, which begins and ends there: go to the nearest offset that is in it."""
    log = partition.log
    end_offset = log.log_end_offset
    try:
        if leader_end < end_offset:
            _truncate(log, leader_end)
        elif leader_start > end_offset:
            logger.warning("%s ends at %d, and its leader starts at %d", _name(log), end_offset, leader_start)
            log.truncate_fully_and_start_at(leader_start)
        else:
            return FollowerAction.BACK_OFF  # the leader's log has changed meanwhile
    except KafkaError as error:
        return _process_failure(log, error)
    return FollowerAction.FETCH


def process_reset_error(partition: Partition, code: ErrorCode) -> FollowerAction:
    """The leader refuses to say where its log begins and ends."""
    position = position_of(partition)
    return (
        FollowerAction.BACK_OFF
        if code is ErrorCode.OFFSET_OUT_OF_RANGE
        else _process_error(partition.log, position, code)
    )


def _process_error(log: PartitionLog, asked: Position, code: ErrorCode) -> FollowerAction:
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return FollowerAction.RESET
    if code is ErrorCode.FENCED_LEADER_EPOCH:
        logger.debug("%s: the leader has a later epoch than %d; waiting for metadata", _name(log), asked.leader_epoch)
        return FollowerAction.STOP
    is_usual = code in _REPEATED_WHILE_LEADERS_CHANGE
    level = logging.DEBUG if is_usual else logging.ERROR
    logger.log(level, "%s: the leader answers %s at offset %d", _name(log), code.name, asked.offset)
    return FollowerAction.RETRY if is_usual else FollowerAction.BACK_OFF


def _process_failure(log: PartitionLog, error: KafkaError) -> FollowerAction:
    """Bad records are fetched again, since they may be the leader's or the network's passing fault. Other failures are final.

    But not a storage error while the folder is online: then descriptors have run out for a moment (``LogDirectory.fail``).
    """
    if error.code is ErrorCode.KAFKA_STORAGE_ERROR and not log.folder.is_offline:
        return FollowerAction.BACK_OFF
    if error.code in _RETRIED:
        logger.error("%s: bad records at offset %d: %s", _name(log), log.log_end_offset, error.message)
        return FollowerAction.BACK_OFF
    log.folder.log_failed(f"{_name(log)} is not replicated any more", error)
    return FollowerAction.STOP


def _truncate(log: PartitionLog, offset: int) -> None:
    if offset < log.high_watermark:
        logger.warning("%s: truncating below its high watermark %d", _name(log), log.high_watermark)
    log.truncate_to(offset)


def _name(log: PartitionLog) -> str:
    return f"{log.topic}-{log.partition}"
