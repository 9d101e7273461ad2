"""LeaveGroup (key 13): members leave a classic group.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  many members at once, each by member id or instance id (KIP-345)
v5  reason (KIP-800)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class MemberIdentity(Struct):
    member_id: string = field("3+")
    group_instance_id: string | None = field("3+", default=None)
    reason: string | None = field("5+", default=None, ignorable=True)


@request(key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupRequest(Message):
    group_id: string = field()
    member_id: string = field("0-2")
    members: list[MemberIdentity] = field("3+")


@struct
class MemberResponse(Struct):
    member_id: string = field("3+")
    group_instance_id: string | None = field("3+")
    error_code: int16 = field("3+")


@response(key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+")
class LeaveGroupResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    members: list[MemberResponse] = field("3+")
