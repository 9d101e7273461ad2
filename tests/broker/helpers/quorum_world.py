"""Brokers of Ottla in a cluster of KRaft whose controller is played by the test, all in one loop and on one network in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers
from ottla.broker.config_file import load_config
from ottla.broker.directories.format_directories import Formatting, format_folders
from ottla.broker.server import BrokerServer
from ottla.handlers.services import Services
from ottla.log.disk import OsDisk
from ottla.replication.broker_client import BrokerClient
from ottla.wire.schema import Message

from ...controller.quorum.helpers.scripted_controller import ScriptedController
from ...controller.quorum.helpers.scripted_quorum import HOST

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
SECONDS = 60.0


class QuorumWorld:
    """``controller`` runs; a broker is ``running`` for the length of a block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.network = MemoryNetwork(1 << 20)
        self.controller = ScriptedController(self.network)

    def format(self, broker_id: int, folders: int = 1, metadata_dir: str | None = None) -> list[str]:
        """Format a broker's folders, if they are not formatted yet; those for data are returned."""
        paths = [str(self.folder / f"{broker_id}-{number}") for number in range(folders)]
        metadata = metadata_dir or paths[0]
        every = sorted({*paths, metadata})
        wanted = Formatting(
            broker_id, CLUSTER_ID, every, metadata, "CONTROLLER", is_dynamic=False, ignores_formatted=True
        )
        format_folders(OsDisk(), wanted, random.Random(f"{broker_id} {every}"), 1, lambda line: None)
        return paths

    def make_server(self, broker_id: int = 1, folders: int = 1, **properties: str) -> BrokerServer:
        """A broker that is not started yet; ``properties`` have _ for the dots."""
        given = {
            "process.roles": "broker",
            "node.id": str(broker_id),
            "log.dirs": ",".join(self.format(broker_id, folders, properties.get("metadata_log_dir"))),
            "listeners": f"PLAINTEXT://broker{broker_id}:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{node}" for node in self.controller.ids),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        return BrokerServer(
            load_config(given), network=self.network, workers=InlineWorkers(), randomness=random.Random(broker_id)
        )

    @asynccontextmanager
    async def running(self, broker_id: int = 1, folders: int = 1, **properties: str) -> AsyncIterator[Broker]:
        """A broker that serves; it has stopped as SIGTERM does at the end."""
        server = self.make_server(broker_id, folders, **properties)
        ready, stopped = trio.Event(), trio.Event()

        async def serve() -> None:
            await server.serve(ready.set)
            stopped.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with trio.fail_after(SECONDS):
                await ready.wait()
            broker = Broker(server, BrokerClient(self.network, f"broker{broker_id}", 9092, "test"))
            try:
                yield broker
            finally:
                broker.client.close()
                server.stop()
                with trio.fail_after(SECONDS):
                    await stopped.wait()


class Broker:
    """One that serves, and a client of it."""

    def __init__(self, server: BrokerServer, client: BrokerClient) -> None:
        self.server = server
        self.client = client

    @property
    def services(self) -> Services:
        assert self.server.assembly is not None
        return self.server.assembly.services

    async def ask(self, request: Message, version: int) -> Any:
        return await self.client.send(request, version)

    async def sees(self, topic: str) -> None:
        """Wait until the broker has a topic's replica."""
        with trio.fail_after(SECONDS):
            await self.services.metadata.wait_until(lambda: bool(self.services.replicas.by_number(topic)))


@asynccontextmanager
async def quorum_world(folder: Path) -> AsyncIterator[QuorumWorld]:
    """A world whose controller serves."""
    world = QuorumWorld(folder)
    async with trio.open_nursery() as nursery:
        await nursery.start(world.controller.run)
        yield world
        nursery.cancel_scope.cancel()
