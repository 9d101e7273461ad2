"""The shared checks of the four delegation token requests: the client may ask, and tokens are enabled."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.token_passwords import TokenPasswords
from ..security.delegation import check_may_ask
from .call import NodeCall

NO_TIME = -1
"""In place of a time, beside an error."""


def asked_tokens(call: NodeCall) -> TokenPasswords:
    """The passwords of the tokens, which the client may ask about.

    Raises KafkaError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
    """
    check_may_ask(call.connection.security_protocol, call.connection.principal)
    return enabled_tokens(call)


def enabled_tokens(call: NodeCall) -> TokenPasswords:
    """Raises KafkaError DELEGATION_TOKEN_AUTH_DISABLED."""
    tokens = call.node.token_passwords
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens
