"""DescribeAcls (key 29): the access rules that match a filter.

v1  pattern type (KIP-290)
v3  rules for users as resources
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@request(key=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsRequest(Message):
    resource_type_filter: int8 = field()
    resource_name_filter: string | None = field()
    pattern_type_filter: int8 = field("1+", default=3)
    principal_filter: string | None = field()
    host_filter: string | None = field()
    operation: int8 = field()
    permission_type: int8 = field()


@struct
class AclDescription(Struct):
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


@struct
class DescribeAclsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field("1+", default=3)
    acls: list[AclDescription] = field()


@response(key=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+")
class DescribeAclsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    resources: list[DescribeAclsResource] = field()
