"""Delegation token requests in a KRaft cluster: the broker's checks before the active controller handles them.

Only the broker knows the client's connection: who is not authenticated, or is by a token, may not ask. For a new token it looks
at the right to tokens of another owner and at the renewers as well.

Source: Kafka's KafkaApis, ``handleCreateTokenRequest`` and ``allowTokenRequests``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..base.errors import KafkaError
from ..security.acl import Operation, ResourceType
from ..security.delegation import check_may_ask, check_renewers
from ..security.principal import Principal
from ..wire.messages.create_delegation_token import CreateDelegationTokenRequest
from .call import Call
from .create_delegation_token import refused_token, token_owner
from .rights import check

Handle = Callable[[Any, Any], Awaitable[Any]]


def asked_first(forward: Handle) -> Handle:
    """``forward`` has the controller handle CreateDelegationToken, RenewDelegationToken or ExpireDelegationToken."""

    async def handle(call: Call, request: Any) -> Any:
        client = call.connection
        if not isinstance(request, CreateDelegationTokenRequest):
            check_may_ask(client.security_protocol, client.principal)
            return await forward(call, request)
        owner = token_owner(request, client.principal)
        try:
            check_may_ask(client.security_protocol, client.principal)
            if owner != client.principal:
                check(call, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))
            check_renewers(Principal(each.principal_type, each.principal_name) for each in request.renewers)
        except KafkaError as error:
            return refused_token(call.version, owner, client.principal, error)
        return await forward(call, request)

    return handle
