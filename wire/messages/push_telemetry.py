"""PushTelemetry (key 72): a client sends its metrics (KIP-714)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int8, int16, int32, request, response, uuid


@request(key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest(Message):
    client_instance_id: uuid = field()
    subscription_id: int32 = field()
    terminating: bool = field()
    compression_type: int8 = field()
    metrics: bytes = field()  # OTLP protobuf


@response(key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
