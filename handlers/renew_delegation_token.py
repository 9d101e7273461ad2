"""RenewDelegationToken (key 39): makes a token end later, up to its maximum lifetime (KIP-48).

Behaviour: any broker does it. Only the token's owner and its renewers may; the token is named by its HMAC.

Version notes: 1 has the response come before the throttling; 2 is flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from .call import Call
from .delegation_tokens import NO_TIME, asked_tokens


async def handle(call: Call, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    token = asked_tokens(call).token_of(bytes(request.hmac))
    principal = call.connection.principal
    expiry_ms = await call.broker.commands.renew_token(token.token_id, principal, request.renew_period_ms)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


def error_response(request: RenewDelegationTokenRequest, error: KafkaError) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME)
