"""ListPartitionReassignments (key 46): the partitions whose replicas are being moved between brokers (KIP-455).

Behaviour: null asks for all, else for those named; a partition that is not being moved is left out.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from .call import Call


async def handle(call: Call, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.name, number) for topic in request.topics for number in topic.partition_indexes}
    topics: dict[str, OngoingTopicReassignment] = {}
    for key, assignment in call.broker.commands.reassignments():
        if asked is None or key in asked:
            topic = topics.setdefault(key.topic, OngoingTopicReassignment(name=key.topic))
            topic.partitions.append(
                OngoingPartitionReassignment(
                    partition_index=key.partition,
                    replicas=list(assignment.replicas),
                    adding_replicas=list(assignment.adding),
                    removing_replicas=list(assignment.removing),
                )
            )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()), error_message=None)


def error_response(request: ListPartitionReassignmentsRequest, error: KafkaError) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
