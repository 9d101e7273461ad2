"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single configuration values (KIP-339)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class AlterableConfig(Struct):
    name: string = field()
    config_operation: int8 = field()  # 0 set, 1 delete, 2 append, 3 subtract
    value: string | None = field(secret=True)  # null removes it


@struct
class AlterConfigsResource(Struct):
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[AlterableConfig] = field()


@request(key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    resources: list[AlterConfigsResource] = field()
    validate_only: bool = field()


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()


@response(key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int32 = field()
    responses: list[AlterConfigsResourceResponse] = field()
