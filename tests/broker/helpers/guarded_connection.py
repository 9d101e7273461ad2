"""A connection that a gate guards, on a network in memory: the one of a client whom nobody knows yet."""

from __future__ import annotations

import functools
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.loop_turns import LoopTurns
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.network import Part
from ottla.base.seams import Clock, SystemClock
from ottla.broker.listeners.connection import ClientConnection
from ottla.broker.listeners.gate import AuthenticationFailedError, Gate
from ottla.broker.listeners.monitor import Monitor
from ottla.handlers.call import NodeCall
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.node_services import NodeServices
from ottla.handlers.table import SERVED
from ottla.security.client_quotas import ClientQuotas
from ottla.security.quota_settings import ClientQuotaSettings

LIMIT = 64
THROTTLE_MS = 2000


class Doorman:
    """Answers each frame with itself, and counts them.

    ``open`` and ``fail`` are what they say, ``slow`` is answered with a throttle, ``wait`` when the answers before it were sent.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.frame_limit: int | None = LIMIT
        self.taken = 0

    async def take(self, call: NodeCall, frame: memoryview) -> list[Part] | None:
        said = bytes(frame)
        self.taken += 1
        if said == b"open":
            self.is_open, self.frame_limit = True, None
        elif said == b"slow":
            call.throttle_ms = THROTTLE_MS
        elif said == b"wait":
            await call.flush()
        elif said == b"fail":
            raise AuthenticationFailedError("wrong word", [framed(b"no")])
        return [framed(said)]


def framed(said: bytes) -> bytes:
    return struct.pack(">i", len(said)) + said


async def heard(client: MemoryConnection) -> bytes:
    return (await read_frame(client)) or b""


async def read_frame(client: MemoryConnection) -> bytes | None:
    size = await client.receive(4)
    return await client.receive(struct.unpack(">i", size)[0]) if size else None


@asynccontextmanager
async def guarded(
    room: int = 1 << 16, clock: Clock | None = None, gate: Gate | None = None, **properties: str
) -> AsyncIterator[tuple[MemoryConnection, ClientConnection, Monitor]]:
    """A client of a connection that a ``Doorman`` guards; either direction has room for so many bytes."""
    config = Config({name.replace("_", "."): value for name, value in properties.items()})
    quotas = ClientQuotas(config.settings(ClientQuotaSettings))
    parts = SimpleNamespace(
        config=config,
        clock=clock or SystemClock(),
        served=SERVED,
        client_quotas=quotas,
        early_responses=[],
        group_turns=LoopTurns(SystemClock.elapsed),
    )
    services = cast(NodeServices, parts)
    network = MemoryNetwork(limit=room)
    listener = await network.listen("test", 1, 1)
    client = await network.connect("test", 1)
    accepted = await listener.accept()
    monitor = Monitor()
    context = ConnectionContext("OUTSIDE", accepted.peer, "SASL_PLAINTEXT")
    new_call = functools.partial(NodeCall, services)
    connection = ClientConnection(accepted, context, services, new_call, 1 << 20, monitor, gate or Doorman())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.serve)
        yield client, connection, monitor
        connection.stop()
