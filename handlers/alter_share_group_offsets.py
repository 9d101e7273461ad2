"""AlterShareGroupOffsets (key 91): a share group without members begins at other offsets (KIP-932).

Behaviour: each partition succeeds or fails by itself. A group that does not exist is made. A leader that has the partition goes
on with its offsets until its next write is fenced, as in Kafka. Without ``share.version`` 1: UNSUPPORTED_VERSION.

Version notes: 0 is the only one.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ..wire.schema import replace
from .call import Call
from .rights import GROUP, TOPIC, check, refusal, split
from .share_groups import check_enabled


async def handle(call: Call, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    check_enabled(call)
    check(call, Operation.READ, GROUP, request.group_id)
    allowed, refused = split(call, Operation.READ, TOPIC, request.topics, lambda topic: topic.topic_name)
    response = await call.broker.groups.alter_share_group_offsets(replace(request, topics=allowed), call.flush)
    response.responses += [_refused(topic, refusal(TOPIC)) for topic in refused]
    return response


def _refused(topic: AlterShareGroupOffsetsRequestTopic, error: KafkaError) -> AlterShareGroupOffsetsResponseTopic:
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index, error_code=error.code, error_message=error.message
            )
            for partition in topic.partitions
        ],
    )


def error_response(request: AlterShareGroupOffsetsRequest, error: KafkaError) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
