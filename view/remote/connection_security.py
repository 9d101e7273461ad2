"""Authentication of the console as a client: TLS and SASL on each connection that it opens."""

from __future__ import annotations

import math
import ssl

import trio

from ...base.network import Connection
from ...base.seams import Workers
from ...broker.auth.sasl_client import authenticate
from ...replication.broker_client import Secure, SecuredConnection
from ...security.client_security import ClientSecurity
from ...security.sasl import SaslClient

_PART_OF_A_SESSION = 0.9
"""After which a connection is left (KIP-368); Kafka's clients do it after a random part, of 85 to 95 %."""


def entry(security: ClientSecurity, workers: Workers) -> Secure | None:
    """What a new connection goes through first; None where there is nothing. Raises SettingError."""
    context = None
    if security.tls is not None:
        from ...security.tls_context import client_context

        context = client_context(*security.tls)
    if context is None and security.mechanism is None:
        return None

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        if context is not None:
            connection = await _shaken_hands(connection, context, workers, host)
        if security.mechanism is None:
            return SecuredConnection(connection)
        try:
            began = trio.current_time()
            client = await workers.run(_sasl_client, security)
            lifetime_ms = await authenticate(connection, security.mechanism, client)
        except BaseException:
            connection.close()
            raise
        return SecuredConnection(
            connection, began + lifetime_ms / 1000 * _PART_OF_A_SESSION if lifetime_ms else math.inf
        )

    return secure


async def _shaken_hands(connection: Connection, context: ssl.SSLContext, workers: Workers, host: str) -> Connection:
    """Raises OSError."""
    from ...base.tls import TlsConnection
    from ...security.tls_context import reason

    tls = TlsConnection(connection, context, workers, server_name=host)
    try:
        await tls.handshake()
    except ssl.SSLError as error:
        raise OSError(f"SSL handshake failed: {reason(error)}") from None
    return tls


def _sasl_client(security: ClientSecurity) -> SaslClient:
    """One for each connection; a token is read anew each time. Raises OSError."""
    if security.token is not None:
        from ...security.oauthbearer import OAuthBearerClient

        return OAuthBearerClient(security.token())
    if security.mechanism == "PLAIN":
        from ...security.plain import PlainClient

        return PlainClient(security.username, security.password)
    from ...security.scram import SCRAM_MECHANISMS
    from ...security.scram_exchange import ScramClient

    assert security.mechanism is not None
    return ScramClient(SCRAM_MECHANISMS[security.mechanism], security.username, security.password)
