"""DescribeConfigs (key 32): configurations of topics, brokers and other resources (KIP-133).

v0  has ``is_default`` where later versions have the source
v1  source and synonyms of each value (KIP-226)
v2  the response is sent before the throttling, not after it
v3  type and documentation of each value (KIP-569)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class DescribeConfigsResource(Struct):
    resource_type: int8 = field()  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: string = field()
    configuration_keys: list[string] | None = field()  # null means all


@request(key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = field()
    include_synonyms: bool = field("1+")
    include_documentation: bool = field("3+")


@struct
class DescribeConfigsSynonym(Struct):
    name: string = field("1+")
    value: string | None = field("1+")
    source: int8 = field("1+")


@struct
class DescribeConfigsResourceResult(Struct):
    name: string = field()
    value: string | None = field()
    read_only: bool = field()
    is_default: bool = field("0")
    config_source: int8 = field("1+", default=-1, ignorable=True)
    is_sensitive: bool = field()
    synonyms: list[DescribeConfigsSynonym] = field("1+", ignorable=True)
    config_type: int8 = field("3+", ignorable=True)
    documentation: string | None = field("3+", ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    resource_type: int8 = field()
    resource_name: string = field()
    configs: list[DescribeConfigsResourceResult] = field()


@response(key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[DescribeConfigsResult] = field()
