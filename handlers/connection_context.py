"""The context of a request's connection: the peer, the listener, the principal and the session's end."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..security.principal import ANONYMOUS, Principal

_MAPPED = "::ffff:"


class ConnectionContext:
    """A connection has one, ``Call.connection``."""

    __slots__ = (
        "at_end",
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
        """The client's ``host:port``."""
        host = peer.rpartition(":")[0].strip("[]")
        mapped = host.removeprefix(_MAPPED)
        self.host = mapped if "." in mapped else host
        """The client's address without port and brackets; an IPv4 address on an IPv6 socket is the IPv4 address, as in Java."""
        self.principal: Principal = ANONYMOUS
        """The user that the client has authenticated as."""
        self.session_expires: float | None = None
        """Until when ``principal`` holds, by ``Clock.elapsed`` in seconds; None for ever (KIP-368)."""
        self.at_end: dict[Hashable, Callable[[], None]] = {}
        """What is called when the connection has ended, each under a name of its own."""
        self.is_authenticating = False
        """Whether the client is not known yet: until then its requests are charged to no quota."""

    def end(self) -> None:
        """The connection has ended: nobody gets what is made for it."""
        while self.at_end:
            self.at_end.popitem()[1]()
