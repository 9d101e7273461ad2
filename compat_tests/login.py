"""The TLS handshake and SASL authentication of a ``wire_client`` connection."""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients.security import OAUTHBEARER, Security, ssl_context
from ottla.security.plain import PlainClient
from ottla.security.sasl import SaslClient
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

if TYPE_CHECKING:
    from ottla.compat_tests.wire_client import Connection

CLIENTS: dict[str, Callable[[str, str], SaslClient]] = {
    "PLAIN": PlainClient,
    **{each.sasl_name: functools.partial(ScramClient, each) for each in ScramMechanism},
}


class Refused(OSError):
    """The broker does not let this client in."""


def encrypted(plain: socket.socket, host: str, security: Security) -> socket.socket:
    """The socket with TLS over it. Raises OSError."""
    return ssl_context(security).wrap_socket(plain, server_hostname=host)


def log_in(connection: Connection, security: Security) -> None:
    """Raises Refused."""
    assert security.mechanism is not None
    answer = connection.call(SaslHandshakeRequest(mechanism=security.mechanism), 1)
    if answer.error_code:
        raise Refused(f"{ErrorCode(answer.error_code).name}: the broker has {', '.join(answer.mechanisms)}")
    if security.mechanism == OAUTHBEARER:
        _ask(connection, f"n,,\x01auth=Bearer {security.token}\x01\x01".encode())
        return
    client = CLIENTS[security.mechanism](security.username, security.password)
    token = client.respond(b"")
    while token is not None:
        token = client.respond(_ask(connection, token))


def _ask(connection: Connection, token: bytes) -> bytes:
    answer = connection.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    if answer.error_code:
        raise Refused(f"{ErrorCode(answer.error_code).name}: {answer.error_message}")
    challenge: bytes = answer.auth_bytes
    return challenge
