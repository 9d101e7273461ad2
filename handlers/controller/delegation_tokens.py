"""Delegation token requests at a controller, which first checks who may ask (KIP-48, KIP-373).

Who has authenticated by a token may not, nor, where the client has not asked a broker, who is not authenticated
(ControllerApis ``allowTokenRequests``).
"""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from ...security.acl import Operation, ResourceType
from ...security.delegation import check_may_ask
from ...wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ...wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ...wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ..create_delegation_token import refused_token, token_owner
from ..rights import check
from . import operations
from .call import ControllerCall

_FIRST_WITH_REQUESTER = 3


async def create(call: ControllerCall, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """A token for the client, or for another user where the client may make tokens for that one."""
    requester = call.connection.principal
    owner = token_owner(request, requester)
    try:
        _check_may_ask(call)
        if owner != requester:
            check(call, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
    except KafkaError as error:
        return refused_token(call.version, owner, requester, error)
    response: CreateDelegationTokenResponse = await operations.handle(call, request)
    if call.version < _FIRST_WITH_REQUESTER:
        response.token_requester_principal_type = response.token_requester_principal_name = ""
    return response


async def change(
    call: ControllerCall, request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest
) -> RenewDelegationTokenResponse | ExpireDelegationTokenResponse:
    """Renew a token, or end it. Raises KafkaError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    _check_may_ask(call)
    response: RenewDelegationTokenResponse | ExpireDelegationTokenResponse = await operations.handle(call, request)
    return response


def _check_may_ask(call: ControllerCall) -> None:
    """Raises KafkaError. A forwarded request comes over the connection of a broker, which says nothing of the client."""
    principal = call.connection.principal
    if not call.is_forwarded:
        check_may_ask(call.connection.security_protocol, principal)
    elif principal.token_authenticated:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
