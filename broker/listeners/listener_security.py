"""The security protocol of a listener: a TLS handshake, and SASL before the first request."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from ...base.config import Config
from ...base.network import Connection, NetworkListener
from ...base.seams import Workers
from ...handlers.connection_context import ConnectionContext
from ...handlers.node_services import NodeServices
from ..listener_config import ListenerConfig
from .addresses import ListenerAddress
from .gate import Gate
from .monitor import Monitor

Transport = Callable[[Connection, ConnectionContext], Awaitable[Connection]]
"""Makes the handshake of an accepted connection; returns the connection to use from then on, which owns the one given.

It sets the context's principal where the client has shown a certificate. Raises OSError; closing the connection and the
deadline are the caller's.
"""

Background = Callable[[Workers], Awaitable[None]]
"""A loop that runs while the listener is open, for instance to read keys again."""

MakeGate = Callable[[ConnectionContext, NodeServices, Monitor], Gate]
"""The gate of a connection whose transport is ready."""


@dataclasses.dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The security of one listener. What its protocol does not have is None."""

    transport: Transport | None = None
    make_gate: MakeGate | None = None
    background: tuple[Background, ...] = ()
    """Loops to run while the listener is open."""
    check: Callable[[Config], None] | None = None
    """Raises SettingError if the listener cannot use another configuration, which may differ only in the content of a file."""
    follow: Callable[[], None] | None = None
    """Has the listener use the configuration as it is now."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServedListener:
    """A listener that is bound."""

    endpoint: ListenerAddress
    """Where it is bound; the port is never 0."""
    listener: NetworkListener
    security: ListenerSecurity
    is_inter_broker: bool

    @property
    def name(self) -> str:
        return self.endpoint.name


def listener_security(config: ListenerConfig, workers: Workers, *, is_inter_broker: bool) -> ListenerSecurity:
    """What the connections of a listener go through, by its settings. Raises SettingError."""
    security = ListenerSecurity()
    if config.security_protocol in ("SSL", "SASL_SSL"):
        from ..auth.tls_transport import TlsListener  # OpenSSL is slow to load

        tls = TlsListener(config, workers, is_inter_broker=is_inter_broker)
        security = ListenerSecurity(tls.accept, check=tls.check, follow=tls.follow)
    if config.security_protocol not in ("SASL_PLAINTEXT", "SASL_SSL"):
        return security
    from .sasl_gate import SaslGate, sasl_listener

    listener = sasl_listener(config)
    background = tuple(each.background for each in listener.mechanisms.values() if each.background is not None)

    def make_gate(context: ConnectionContext, services: NodeServices, monitor: Monitor) -> Gate:
        return SaslGate(context, services, monitor, listener)

    return dataclasses.replace(security, make_gate=make_gate, background=background)
