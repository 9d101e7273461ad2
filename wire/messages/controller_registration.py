"""ControllerRegistration (key 70): a controller tells the active one its addresses and features (KIP-919)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uint16, uuid


@struct
class Feature(Struct):
    name: string = field()
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@struct
class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
    security_protocol: int16 = field()


@request(key=ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationRequest(Message):
    controller_id: int32 = field()
    incarnation_id: uuid = field()
    zk_migration_ready: bool = field()
    listeners: list[Listener] = field()
    features: list[Feature] = field()


@response(key=ApiKey.CONTROLLER_REGISTRATION, versions="0", flexible="0+")
class ControllerRegistrationResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
