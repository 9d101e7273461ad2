"""AlterConfigs (key 33): replaces the whole configuration of resources (KIP-133); IncrementalAlterConfigs supersedes it.

v1  the response is sent before the throttling, not after it
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class AlterableConfig(Struct):
    name: string = field()
    value: string | None = field(secret=True)  # null removes it


@struct
class AlterConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[AlterableConfig] = field()


@request(key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = field()
    validate_only: bool = field()


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()


@response(key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+")
class AlterConfigsResponse(Message):
    throttle_time_ms: int32 = field()
    responses: list[AlterConfigsResourceResponse] = field()
