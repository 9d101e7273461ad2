"""Heartbeat (key 12): tells the coordinator that a member of a classic group is alive.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  static member's instance id (KIP-345)
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, request, response, string


@request(key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    group_id: string = field()
    generation_id: int32 = field()
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None)


@response(key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
