"""ListOffsets (key 2): the ends of a partition, or the first offset at or after a timestamp.

Behaviour: -1 is the end a consumer may read (the high watermark, or the last stable offset at isolation 1) and the end of
the log for a follower, -2 the log start; both are answered from memory, because Spark asks for them after every poll. A
timestamp of 0 or more is looked up by record, inside batches too; -1 with no error when every record is older. -3 is the
record with the largest timestamp, -4 the earliest local offset (the log start: nothing is tiered), -5 the last tiered and
-6 the earliest pending upload, neither of which exists. After an election the leader's high watermark may be behind what
consumers saw of the leader before: until it has reached the offset at which the epoch began, consumers get
OFFSET_NOT_AVAILABLE for -1 and for a timestamp beyond (KIP-207). A partition that is named twice is answered once, with
INVALID_REQUEST. An isolation level that does not exist is INVALID_REQUEST too (Kafka: UNKNOWN_SERVER_ERROR). A segment
whose records have no timestamps is skipped; Kafka uses the time of its file instead, and may not search further.

Version notes: 1 is the first with one offset per partition; 2 adds the isolation level; 4 leader epochs; 5 admits
OFFSET_NOT_AVAILABLE, in place of LEADER_NOT_AVAILABLE; 6 is flexible; 7, 8, 9 and 11 admit -3, -4, -5 and -6; 10 adds a
timeout for tiered look-ups.
"""

from __future__ import annotations

from collections import Counter

from ..base.errors import ErrorCode, KafkaError
from ..replication.partition import Partition
from ..security.acl import Operation
from ..wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from .call import Call
from .rights import TOPIC, refusal, split

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_FIRST_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_NO_VERSION = 1 << 15
_CONSUMER_REPLICA_ID = -1
_FIRST_NOT_AVAILABLE_VERSION = 5


async def handle(call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    if request.isolation_level not in (0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}")
    times_named = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    allowed, refused = split(call, Operation.DESCRIBE, TOPIC, request.topics, lambda topic: topic.name)
    topics = [_refused(topic, refusal(TOPIC)) for topic in refused]
    for topic in allowed:
        answers = []
        for asked in topic.partitions:
            times = times_named.pop((topic.name, asked.partition_index), 0)
            if times == 0:
                continue
            try:
                if times > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the partition is in the request twice")
                answers.append(await _response(call, topic.name, asked, request))
            except KafkaError as error:
                answers.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error.code)
                )
        if answers:
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


async def _response(
    call: Call, topic: str, asked: ListOffsetsPartition, request: ListOffsetsRequest
) -> ListOffsetsPartitionResponse:
    timestamp = asked.timestamp
    partition = call.broker.replicas.partition(topic, asked.partition_index)
    if timestamp < EARLIEST and call.version < _FIRST_VERSION.get(timestamp, _NO_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} at version {call.version}")
    partition.check_leader(asked.current_leader_epoch)
    log = partition.log
    is_consumer = request.replica_id == _CONSUMER_REPLICA_ID
    end = partition.fetchable_end(request.isolation_level) if is_consumer else log.log_end_offset
    if timestamp == LATEST:
        if is_consumer:
            _check_end_is_known(call, partition)
        return _found(call, asked, end, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _found(call, asked, log.log_start_offset, -1, _epoch_of_start(partition))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    await call.flush()
    if timestamp == MAX_TIMESTAMP:
        offset, found, epoch = await log.max_timestamp(end)
    else:
        offset, found, epoch = await log.offset_for_timestamp(timestamp, end)
    if offset < 0 and is_consumer:
        _check_end_is_known(call, partition)
    return _found(call, asked, offset, found, epoch)


def _check_end_is_known(call: Call, partition: Partition) -> None:
    """Raises OFFSET_NOT_AVAILABLE while a new leader's high watermark may be below that of the leader before (KIP-207)."""
    leader = partition.leader
    if leader is not None and partition.log.high_watermark < leader.epoch_start_offset:
        known = call.version >= _FIRST_NOT_AVAILABLE_VERSION
        code = ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE
        raise KafkaError(code, f"the high watermark has not reached {leader.epoch_start_offset} yet")


def _epoch_of_start(partition: Partition) -> int:
    return partition.log.epoch_for_offset(partition.log.log_start_offset)


def _found(
    call: Call, asked: ListOffsetsPartition, offset: int, timestamp: int, epoch: int
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if call.version >= 4 else -1,
    )


def error_response(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    return ListOffsetsResponse(topics=[_refused(topic, error) for topic in request.topics])


def _refused(topic: ListOffsetsTopic, error: KafkaError) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error.code)
            for asked in topic.partitions
        ],
    )
