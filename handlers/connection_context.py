"""The context of a request's connection: the peer, the listener, the principal and the session's end."""

from __future__ import annotations

from ..security.principal import ANONYMOUS, Principal

_MAPPED = "::ffff:"


class ConnectionContext:
    """A connection has one, ``Call.connection``.

    ``peer`` is the client's ``host:port``, ``host`` its address without port and brackets; an IPv4 address on an IPv6 socket
    is the IPv4 address, as in Java. ``principal`` is the user that the client has authenticated as. ``session_expires``: the time
    of the broker's clock (``Clock.elapsed``, seconds) until which that holds, None for ever (KIP-368). ``is_authenticating``: the
    client is authenticating, and until that is done its requests are charged to no quota.
    """

    __slots__ = (
        "host",
        "is_authenticating",
        "is_inter_broker_listener",
        "listener",
        "peer",
        "principal",
        "security_protocol",
        "session_expires",
    )

    def __init__(
        self,
        listener: str,
        peer: str,
        security_protocol: str = "PLAINTEXT",
        *,
        is_inter_broker_listener: bool = False,
    ) -> None:
        self.listener = listener
        self.security_protocol = security_protocol
        self.is_inter_broker_listener = is_inter_broker_listener
        self.peer = peer
        host = peer.rpartition(":")[0].strip("[]")
        mapped = host.removeprefix(_MAPPED)
        self.host = mapped if "." in mapped else host
        self.principal: Principal = ANONYMOUS
        self.session_expires: float | None = None
        self.is_authenticating = False
