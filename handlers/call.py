"""The request a handler is working on: its header, where it came from, and the broker's parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from .services import Services


class CloseConnection(Exception):
    """Raised by a handler that has no answer to give: the connection is closed, which is what the client expects.

    Kafka does so when a produce with acks=0 fails.
    """


class Call:
    """One request of one connection. A connection has one Call, whose header fields change with each request."""

    __slots__ = (
        "_flush",
        "broker",
        "client_id",
        "client_software_name",
        "client_software_version",
        "correlation_id",
        "listener",
        "peer",
        "version",
    )

    def __init__(self, broker: Services, listener: str, peer: str, flush: Callable[[], Awaitable[None]]) -> None:
        self.broker = broker
        self.listener = listener
        self.peer = peer
        self._flush = flush
        self.version = 0
        self.correlation_id = 0
        self.client_id = ""
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"

    async def flush(self) -> None:
        """Send the answers already made on this connection; a handler calls it before it waits for anything."""
        await self._flush()
