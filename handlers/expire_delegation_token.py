"""ExpireDelegationToken (key 40): moves the end of a token, or ends it now (KIP-48).

Behaviour: any broker does it. Only the token's owner and its renewers may; the token is named by its HMAC.

Version notes: 1 has the response come before the throttling; 2 is flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from .call import Call
from .delegation_tokens import NO_TIME, asked_tokens


async def handle(call: Call, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    token = asked_tokens(call).token_of(bytes(request.hmac))
    principal = call.connection.principal
    expiry_ms = await call.broker.commands.expire_token(token.token_id, principal, request.expiry_time_period_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(request: ExpireDelegationTokenRequest, error: KafkaError) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
