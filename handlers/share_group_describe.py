"""ShareGroupDescribe (key 77): state, epochs, members and assignments of share groups (KIP-932).

Behaviour: each group succeeds or fails by itself. A group with a topic in its assignments that the client may not describe is
refused, for the members cannot be shown without it. Without ``share.version`` 1 every group is refused with UNSUPPORTED_VERSION.

Version notes: 1 is the only one; 0 was of the early access, before Kafka 4.1.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest, ShareGroupDescribeResponse
from .call import Call
from .rights import GROUP, TOPIC, allowed_names, authorized_operations, check
from .share_groups import check_enabled


async def handle(call: Call, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    check_enabled(call)
    response = ShareGroupDescribeResponse()
    for group_id in request.group_ids:
        try:
            check(call, Operation.DESCRIBE, GROUP, group_id)
            if not group_id:
                raise KafkaError(ErrorCode.INVALID_GROUP_ID)
            group = await call.broker.groups.describe_share_group(group_id, call.flush)
            _check_topics(call, group)
        except KafkaError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = authorized_operations(call, GROUP, group_id)
        response.groups.append(group)
    return response


def _check_topics(call: Call, group: DescribedGroup) -> None:
    topics = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if allowed_names(call, Operation.DESCRIBE, TOPIC, topics) != topics:
        why = "The group has described topic(s) that the client is not authorized to describe."
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, why)


def error_response(request: ShareGroupDescribeRequest, error: KafkaError) -> ShareGroupDescribeResponse:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    return ShareGroupDescribeResponse(groups=groups)
