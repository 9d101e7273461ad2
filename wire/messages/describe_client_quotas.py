"""DescribeClientQuotas (key 48): quotas that match filters (KIP-546)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, float64, int8, int16, int32, request, response, string, struct


@struct
class ComponentData(Struct):
    entity_type: string = field()
    match_type: int8 = field()
    match: string | None = field()


@request(key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = field()
    strict: bool = field()


@struct
class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


@struct
class ValueData(Struct):
    key: string = field()
    value: float64 = field()


@struct
class EntryData(Struct):
    entity: list[EntityData] = field()
    values: list[ValueData] = field()


@response(key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    entries: list[EntryData] | None = field()
