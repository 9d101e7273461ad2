"""SaslAuthenticate (key 36): a token of a SASL conversation (KIP-152).

Behaviour: as for SaslHandshake; where it is not expected it is answered ILLEGAL_SASL_STATE.

Version notes: 1 answers how long the session lasts (KIP-368); 2 is flexible.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from .call import NodeCall


async def handle(call: NodeCall, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    why = "SaslAuthenticate request received after successful authentication"
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, why)


def error_response(request: SaslAuthenticateRequest, error: KafkaError) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)
