"""ShareGroupDescribe (key 77): state, epochs, members and assignments of share groups (KIP-932).

Behaviour: each group succeeds or fails by itself. A group with a topic in its assignments that the client may not describe is
refused, for the members cannot be shown without it. Without ``share.version`` 1 every group is refused with UNSUPPORTED_VERSION.

Version notes: 1 is the only one; 0 was of the early access, before Kafka 4.1.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest, ShareGroupDescribeResponse
from .call import Call
from .described_groups import describe_each
from .share_groups import check_enabled


async def handle(call: Call, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    check_enabled(call)
    groups = await describe_each(
        call,
        request.group_ids,
        lambda group_id: call.broker.groups.describe_share_group(group_id, call.flush),
        _topics,
        _refused,
        with_operations=request.include_authorized_operations,
    )
    return ShareGroupDescribeResponse(groups=groups)


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)


def _topics(group: DescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


def error_response(request: ShareGroupDescribeRequest, error: KafkaError) -> ShareGroupDescribeResponse:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    return ShareGroupDescribeResponse(groups=groups)
