"""AlterPartitionReassignments (key 45): other replicas for a partition, or the end of a move of replicas (KIP-455).

Behaviour: the replicas that a partition has already are accepted, and nothing is done; others are
INVALID_REPLICA_ASSIGNMENT, because replicas are not moved between brokers. To cancel is NO_REASSIGNMENT_IN_PROGRESS.
kafka-reassign-partitions asks this, too, when it only moves partitions between the data folders of a broker.

Version notes: 1 can forbid a change of the replication factor.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from .call import Call


async def handle(call: Call, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassign(call, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _reassign(call: Call, topic: str, partition: ReassignablePartition) -> ReassignablePartitionResponse:
    answer = ReassignablePartitionResponse(partition_index=partition.partition_index, error_message=None)
    try:
        call.broker.controller.reassign(TopicPartition(topic, partition.partition_index), partition.replicas)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def error_response(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
