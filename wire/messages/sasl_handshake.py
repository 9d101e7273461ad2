"""SaslHandshake (key 17)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, request, response, string


@request(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible=None)
class SaslHandshakeRequest(Message):
    mechanism: string = field()


@response(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible=None)
class SaslHandshakeResponse(Message):
    error_code: int16 = field()
    mechanisms: list[string] = field()
