"""CreateDelegationToken (key 38): makes a token with which a client authenticates as the token's owner (KIP-48).

Behaviour: any broker does it. The owner is the client itself, or another user for whom the client may make tokens (KIP-373).
The response has the token's HMAC, its password.

Version notes: 1 has the response come before the throttling; 2 is flexible; 3 names an owner.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation, ResourceType
from ..security.delegation import DelegationToken, check_may_ask, check_renewers
from ..security.principal import Principal
from ..wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from .call import Call
from .delegation_tokens import NO_TIME, enabled_tokens
from .rights import check


async def handle(call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    requester = call.connection.principal
    owner = token_owner(request, requester)
    renewers = [Principal(renewer.principal_type, renewer.principal_name) for renewer in request.renewers]
    try:
        check_may_ask(call.connection.security_protocol, requester)
        if owner != requester:
            check(call, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
        check_renewers(renewers)
        passwords = enabled_tokens(call)
        token = await call.broker.commands.create_token(owner, requester, renewers, request.max_lifetime_ms)
    except KafkaError as error:
        return refused_token(call.version, owner, requester, error)
    return _from(call.version, owner, requester, _response(token, passwords.hmac(token)))


def token_owner(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """The user whom the request names, or the one who asks."""
    if request.owner_principal_name:
        return Principal(request.owner_principal_type or "", request.owner_principal_name)
    return requester


def refused_token(
    version: int, owner: Principal, requester: Principal, error: KafkaError
) -> CreateDelegationTokenResponse:
    return _from(version, owner, requester, _refusal(error))


def _from(
    version: int, owner: Principal, requester: Principal, response: CreateDelegationTokenResponse
) -> CreateDelegationTokenResponse:
    """The response with owner and requester filled in."""
    response.principal_type, response.principal_name = owner.type, owner.name
    if version >= 3:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response


def _response(token: DelegationToken, hmac: bytes) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expiry_ms,
        max_timestamp_ms=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
    )


def _refusal(error: KafkaError) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error.code,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


def error_response(request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    return _refusal(error)
