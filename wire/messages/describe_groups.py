"""DescribeGroups (key 15): state and members of classic groups.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  authorized operations, if asked for (KIP-430)
v4  static members' instance ids (KIP-345)
v6  GROUP_ID_NOT_FOUND with a message, where earlier versions return a group in state Dead (KIP-1043)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@request(key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message):
    groups: list[string] = field()
    include_authorized_operations: bool = field("3+")


@struct
class DescribedGroupMember(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("4+", default=None, ignorable=True)
    client_id: string = field()
    client_host: string = field()
    member_metadata: bytes = field()
    member_assignment: bytes = field()


@struct
class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field("6+", default=None)
    group_id: string = field()
    group_state: string = field()
    protocol_type: string = field()
    protocol_data: string = field()
    members: list[DescribedGroupMember] = field()
    authorized_operations: int32 = field("3+", default=-2147483648)


@response(key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    groups: list[DescribedGroup] = field()
