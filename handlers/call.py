"""The request a handler is working on: its header, where it came from, and the broker's parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from ..base.network import Part
from .services import Services

Observation: TypeAlias = Callable[["Call", memoryview, Any, Sequence[Part] | None], float]
"""Given a call, its frame, the response and the same as it goes to the client (None: no answer); gives the time it is now.

``call.started`` is when the frame was taken up, ``call.waited_since`` when the handler first had to wait, or 0.
"""


class RequestObserver(Protocol):
    """Is told of every request that was answered; nothing is measured for a connection that has none."""

    def elapsed(self) -> float:
        """Seconds that never go back."""
        ...

    def observation(self, api_key: int, version: int) -> Observation:
        """What is to be called for each answered request of this API and version."""
        ...


class CloseConnection(Exception):
    """Raised by a handler that has no answer to give: the connection is closed, which is what the client expects.

    Kafka does so when a produce with acks=0 fails.
    """


class Call:
    """One request of one connection. A connection has one Call, whose header fields change with each request.

    ``failed`` is set by Produce and Fetch when an error is in their answer, so that nobody has to look through every one of
    these for it; ``started`` and ``waited_since`` are there for the observer. ``observations`` are those that were asked for,
    by API key and version as ``ServedApis.routes`` are.
    """

    __slots__ = (
        "_flush",
        "broker",
        "client_id",
        "client_software_name",
        "client_software_version",
        "correlation_id",
        "failed",
        "listener",
        "observations",
        "observer",
        "peer",
        "started",
        "version",
        "waited_since",
    )

    def __init__(
        self,
        broker: Services,
        listener: str,
        peer: str,
        flush: Callable[[], Awaitable[None]],
        observer: RequestObserver | None = None,
    ) -> None:
        self.broker = broker
        self.listener = listener
        self.peer = peer
        self._flush = flush
        self.observer = observer
        self.observations: dict[int, Observation] = {}
        self.failed = False
        self.started = 0.0
        self.waited_since = 0.0
        self.version = 0
        self.correlation_id = 0
        self.client_id = ""
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"

    async def flush(self) -> None:
        """Send the answers already made on this connection; a handler calls it before it waits for anything."""
        if self.observer is not None and not self.waited_since:
            self.waited_since = self.observer.elapsed()
        await self._flush()
