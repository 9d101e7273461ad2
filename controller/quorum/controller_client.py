"""A broker's connection to one controller of the quorum at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...wire.schema import Message
from ..raft.voters import ControllerAddress


class ControllerPeer(Protocol):
    """As ``BrokerClient``, whose docstrings say it all."""

    async def negotiate(self, request: type[Message], highest: int | None = None) -> int: ...

    async def send(self, request: Any, version: int) -> Any: ...

    def close(self) -> None: ...


Connect = Callable[[ControllerAddress], ControllerPeer]
"""Makes a client of the controller at an address."""


class ControllerClient:
    """``connect`` makes the client of a controller; it is closed when another one is asked for."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._client: ControllerPeer | None = None
        self._address: ControllerAddress | None = None

    def at(self, address: ControllerAddress) -> ControllerPeer:
        """The client of the controller at this address."""
        self.leave_all_but(address)
        if self._client is None:
            self._client, self._address = self._connect(address), address
        return self._client

    def leave_all_but(self, address: ControllerAddress) -> None:
        """End a connection to any other controller."""
        if self._address != address:
            self.close()

    def close(self) -> None:
        """End the connection; a request in flight gets no response."""
        if self._client is not None:
            self._client.close()
            self._client = None
