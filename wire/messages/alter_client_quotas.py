"""AlterClientQuotas (key 49): sets and removes quotas of users, client ids and addresses (KIP-546).

The response's ``EntryData`` has the prefix ``Response`` here, as the request has its own.
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, float64, int16, int32, request, response, string, struct


@struct
class EntityData(Struct):
    entity_type: string = field()
    entity_name: string | None = field()


@struct
class OpData(Struct):
    key: string = field()
    value: float64 = field()
    remove: bool = field()


@struct
class EntryData(Struct):
    entity: list[EntityData] = field()
    ops: list[OpData] = field()


@request(key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    entries: list[EntryData] = field()
    validate_only: bool = field()


@struct
class ResponseEntryData(Struct):
    error_code: int16 = field()
    error_message: string | None = field()
    entity: list[EntityData] = field()


@response(key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    throttle_time_ms: int32 = field()
    entries: list[ResponseEntryData] = field()
