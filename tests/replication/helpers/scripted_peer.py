"""The other end of a ``BrokerClient``, controlled by a test, which decides when each byte is sent."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from ottla.base.memory_network import MemoryConnection, MemoryListener, MemoryNetwork
from ottla.replication.broker_client import BrokerClient, NoAnswerError
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import RequestHeader, decode_request_header, response_header_encoder
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.registry import request_class
from ottla.wire.schema import Message

from ...helpers.memory_broker import HOST, PORT

VERSION = 4
TIMEOUT = 30.0


def heartbeat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


def answer_to(number: int) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=number)


def answer_frame(header: RequestHeader, response: Message) -> bytes:
    encode_header = response_header_encoder(header.api_key, header.api_version)
    body = encode_header(header.correlation_id) + encode_bytes(response, header.api_version)
    return struct.pack(">i", len(body)) + body


class Peer:
    """The other end of one connection."""

    def __init__(self, connection: MemoryConnection) -> None:
        self.connection = connection
        self.received = bytearray()

    async def request(self) -> tuple[RequestHeader, Any]:
        """The next request."""
        while len(self.received) < 4 or len(self.received) < 4 + struct.unpack_from(">i", self.received)[0]:
            piece = await self.connection.receive()
            assert piece, "the client closed the connection"
            self.received += piece
        end = 4 + struct.unpack_from(">i", self.received)[0]
        frame = bytes(self.received[4:end])
        del self.received[:end]
        header, start = decode_request_header(frame)
        return header, decode(request_class(ApiKey(header.api_key)), header.api_version, frame[start:])

    async def answer(self, header: RequestHeader, response: Message) -> None:
        await self.connection.send([answer_frame(header, response)])

    async def echo(self) -> None:
        """Respond to the next heartbeat with its number."""
        header, request = await self.request()
        await self.answer(header, answer_to(request.generation_id))

    async def has_ended(self) -> bool:
        """Wait for the client to close the connection."""
        while await self.connection.receive():
            pass
        return True


class World:
    """A client, and the listener of its peer."""

    def __init__(self, network: MemoryNetwork, listener: MemoryListener, **limits: Any) -> None:
        self.network = network
        self.listener = listener
        self.connections: list[MemoryConnection] = []
        self.client = BrokerClient(network, HOST, PORT, "broker-1", timeout=TIMEOUT, **limits)

    async def accept(self) -> Peer:
        self.connections.append(await self.listener.accept())
        return Peer(self.connections[-1])

    async def is_answered(self) -> None:
        """Send a heartbeat, which succeeds, over a new connection."""
        async with trio.open_nursery() as nursery:
            sent = Sent(nursery, self.client, 99)
            await (await self.accept()).echo()
            await sent.is_answered()


class Sent:
    """A heartbeat sent in a task of its own, and its outcome."""

    def __init__(self, nursery: trio.Nursery, client: BrokerClient, number: int) -> None:
        self.number = number
        self.scope = trio.CancelScope()
        self.response: Any = None
        self.error: Exception | None = None
        self.is_over = trio.Event()
        nursery.start_soon(self._send, client)

    async def _send(self, client: BrokerClient) -> None:
        with self.scope:
            try:
                self.response = await client.send(heartbeat(self.number), VERSION)
            except NoAnswerError as error:
                self.error = error
        self.is_over.set()

    async def is_answered(self) -> None:
        await self.is_over.wait()
        assert self.error is None
        assert self.response == answer_to(self.number)

    async def fails(self, error_class: type[Exception], words: str) -> None:
        await self.is_over.wait()
        assert isinstance(self.error, error_class), self.error or self.response
        assert words in str(self.error)


@asynccontextmanager
async def opened(network: MemoryNetwork | None = None, **limits: Any) -> AsyncIterator[World]:
    network = network or MemoryNetwork()
    world = World(network, await network.listen(HOST, PORT, 10), **limits)
    with trio.fail_after(10 * TIMEOUT):
        yield world
    world.client.close()


async def send_all(nursery: trio.Nursery, client: BrokerClient, count: int) -> list[Sent]:
    """Send the heartbeats 0, 1, ... in this order, without waiting."""
    sent = []
    for number in range(count):
        sent.append(Sent(nursery, client, number))
        await trio.testing.wait_all_tasks_blocked()
    return sent
