"""DeleteRecords (key 21): move the start of a partition's log forward.

Behaviour: everything below the offset is gone at once for readers; the files follow with retention. -1 stands for the
high watermark. An offset above it is OFFSET_OUT_OF_RANGE, a topic whose cleanup.policy does not include delete
POLICY_VIOLATION, a coordinator's topic INVALID_TOPIC_EXCEPTION. The answer holds the new log start offset. Each partition
is answered as often as it is named (Kafka goes by the last of its offsets).

Version notes: 2 is flexible.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.topic_names import INTERNAL_TOPICS
from ..wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from .call import Call

_HIGH_WATERMARK = -1


async def handle(call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(call, topic.name, asked) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(call: Call, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own")
        partition = call.broker.replicas.partition(topic, asked.partition_index)
        partition.check_leader()
        log = partition.log
        if "delete" not in log.settings.cleanup_policy:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "the topic's cleanup.policy does not include delete")
        offset = log.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
        low_watermark = log.delete_records_before(offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low_watermark)


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
