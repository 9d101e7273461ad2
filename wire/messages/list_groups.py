"""ListGroups (key 16): the groups that a broker coordinates.

v1  throttle time
v2  the response is sent before the throttling, not after it
v4  filter by state (KIP-518)
v5  filter by group type (KIP-848)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@request(key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest(Message):
    states_filter: list[string] = field("4+")
    types_filter: list[string] = field("5+")


@struct
class ListedGroup(Struct):
    group_id: string = field()
    protocol_type: string = field()
    group_state: string = field("4+", ignorable=True)
    group_type: string = field("5+", ignorable=True)


@response(key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field()
    groups: list[ListedGroup] = field()
