"""A whole broker in the loop of a test, on a network in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import Clock
from ottla.broker.server import BrokerServer

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
    """The broker, from when it serves until it has stopped."""
    ready = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, ready.set)
        with trio.fail_after(20):
            await ready.wait()
        yield server
        server.stop()
