"""DeleteGroups (key 42): removes empty groups with their offsets (KIP-229).

v1  the response is sent before the throttling, not after it
v3  an error message per group
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@request(key=ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsRequest(Message):
    groups_names: list[string] = field()


@struct
class DeletableGroupResult(Struct):
    group_id: string = field()
    error_code: int16 = field()
    error_message: string | None = field("3+", default=None, ignorable=True)


@response(key=ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[DeletableGroupResult] = field()
