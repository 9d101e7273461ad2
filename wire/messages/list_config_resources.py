"""ListConfigResources (key 74): names of resources that can be configured.

Kafka 3.9 calls it ListClientMetricsResources.

v0  client metrics subscriptions only (KIP-714)
v1  resources of the types asked for; with none, of every type (KIP-1142)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@request(key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message):
    resource_types: list[int8] = field("1+")


@struct
class ConfigResource(Struct):
    resource_name: string = field()
    resource_type: int8 = field("1+", default=16, ignorable=True)


@response(key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    config_resources: list[ConfigResource] = field()
