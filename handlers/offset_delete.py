"""OffsetDelete (key 47): forget what a group committed for some partitions.

Behaviour: while the group has members, topics they subscribe to are answered GROUP_SUBSCRIBED_TO_TOPIC, and groups of
other protocol types than ``consumer``, whose subscriptions the broker cannot read, NON_EMPTY_GROUP. Partitions that do not exist
are answered UNKNOWN_TOPIC_OR_PARTITION.

Version notes: 0 is the only one, and not flexible.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ..wire.schema import replace
from .call import Call
from .rights import GROUP, TOPIC, check, may


async def handle(call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    check(call, Operation.DELETE, GROUP, request.group_id)
    accepted = []
    refused: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for topic in request.topics:
        code, known = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, call.broker.metadata.topic(topic.name)
        if not may(call, Operation.READ, TOPIC, topic.name):
            code, known = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        numbers = () if known is None else known.partitions
        existing = [partition for partition in topic.partitions if partition.partition_index in numbers]
        refused[topic.name] = [
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
            if partition.partition_index not in numbers
        ]
        if existing:
            accepted.append(replace(topic, partitions=existing))
    response = await call.broker.groups.delete_offsets(replace(request, topics=accepted), call.flush)
    answered = {topic.name: topic for topic in response.topics}
    for name, partitions in refused.items():
        if name in answered:
            answered[name].partitions += partitions
        else:
            response.topics.append(OffsetDeleteResponseTopic(name=name, partitions=partitions))
    return response


def error_response(request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
