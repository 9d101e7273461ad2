"""Where the cluster's state is: in a folder of the broker's own, or in a store that several brokers share."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SimulatedClock, SystemClock
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerFailedError, BrokerServer, StartError
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_home import ClusterHome
from ottla.controller.zookeeper.store.session import StoreSession
from ottla.log.memory_disk import MemoryDisk
from ottla.tests.zookeeper_double.embedded_session import EmbeddedSession
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.tests.zookeeper_double.shared_home import SharedHome

FOLDERS = ("/first", "/second")


def server(broker_id: int, home: ClusterHome | None, network: MemoryNetwork | None = None) -> BrokerServer:
    properties = {
        "broker.id": str(broker_id),
        "log.dirs": ",".join(FOLDERS),
        "listeners": f"PLAINTEXT://127.0.0.1:{9090 + broker_id}",
    }
    return BrokerServer(
        load_config(properties),
        network=network or MemoryNetwork(),
        clock=SimulatedClock(),
        workers=InlineWorkers(),
        disk=MemoryDisk(),
        randomness=random.Random(broker_id),
        home=home,
    )


@asynccontextmanager
async def serving(*servers: BrokerServer) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for each in servers:
            ready = trio.Event()
            nursery.start_soon(each.serve, ready.set)
            await ready.wait()
        yield
        for each in servers:
            each.stop()


async def shared_store() -> EmbeddedStore:
    store = EmbeddedStore(SystemClock())
    await store.open()
    return store


def fail(broker: BrokerServer, folder: int) -> None:
    assert broker.assembly is not None
    broker.assembly.logs.folders[folder].fail("a test", OSError(5, "gone"))


async def test_brokers_of_one_store_are_one_cluster() -> None:
    store = await shared_store()
    network = MemoryNetwork()
    brokers = [server(broker_id, SharedHome(store), network) for broker_id in (1, 2)]
    async with serving(*brokers):
        session = store.session()
        assert sorted(await session.children(znodes.BROKER_IDS)) == ["1", "2"]
        first, second = (broker.assembly for broker in brokers)
        assert first is not None
        assert second is not None
        assert first.cluster_id == second.cluster_id
        assert [each.services.cluster.is_controller for each in (first, second)] == [True, False]
    assert await session.children(znodes.BROKER_IDS) == []


async def test_a_failed_first_folder_that_is_not_the_stores_home_stops_nothing() -> None:
    store = await shared_store()
    broker = server(1, SharedHome(store))
    async with serving(broker):
        assert broker.assembly is not None
        fail(broker, 0)
        await trio.testing.wait_all_tasks_blocked()
        assert await store.session().children(znodes.BROKER_IDS) == ["1"]
        assert broker.readiness() == {"logs_loaded": True, "controller_elected": True, "listeners_open": True}


async def test_a_failed_first_folder_that_is_the_stores_home_stops_the_broker() -> None:
    broker = server(1, None)
    with pytest.RaisesGroup(pytest.RaisesExc(BrokerFailedError, match="/first, which has the cluster's state")):
        async with serving(broker):
            fail(broker, 0)
            await trio.sleep_forever()


async def test_a_broker_whose_session_expires_registers_again_and_serves_on() -> None:
    store = await shared_store()
    network = MemoryNetwork()
    brokers = [server(broker_id, SharedHome(store), network) for broker_id in (1, 2)]
    async with serving(*brokers):
        session = store.session()
        first, second = (broker.assembly for broker in brokers)
        assert first is not None
        assert second is not None
        epochs = {i: (await session.get(znodes.broker_path(i))).stat.czxid for i in (1, 2)}
        for each in store.sessions:
            await each.expire()
        session = store.session()
        with trio.fail_after(5):
            while sorted(await session.children(znodes.BROKER_IDS)) != ["1", "2"]:
                await trio.lowlevel.checkpoint()
            while first.services.cluster.is_controller is second.services.cluster.is_controller:
                await trio.lowlevel.checkpoint()
        for broker_id, epoch in epochs.items():
            assert (await session.get(znodes.broker_path(broker_id))).stat.czxid > epoch


class ShortHome(SharedHome):
    """A place at a store that ends each session at once."""

    async def connect(self) -> StoreSession:
        session = await super().connect()
        assert isinstance(session, EmbeddedSession)
        await session.expire()
        return session


async def test_a_broker_whose_sessions_all_end_at_once_does_not_start_and_leaves_none_behind() -> None:
    store = await shared_store()
    watcher = store.session()
    with trio.fail_after(20), pytest.raises(StartError, match="the cluster store does not serve this broker"):
        await server(1, ShortHome(store)).serve()
    assert store.sessions == [watcher]


async def test_a_broker_whose_connection_is_lost_while_it_starts_goes_on() -> None:
    store = await shared_store()
    home = SharedHome(store)
    home.link.lose_connection_at_next_multi(is_executed=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        async with serving(server(1, home)):
            assert await store.session().children(znodes.BROKER_IDS) == ["1"]
        nursery.cancel_scope.cancel()
