"""What the four requests about delegation tokens share: whether the client may ask, and whether tokens are enabled."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.zookeeper.token_store import DelegationTokens
from ..security.delegation import check_may_ask
from .call import Call

NO_TIME = -1
"""In place of a time, beside an error."""


def asked_tokens(call: Call) -> DelegationTokens:
    """The broker's tokens, which the client may ask about.

    Raises KafkaError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
    """
    check_may_ask(call.connection.security_protocol, call.connection.principal)
    return enabled_tokens(call)


def enabled_tokens(call: Call) -> DelegationTokens:
    """Raises KafkaError DELEGATION_TOKEN_AUTH_DISABLED."""
    tokens = call.broker.delegation_tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens
