"""Listeners at an address that several processes share, here several networks of one process."""

from __future__ import annotations

from collections import Counter

import trio

from ottla.base.network import Connection, Listener
from ottla.base.seams import TrioWorkers
from ottla.base.shared_listener import MachineNetwork
from ottla.base.tcp import TcpNetwork
from ottla.testing.held_port import HeldPort

HOST = "127.0.0.1"


def port() -> int:
    held = HeldPort()
    held.close()
    return held.number


async def connected(network: TcpNetwork, number: int) -> Connection:
    return await network.connect(HOST, number)


async def test_a_process_hands_out_what_comes_to_either_address() -> None:
    workers = TrioWorkers()
    shared, own = port(), port()
    plain = TcpNetwork(workers)
    listener = await MachineNetwork(plain, own, (HOST, shared)).listen(HOST, own, 16)
    assert (listener.host, listener.port) == (HOST, own)
    for number in (own, shared, own, shared):
        client = await connected(plain, number)
        with trio.fail_after(30):
            (await listener.accept()).close()
        client.close()
    listener.close()


async def test_every_process_gets_some_and_a_closed_one_none() -> None:
    workers, plain = TrioWorkers(), TcpNetwork(TrioWorkers())
    shared = port()
    listeners: list[Listener] = []
    for _ in range(3):
        own = port()
        listeners.append(await MachineNetwork(TcpNetwork(workers), own, (HOST, shared)).listen(HOST, own, 64))
    taken: Counter[int] = Counter()

    async def take(number: int) -> None:
        while True:
            (await listeners[number].accept()).close()
            taken[number] += 1

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(take, number)

        async def connect_until(total: int) -> None:
            for _ in range(total - taken.total()):
                (await connected(plain, shared)).close()
            with trio.fail_after(30):
                while taken.total() < total:
                    await trio.sleep(0.01)

        await connect_until(60)
        assert set(taken) == {0, 1, 2}
        first, before = listeners.pop(0), taken[0]
        nursery.cancel_scope.cancel()
    first.close()
    listeners.insert(0, first)
    async with trio.open_nursery() as nursery:
        for number in (1, 2):
            nursery.start_soon(take, number)
        await connect_until(120)
        nursery.cancel_scope.cancel()
    assert taken[0] == before
    for each in listeners[1:]:
        each.close()


async def test_other_listeners_are_the_networks() -> None:
    plain = TcpNetwork(TrioWorkers())
    network = MachineNetwork(plain, port(), (HOST, port()))
    listener = await network.listen(HOST, 0, 16)
    client = await network.connect(HOST, listener.port)
    (await listener.accept()).close()
    client.close()
    listener.close()
