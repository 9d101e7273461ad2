"""What passes between brokers that are cut off, isolated or paused, on connections made before and after."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.memory_network import MemoryNetwork
from ottla.base.network import WOULD_BLOCK, Connection, NetworkListener
from ottla.testing.cluster_network import CONTROLLER_ADDRESS, BrokerNetwork, ClusterNetwork

PORTS = {1: 9091, 2: 9092, 3: 9093}
LONG = 100.0


class Brokers:
    """Three brokers' networks, with a listener each, and what is not one of them."""

    def __init__(self) -> None:
        self.cluster = ClusterNetwork({port: broker for broker, port in PORTS.items()})
        self.sockets = MemoryNetwork()
        self.networks = {broker: BrokerNetwork(self.cluster, broker, self.sockets) for broker in PORTS}
        self.listeners: dict[int, NetworkListener] = {}

    async def connect(self, broker: int | None, to: int) -> tuple[Connection, Connection]:
        """Both ends of a connection from a broker, or from a client."""
        network = self.sockets if broker is None else self.networks[broker]
        connection: Connection = await network.connect("broker", PORTS[to])
        return connection, await self.listeners[to].accept()


@asynccontextmanager
async def running() -> AsyncIterator[Brokers]:
    brokers = Brokers()
    for broker, network in brokers.networks.items():
        brokers.listeners[broker] = await network.listen("broker", PORTS[broker], 5)
    yield brokers


async def read(connection: Connection) -> bytes:
    buffer = bytearray(100)
    while (count := connection.receive_into(memoryview(buffer))) == WOULD_BLOCK:
        await connection.wait_readable()
    return bytes(buffer[:count])


async def passes(one: Connection, other: Connection) -> bool:
    """Whether bytes get through, each way."""
    got = []
    for source, target in ((one, other), (other, one)):
        with trio.move_on_after(LONG):
            await source.send([b"x"])
            got.append(await read(target))
    return got == [b"x", b"x"]


async def test_between_two_brokers_that_are_cut_off_nothing_passes_until_it_is_healed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as brokers:
        before = await brokers.connect(1, 2)
        back = await brokers.connect(2, 1)
        apart = await brokers.connect(1, 3)
        client = await brokers.connect(None, 2)
        brokers.cluster.cut(2, 1)
        assert not await passes(*before)
        assert not await passes(*back)
        assert await passes(*apart)
        assert await passes(*client)
        with trio.move_on_after(LONG):
            await brokers.connect(1, 2)
            raise AssertionError("it connected")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(brokers.connect, 2, 1)  # one who waits for a connection gets it
            await trio.testing.wait_all_tasks_blocked()
            brokers.cluster.heal()
        assert await read(before[0]) == b"x", "what was sent meanwhile was not lost"
        assert await passes(*before)


async def test_an_isolated_broker_reaches_no_broker_and_is_reached_by_clients(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as brokers:
        to_it, from_it = await brokers.connect(1, 2), await brokers.connect(2, 3)
        others, client = await brokers.connect(1, 3), await brokers.connect(None, 2)
        brokers.cluster.isolate(2)
        assert [await passes(*each) for each in (to_it, from_it, others, client)] == [False, False, True, True]
        brokers.cluster.heal()
        assert await read(to_it[0]) == await read(from_it[0]) == b"x"
        assert await passes(*to_it)
        assert await passes(*from_it)


async def test_the_controller_is_reached_by_brokers_that_are_cut_off_and_not_by_one_that_is_isolated_or_paused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as brokers:
        listener = await brokers.cluster.of_controller.listen(*CONTROLLER_ADDRESS, 5)
        ways = {}
        for broker, network in brokers.networks.items():
            ways[broker] = (await network.connect(*CONTROLLER_ADDRESS), await listener.accept())
        brokers.cluster.cut(1, 2)
        assert [await passes(*way) for way in ways.values()] == [True, True, True]
        brokers.cluster.isolate(1)
        brokers.cluster.pause(2)
        assert [await passes(*way) for way in ways.values()] == [False, False, True]
        with trio.move_on_after(LONG):
            await brokers.networks[1].connect(*CONTROLLER_ADDRESS)
            raise AssertionError("it connected")
        brokers.cluster.heal()
        brokers.cluster.resume(2)
        assert [await read(way[0]) for way in (ways[1], ways[2])] == [b"x", b"x"], "what was sent meanwhile"


async def test_a_paused_broker_takes_connections_and_answers_nobody(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as brokers:
        client = await brokers.connect(None, 2)
        brokers.cluster.pause(2)
        assert not await passes(*client)
        later = await brokers.connect(None, 2)
        await later[0].send([b"hello"])
        brokers.cluster.heal()
        assert later[1].receive_into(memoryview(bytearray(9))) == WOULD_BLOCK, "the end of a pause is to resume"
        brokers.cluster.resume(2)
        assert await read(later[1]) == b"hello"


@pytest.mark.parametrize("at", ["reading", "sending"])
async def test_whoever_waits_at_a_connection_on_hold_hears_that_it_is_closed(
    autojump_clock: trio.testing.MockClock, at: str
) -> None:
    async with running() as brokers:
        connection, _ = await brokers.connect(1, 2)
        brokers.cluster.cut(1, 2)
        ended = []

        async def wait() -> None:
            try:
                await (connection.wait_readable() if at == "reading" else connection.send([b"x"]))
            except OSError:
                ended.append(at)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            connection.close()
        assert ended == [at]


async def test_a_dead_broker_has_no_connection_and_makes_none(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as brokers:
        _, accepted = await brokers.connect(1, 2)
        brokers.networks[1].close_all()
        assert await read(accepted) == b""
        for attempt in (brokers.connect(1, 3), brokers.connect(2, 1)):
            with pytest.raises(OSError, match=r"dead|refused"):
                await attempt
