"""SaslHandshake (key 17): names the mechanism of a SASL conversation (KIP-43).

Behaviour: ``broker.listeners.sasl_gate`` handles this request where it is expected. Here it arrives when it is not: on a
listener without SASL, or from a client that has authenticated already and need not do so again, or that has just begun to do
so again. It is answered ILLEGAL_SASL_STATE.

Version notes: the tokens that follow version 0 are bare, those that follow version 1 are in SaslAuthenticate requests.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from .call import NodeCall


async def handle(call: NodeCall, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE)


def error_response(request: SaslHandshakeRequest, error: KafkaError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)
