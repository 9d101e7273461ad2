"""OffsetForLeaderEpoch (key 23): where an epoch of a partition ended, so that a reader can see whether it diverged.

Behaviour (KIP-320): the response names the largest epoch at or below the one asked for and the offset after its last
record. The current epoch ends at the log's end. An unknown or future epoch is answered -1 / -1 without an error; a current
epoch other than the leader's is fenced.

Version notes: 2 adds the current leader epoch of the client; 3 the replica id (-2 is a consumer); 4 is flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from .call import Call
from .rights import CLUSTER, TOPIC, may, refusal, split


async def handle(call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    allowed, refused = list(request.topics), list[OffsetForLeaderTopic]()
    if not may(call, Operation.CLUSTER_ACTION, CLUSTER, log_if_denied=False):
        allowed, refused = split(call, Operation.DESCRIBE, TOPIC, request.topics, lambda topic: topic.topic)
    answers = [
        OffsetForLeaderTopicResult(
            topic=topic.topic, partitions=[_response(call, topic.topic, asked) for asked in topic.partitions]
        )
        for topic in allowed
    ]
    return OffsetForLeaderEpochResponse(topics=answers + [_refused(topic, refusal(TOPIC)) for topic in refused])


def _response(call: Call, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = call.broker.replicas.partition(topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)


def error_response(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(topics=[_refused(topic, error) for topic in request.topics])


def _refused(topic: OffsetForLeaderTopic, error: KafkaError) -> OffsetForLeaderTopicResult:
    partitions = [EpochEndOffset(partition=asked.partition, error_code=error.code) for asked in topic.partitions]
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)
