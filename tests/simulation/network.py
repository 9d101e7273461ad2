"""The network of a simulated machine, and the connections of clients.

``SimulatedNetwork`` can cut every connection at once, like the death of a process. A ``Client`` has one connection at a
time, and a ``TroubledConnection`` has faults of a network; its caller only gets ``Lost``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

import trio

from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.network import Connection, Network, Part
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError
from ottla.wire.schema import Message

HOST, PORT = "broker", 9092
REQUEST_SECONDS = 15.0
_RECONNECT_SECONDS = 0.05


class Lost(Exception):
    """There is no response, and it is unknown whether the request was executed."""


class SimulatedNetwork(MemoryNetwork):
    """``trouble`` is the probability of a fault of the network at each request."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble = 0.0
        self._open: list[MemoryConnection] = []

    async def connect(self, host: str, port: int) -> MemoryConnection:
        connection = await super().connect(host, port)
        self._open = [open_one for open_one in self._open if not open_one.is_closed] + [connection]
        return connection

    def cut_all(self) -> None:
        """Break every connection, and close the listener."""
        self.listeners.clear()
        for connection in self._open:
            connection.cut()
        self._open.clear()


class TroubledConnections(Network, Protocol):
    """A network with ``trouble``, whose connections can be cut."""

    @property
    def trouble(self) -> float: ...

    async def connect(self, host: str, port: int) -> BreakableConnection: ...


class BreakableConnection(Connection, Protocol):
    """A connection that ``cut`` breaks."""

    def cut(self) -> None: ...


class TroubledNetwork:
    """A client's connections to the broker, with faults at its requests."""

    def __init__(self, network: TroubledConnections, rng: random.Random) -> None:
        self.listen = network.listen
        self._network = network
        self._rng = rng

    async def connect(self, host: str, port: int) -> TroubledConnection:
        return TroubledConnection(await self._network.connect(host, port), self._network, self._rng)


class TroubledConnection:
    """A request, which is sent at once, may be late, arrive in two pieces, or be cut off before or after it was executed."""

    def __init__(self, connection: BreakableConnection, network: TroubledConnections, rng: random.Random) -> None:
        self.peer = connection.peer
        self.descriptor = connection.descriptor
        self.receive_into = connection.receive_into
        self.wait_readable = connection.wait_readable
        self.close = connection.close
        self._connection = connection
        self._network = network
        self._rng = rng

    async def send(self, parts: Sequence[Part]) -> None:
        rng = self._rng
        fate = rng.random()
        has_trouble = rng.random() < self._network.trouble
        frame = b"".join(parts)  # type: ignore[arg-type]  # clients send no slices of files
        if has_trouble and fate < 0.5:
            await self._send_badly(frame, fate)
        else:
            await self._connection.send([frame])
        if has_trouble and fate >= 0.5:
            await trio.sleep(rng.choice([0, 0.001, 0.3]))
            if fate < 0.8:  # the response is lost, whether the request arrives or not
                self._connection.cut()

    async def _send_badly(self, frame: bytes, fate: float) -> None:
        cut = self._rng.randrange(len(frame))
        await self._connection.send([frame[:cut]])
        await trio.sleep(self._rng.choice([0.001, 0.05, 0.5]))
        if fate < 0.2:
            self._connection.cut()
        await self._connection.send([frame[cut:]])


class Client:
    """One client: it uses the brokers' own client, over a network with faults."""

    def __init__(self, network: SimulatedNetwork, name: str, rng: random.Random) -> None:
        self.name = name
        self._network = TroubledNetwork(network, rng)
        self._rng = rng
        self._client = self._new_client()

    def _new_client(self) -> BrokerClient:
        return BrokerClient(self._network, HOST, PORT, self.name, timeout=REQUEST_SECONDS)

    async def call(self, request: Message, version: int) -> Any:
        """Send a request; returns the response. Raises Lost."""
        try:
            return await self._client.send(request, version)
        except PeerUnavailableError as error:
            await trio.sleep(_RECONNECT_SECONDS * self._rng.uniform(0.5, 2))
            raise Lost(str(error)) from None

    def close(self) -> None:
        """Abandon the connection, as a client that dies; the next call is made as a new client."""
        self._client.close()
        self._client = self._new_client()
