"""DeleteRecords (key 21): move the start of a partition's log forward.

Behaviour: everything below the offset is gone at once for readers; the files follow with retention. -1 stands for the high
watermark. An offset above it is OFFSET_OUT_OF_RANGE, a topic whose cleanup.policy does not include delete POLICY_VIOLATION,
a coordinator's topic INVALID_TOPIC_EXCEPTION. The response holds the low watermark, the lowest log start offset of all live
replicas, and waits until that has reached the offset; else REQUEST_TIMED_OUT after ``timeout_ms``. Each partition is answered as
often as it is named (Kafka uses the last of its offsets).

Version notes: 2 is flexible.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..metadata.rules.topic_names import INTERNAL_TOPICS
from ..replication.partition import Partition
from ..security.acl import Operation
from ..wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from .call import Call
from .rights import TOPIC, check

_HIGH_WATERMARK = -1

Waiting = list[tuple[Partition, int, DeleteRecordsPartitionResult]]
"""Partition, offset, and the response that waits for the low watermark to reach it."""


async def handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    waiting: Waiting = []
    topics = [
        DeleteRecordsTopicResult(
            name=topic.name, partitions=[_delete(call, topic.name, asked, waiting) for asked in topic.partitions]
        )
        for topic in request.topics
    ]
    if waiting:
        await _wait(call, waiting, request.timeout_ms)
    return DeleteRecordsResponse(topics=topics)


def _delete(call: Call, topic: str, asked: DeleteRecordsPartition, waiting: Waiting) -> DeleteRecordsPartitionResult:
    try:
        check(call, Operation.DELETE, TOPIC, topic)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own")
        partition = call.broker.replicas.partition(topic, asked.partition_index)
        partition.check_leader()
        log = partition.log
        if "delete" not in log.settings.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "the topic's cleanup.policy does not include delete")
        offset = log.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
        log.delete_records_before(offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
        )
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=partition.low_watermark)
    if result.low_watermark < offset:
        waiting.append((partition, offset, result))
    return result


async def _wait(call: Call, waiting: Waiting, timeout_ms: int) -> None:
    """Wait until the live followers have deleted, too; where that takes too long the response keeps the earlier watermark."""
    await call.flush()
    deadline = trio.current_time() + max(timeout_ms, 0) / 1000
    for partition, offset, result in waiting:
        try:
            await partition.wait_for_low_watermark(offset, deadline - trio.current_time())
            result.low_watermark = partition.low_watermark
        except KafkaError as error:
            result.error_code = error.code
            if error.code is not ErrorCode.REQUEST_TIMED_OUT:
                result.low_watermark = -1


def error_response(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
