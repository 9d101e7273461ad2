"""DescribeDelegationToken (key 41): the tokens that a client may see, with their passwords (KIP-48).

Behaviour: the response has the tokens that one of the owners named owns, has asked for or may renew, all where none is named; an
empty list of owners gives none.

Version notes: 1 has the response come before the throttling; 2 is flexible; 3 tells who asked for the token.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation, ResourceType
from ..security.delegation import DelegationToken
from ..security.principal import Principal
from ..wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from .call import NodeCall
from .delegation_tokens import asked_tokens
from .rights import may


async def handle(call: NodeCall, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    passwords = asked_tokens(call)
    owners = request.owners
    asker = call.connection.principal
    wanted = None if owners is None else [Principal(owner.principal_type, owner.principal_name) for owner in owners]
    described = [
        _described(call.version, token, passwords.hmac(token))
        for token in call.node.metadata.image.tokens.values()
        if (wanted is None or any(map(token.concerns, wanted))) and _is_visible(call, asker, token)
    ]
    return DescribeDelegationTokenResponse(tokens=described)


def _is_visible(call: NodeCall, asker: Principal, token: DelegationToken) -> bool:
    """Whether the token concerns the client, or the client may describe it or the tokens of its owner."""
    return (
        token.concerns(asker)
        or may(call, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id, log_if_denied=False)
        or may(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner), log_if_denied=False)
    )


def _described(version: int, token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    described = DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=renewer.type, principal_name=renewer.name)
            for renewer in token.renewers
        ],
    )
    if version >= 3:
        described.token_requester_principal_type = token.requester.type
        described.token_requester_principal_name = token.requester.name
    return described


def error_response(request: DescribeDelegationTokenRequest, error: KafkaError) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error.code)
