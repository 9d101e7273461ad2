"""ExpireDelegationToken (key 40): changes when a token expires, or expires it now (KIP-48).

v1  the response is sent before the throttling, not after it
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response


@request(key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    hmac: bytes = field(secret=True)
    expiry_time_period_ms: int64 = field()


@response(key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    error_code: int16 = field()
    expiry_timestamp_ms: int64 = field()
    throttle_time_ms: int32 = field()
