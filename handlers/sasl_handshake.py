"""SaslHandshake (key 17): names the mechanism of a SASL conversation (KIP-43).

Behaviour: the conversation is that of ``broker.sasl_gate``, which takes this request where it has its place. Here it arrives out
of place: on a listener without SASL, or from a client that has shown already who it is and for good, or has just begun to
again. It is answered ILLEGAL_SASL_STATE.

Version notes: the tokens that follow version 0 are bare, those that follow version 1 are in SaslAuthenticate requests.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from .call import Call


async def handle(call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)


def error_response(request: SaslHandshakeRequest, error: KafkaError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)
