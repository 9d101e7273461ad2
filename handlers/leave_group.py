"""LeaveGroup (key 13): members leave, or an administrator removes them.

Behaviour: each member succeeds or fails by itself. A static member can be removed by its instance id alone.

Version notes: 0-2 name one member, whose error is that of the whole response; 1 adds the throttle time; 3 names several
members, also by instance id (KIP-345); 4 is flexible; 5 adds the reason (KIP-800).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from .call import Call
from .rights import GROUP, check

_MANY_MEMBERS_FROM = 3


async def handle(call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    check(call, Operation.READ, GROUP, request.group_id)
    if call.version >= _MANY_MEMBERS_FROM:
        return await call.broker.groups.leave_group(request, call.flush)
    request.members = [MemberIdentity(member_id=request.member_id)]
    response = await call.broker.groups.leave_group(request, call.flush)
    return LeaveGroupResponse(error_code=response.members[0].error_code)


def error_response(request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
