"""ConsumerGroupDescribe (key 69): state, epochs, members and assignments of consumer groups (KIP-848).

Behaviour: each group succeeds or fails by itself. A group with a topic in its assignments that the client may not describe is
refused, for the members cannot be shown without it. Without ``group.version`` 1 every group is refused with UNSUPPORTED_VERSION.

Version notes: 1 adds the type of each member (KIP-1099).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from .call import Call
from .consumer_groups import check_enabled
from .described_groups import describe_each


async def handle(call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    check_enabled(call)
    groups = await describe_each(
        call,
        request.group_ids,
        lambda group_id: call.broker.groups.describe_consumer_group(group_id, call.flush),
        _topics,
        _refused,
        with_operations=request.include_authorized_operations,
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)


def _topics(group: DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def error_response(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(groups=groups)
