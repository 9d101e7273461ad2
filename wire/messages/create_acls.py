"""CreateAcls (key 30): adds access rules.

v1  pattern type: literal or prefixed names (KIP-290)
v3  rules for users as resources (delegation tokens)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class AclCreation(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    resource_pattern_type: int8 = field("1+", default=3)
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


@request(key=ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsRequest(Message):
    creations: list[AclCreation] = field()


@struct
class AclCreationResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()


@response(key=ApiKey.CREATE_ACLS, versions="0-3", flexible="2+")
class CreateAclsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[AclCreationResult] = field()
