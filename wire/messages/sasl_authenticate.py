"""SaslAuthenticate (key 36): one step of an authentication (KIP-152).

v1  how long the session lasts (KIP-368)
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int64, request, response, string


@request(key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    auth_bytes: bytes = field(secret=True)


@response(key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    error_code: int16 = field()
    error_message: string | None = field()
    auth_bytes: bytes = field(secret=True)
    session_lifetime_ms: int64 = field("1+", ignorable=True)  # 0: without end
