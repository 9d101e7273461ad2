"""DescribeGroups (key 15): state and members of groups.

Behaviour: each group succeeds or fails by itself. Members have metadata and assignments while the group is Stable.

Version notes: 1 adds the throttle time; 3 the authorized operations (INT32_MIN when not asked for); 4 the instance id of
static members; 5 is flexible; 6 answers GROUP_ID_NOT_FOUND with a text for an unknown group, which before is a group in
state Dead without an error (KIP-1043).
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from .call import Call
from .rights import GROUP, authorized_operations, check

_ERROR_MESSAGE_FROM = 6


async def handle(call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    response = DescribeGroupsResponse()
    for group_id in request.groups:
        try:
            check(call, Operation.DESCRIBE, GROUP, group_id)
            group = await call.broker.groups.describe_group(group_id, call.version, call.flush)
        except KafkaError as error:
            group = DescribedGroup(group_id=group_id, error_code=error.code)
            if call.version >= _ERROR_MESSAGE_FROM:
                group.error_message = error.message
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = authorized_operations(call, GROUP, group_id)
        response.groups.append(group)
    return response


def error_response(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups]
    return DescribeGroupsResponse(groups=groups)
