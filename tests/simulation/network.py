"""The network of a simulated machine, and the clients' way over it.

``SimulatedNetwork`` can cut every connection at once, as the death of a process does. A ``Client`` has one connection at a
time, and a ``TroubledConnection`` does to its requests what a network can do; ``Lost`` is all that its caller learns.
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
    """There is no answer, and it is not known whether the request was executed."""


class SimulatedNetwork(MemoryNetwork):
    """``trouble`` is the chance that a request meets with a fault of the network."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble = 0.0
        self._open: list[MemoryConnection] = []

    async def connect(self, host: str, port: int) -> MemoryConnection:
        connection = await super().connect(host, port)
        self._open = [open_one for open_one in self._open if not open_one.is_closed] + [connection]
        return connection

    def cut_all(self) -> None:
        """Every connection breaks, and there is no listener any more."""
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
    """A client's way to the broker: each of its requests may meet with trouble."""

    def __init__(self, network: TroubledConnections, rng: random.Random) -> None:
        self.listen = network.listen
        self._network = network
        self._rng = rng

    async def connect(self, host: str, port: int) -> TroubledConnection:
        return TroubledConnection(await self._network.connect(host, port), self._network, self._rng)


class TroubledConnection:
    """A request, which is sent as one, may be late, come in two pieces, or be cut off before or after it was executed."""

    def __init__(self, connection: BreakableConnection, network: TroubledConnections, rng: random.Random) -> None:
        self.peer = connection.peer
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
            if fate < 0.8:  # the answer is lost, wherever the request has got to
                self._connection.cut()

    async def _send_badly(self, frame: bytes, fate: float) -> None:
        cut = self._rng.randrange(len(frame))
        await self._connection.send([frame[:cut]])
        await trio.sleep(self._rng.choice([0.001, 0.05, 0.5]))
        if fate < 0.2:
            self._connection.cut()
        await self._connection.send([frame[cut:]])


class Client:
    """One client: it speaks as brokers do to each other, over a network with trouble."""

    def __init__(self, network: SimulatedNetwork, name: str, rng: random.Random) -> None:
        self.name = name
        self._network = TroubledNetwork(network, rng)
        self._rng = rng
        self._client = self._new_client()

    def _new_client(self) -> BrokerClient:
        return BrokerClient(self._network, HOST, PORT, self.name, timeout=REQUEST_SECONDS)

    async def call(self, request: Message, version: int) -> Any:
        """The answer. Raises Lost."""
        try:
            return await self._client.send(request, version)
        except PeerUnavailableError as error:
            await trio.sleep(_RECONNECT_SECONDS * self._rng.uniform(0.5, 2))
            raise Lost(str(error)) from None

    def close(self) -> None:
        """Go without a word, as a client does that dies; the next call is that of a new one."""
        self._client.close()
        self._client = self._new_client()
