"""A lone broker before KRaft, which keeps its cluster's metadata in its log directory, in the loop of a test."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer
from ottla.controller.zookeeper.store.state_files import DiskStateFiles
from ottla.log.files import OLD_STATE_DIR
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome

from ...helpers.memory_broker import running
from .controller_world import ControllerWorld


@asynccontextmanager
async def old_broker(
    world: ControllerWorld, directory: str = "/data", *, is_killed: bool = False, **properties: str
) -> AsyncIterator[BrokerServer]:
    """Broker 1, where the world's node 1 will be. At the end it has stopped, or was killed.

    ``properties`` have _ for the dots.
    """
    disk = world.disk(1)
    disk.make_dir(directory)
    clock, workers = SimulatedClock(), InlineWorkers()
    store = EmbeddedStore(clock, workers, DiskStateFiles(disk, f"{directory}/{OLD_STATE_DIR}"))
    await store.open()
    named = {name.replace("_", "."): value for name, value in properties.items()}
    own = {"listeners": "PLAINTEXT://node1:9092", "log.dirs": directory, "broker.id": "1"}
    server = BrokerServer(
        load_config(own | named),
        network=world.network,
        clock=clock,
        workers=workers,
        disk=disk,
        randomness=random.Random(1),
        home=SharedHome(store),
    )
    with trio.CancelScope() as life:
        async with running(server):
            yield server
            if is_killed:
                world.abandon_disk(1)
                life.cancel()
