"""The network of a simulated machine, and the clients' way over it.

``SimulatedNetwork`` can cut every connection at once, as the death of a process does. A ``Client`` is one connection at a
time: a request is late, its frame comes in two pieces, its answer is late, or the connection is cut before or after the
request was executed; ``Lost`` is all that its caller learns.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import trio

from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import decode_response_header, encode_request_header
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

HOST, PORT = "broker", 9092
REQUEST_SECONDS = 15.0
_RECONNECT_SECONDS = 0.05


class Lost(Exception):
    """There is no answer, and nobody knows whether the request was executed."""


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
        """Every connection breaks, and nobody listens any more."""
        self.listeners.clear()
        for connection in self._open:
            connection.cut()
        self._open.clear()


class Client:
    """One client's connection to the broker."""

    def __init__(self, network: SimulatedNetwork, name: str, rng: random.Random) -> None:
        self.name = name
        self._network = network
        self._rng = rng
        self._connection: MemoryConnection | None = None
        self._received = bytearray()
        self._correlation_id = 0

    async def call(self, request: Message, version: int) -> Any:
        """The answer. Raises Lost."""
        try:
            with trio.fail_after(REQUEST_SECONDS):
                return await self._call(request, version)
        except (OSError, EOFError, trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.close()
            await trio.sleep(_RECONNECT_SECONDS * self._rng.uniform(0.5, 2))
            raise Lost(type(error).__name__) from None

    async def _call(self, request: Message, version: int) -> Any:
        rng = self._rng
        fate = rng.random()
        has_trouble = rng.random() < self._network.trouble
        if self._connection is None:
            self._received.clear()
            self._connection = await self._network.connect(HOST, PORT)
        connection = self._connection
        self._correlation_id += 1
        key = ApiKey(type(request).api_key)
        header = encode_request_header(key, version, self._correlation_id, self.name)
        body = encode_bytes(request, version)
        frame = struct.pack(">i", len(header) + len(body)) + header + body
        if has_trouble and fate < 0.5:
            await self._send_badly(connection, frame, fate)
        else:
            await connection.send([frame])
        if has_trouble and fate >= 0.5:
            await trio.sleep(rng.choice([0, 0.001, 0.3]))
            if fate < 0.8:  # the answer is lost, wherever the request has got to
                connection.cut()
        answer = await self._receive_frame(connection)
        got, start = decode_response_header(answer, key, version)
        assert got == self._correlation_id, f"answer {got} came where {self._correlation_id} was due"
        return decode(response_class(key), version, memoryview(answer)[start:])

    async def _send_badly(self, connection: MemoryConnection, frame: bytes, fate: float) -> None:
        cut = self._rng.randrange(len(frame))
        await connection.send([frame[:cut]])
        await trio.sleep(self._rng.choice([0.001, 0.05, 0.5]))
        if fate < 0.2:
            connection.cut()
        await connection.send([frame[cut:]])

    async def _receive_frame(self, connection: MemoryConnection) -> bytes:
        while len(self._received) < 4 or len(self._received) < 4 + self._size():
            data = await connection.receive()
            if not data:
                raise EOFError
            self._received += data
        end = 4 + self._size()
        frame = bytes(self._received[4:end])
        del self._received[:end]
        return frame

    def _size(self) -> int:
        size: int = struct.unpack_from(">i", self._received)[0]
        return size

    def close(self) -> None:
        """Go without a word, as a client does that dies."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
