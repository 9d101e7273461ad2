"""A whole broker in the loop of a test, on a network in memory; frames that a test encodes and decodes itself."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.seams import Clock
from ottla.broker.server import BrokerServer
from ottla.wire.codec import encode_bytes
from ottla.wire.headers import encode_request_header
from ottla.wire.schema import Message

ADDRESS = HOST, PORT = "test", 9092


@asynccontextmanager
async def serving(folder: Path, *, clock: Clock | None = None, **properties: str) -> AsyncIterator[MemoryNetwork]:
    """A broker at ADDRESS of the network. ``properties`` are its configuration, with _ for the dots."""
    network = MemoryNetwork()
    named = {name.replace("_", "."): value for name, value in properties.items()}
    config = Config({"log.dirs": str(folder), "listeners": f"PLAINTEXT://{HOST}:{PORT}", **named})
    async with running(BrokerServer(config, network=network, clock=clock)):
        yield network


@asynccontextmanager
async def running(server: BrokerServer) -> AsyncIterator[BrokerServer]:
    """A context with a broker that serves; it has stopped at the end."""
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, ready.set)
        with trio.fail_after(20):
            await ready.wait()
        yield server
        server.stop()


def frame(request: Message, version: int, correlation_id: int, client_id: str = "c") -> bytes:
    """The frame of a request."""
    body = encode_request_header(request.api_key, version, correlation_id, client_id) + encode_bytes(request, version)
    return struct.pack(">i", len(body)) + body


async def read_answer(client: MemoryConnection) -> tuple[int, bytes]:
    """(correlation id, the frame from there on)."""
    (size,) = struct.unpack(">i", await _read_exactly(client, 4))
    answer = await _read_exactly(client, size)
    return struct.unpack_from(">i", answer)[0], answer


async def _read_exactly(client: MemoryConnection, size: int) -> bytes:
    received = b""
    with trio.fail_after(20):
        while len(received) < size:
            piece = await client.receive(size - len(received))
            assert piece, "the broker closed the connection"
            received += piece
    return received
