"""AlterPartitionReassignments (key 45): other replicas for a partition, or the end of a move of replicas (KIP-455).

Behaviour: a move is answered when it has begun; ListPartitionReassignments lists it until it has ended. Null replicas cancel a
move; without one they are NO_REASSIGNMENT_IN_PROGRESS. The replicas that a partition has already are accepted, and nothing is
done: kafka-reassign-partitions asks for them, too, when it only moves partitions between the log directories of a broker. If a
partition is named twice, the last one counts.

Version notes: 1 can forbid a change of the replication factor (KIP-860), by INVALID_REPLICATION_FACTOR.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from .call import Call


async def handle(call: Call, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    wanted = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in request.topics
        for partition in topic.partitions
    }
    await call.flush()
    outcome = await call.broker.commands.reassign(wanted, factor_may_change=request.allow_replication_factor_change)
    topics: dict[str, ReassignableTopicResponse] = {}
    for key in wanted:
        topic = topics.setdefault(key.topic, ReassignableTopicResponse(name=key.topic))
        topic.partitions.append(_response(key.partition, outcome[key]))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=list(topics.values())
    )


def _response(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=number, error_code=ErrorCode.NONE, error_message=None)
    return ReassignablePartitionResponse(partition_index=number, error_code=error.code, error_message=error.message)


def error_response(
    request: AlterPartitionReassignmentsRequest, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
