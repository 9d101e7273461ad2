"""SyncGroup (key 14): distributes the leader's assignment of a classic group to its members.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  static member's instance id (KIP-345)
v5  protocol type and name, checked against the group's (KIP-559)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: string = field()
    assignment: bytes = field()


@request(key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupRequest(Message):
    group_id: string = field()
    generation_id: int32 = field()
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None)
    protocol_type: string | None = field("5+", default=None, ignorable=True)
    protocol_name: string | None = field("5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field()  # from the leader only


@response(key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+")
class SyncGroupResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    protocol_type: string | None = field("5+", default=None, ignorable=True)
    protocol_name: string | None = field("5+", default=None, ignorable=True)
    assignment: bytes = field()
