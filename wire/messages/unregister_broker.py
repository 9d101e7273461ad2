"""UnregisterBroker (key 64): removes from the cluster's metadata a broker that has stopped (KIP-631)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, request, response, string


@request(key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerRequest(Message):
    broker_id: int32 = field()


@response(key=ApiKey.UNREGISTER_BROKER, versions="0", flexible="0+")
class UnregisterBrokerResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
