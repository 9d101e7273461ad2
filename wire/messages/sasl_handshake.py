"""SaslHandshake (key 17): the client chooses an authentication mechanism (KIP-43).

v0  the mechanism's bytes follow without request headers
v1  they follow in SaslAuthenticate requests (KIP-152)
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, request, response, string


@request(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible=None)
class SaslHandshakeRequest(Message):
    mechanism: string = field()


@response(key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible=None)
class SaslHandshakeResponse(Message):
    error_code: int16 = field()
    mechanisms: list[string] = field()
