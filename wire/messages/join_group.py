"""JoinGroup (key 11): a member joins a classic group or takes part in its rebalance.

v1  rebalance timeout, separate from the session timeout
v2  throttle time
v3  the response is sent before the throttling, not after it
v4  a new member first gets its id and joins again with it (KIP-394)
v5  static member's instance id (KIP-345)
v7  the response names the protocol type (KIP-559)
v8  reason (KIP-800)
v9  the response may tell the leader to keep the assignment (KIP-814)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class JoinGroupRequestProtocol(Struct):
    name: string = field()
    metadata: bytes = field()  # a ConsumerProtocolSubscription, for consumers


@request(key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupRequest(Message):
    group_id: string = field()
    session_timeout_ms: int32 = field()
    rebalance_timeout_ms: int32 = field("1+", default=-1, ignorable=True)  # -1 in v0: the session timeout
    member_id: string = field()  # empty for a new member
    group_instance_id: string | None = field("5+", default=None)
    protocol_type: string = field()
    protocols: list[JoinGroupRequestProtocol] = field()  # in order of preference
    reason: string | None = field("8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("5+", default=None, ignorable=True)
    metadata: bytes = field()


@response(key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+")
class JoinGroupResponse(Message):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    error_code: int16 = field()
    generation_id: int32 = field(default=-1)
    protocol_type: string | None = field("7+", default=None, ignorable=True)
    protocol_name: string | None = field(nullable="7+")
    leader: string = field()
    skip_assignment: bool = field("9+")
    member_id: string = field()
    members: list[JoinGroupResponseMember] = field()  # for the leader only
