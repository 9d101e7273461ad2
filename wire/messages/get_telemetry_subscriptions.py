"""GetTelemetrySubscriptions (key 71): which metrics a client should push (KIP-714)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int8, int16, int32, request, response, string, uuid


@request(key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: uuid = field()


@response(key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    client_instance_id: uuid = field()
    subscription_id: int32 = field()
    accepted_compression_types: list[int8] = field()
    push_interval_ms: int32 = field()
    telemetry_max_bytes: int32 = field()
    delta_temporality: bool = field()
    requested_metrics: list[string] = field()
