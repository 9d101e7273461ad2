"""DeleteAcls (key 31): removes the access rules that match filters.

v1  pattern type (KIP-290)
v3  rules for users as resources
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: int8 = field()
    resource_name_filter: string | None = field()
    pattern_type_filter: int8 = field("1+", default=3)
    principal_filter: string | None = field()
    host_filter: string | None = field()
    operation: int8 = field()
    permission_type: int8 = field()


@request(key=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = field()


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field("1+", default=3)
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


@struct
class DeleteAclsFilterResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    matching_acls: list[DeleteAclsMatchingAcl] = field()


@response(key=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+")
class DeleteAclsResponse(Message):
    throttle_time_ms: int32 = field()
    filter_results: list[DeleteAclsFilterResult] = field()
