"""Listeners at an address that several processes share, here several networks of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
import trio
import trio.testing

from ottla.base.network import NetworkListener
from ottla.base.seams import TrioWorkers
from ottla.base.shared_listener import MachineNetwork
from ottla.base.tcp import TcpNetwork
from ottla.testing.held_port import HeldPort

HOST = "127.0.0.1"


@pytest.fixture
def port() -> Iterator[Callable[[], int]]:
    """Gives ports, which are held to the end of the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(HeldPort())).number


async def test_a_process_hands_out_what_comes_to_either_address(port: Callable[[], int]) -> None:
    workers = TrioWorkers()
    shared, own = port(), port()
    plain = TcpNetwork(workers)
    listener = await MachineNetwork(plain, own, (HOST, shared)).listen(HOST, own, 16)
    assert (listener.host, listener.port) == (HOST, own)
    for number in (own, shared, own, shared):
        client = await plain.connect(HOST, number)
        with trio.fail_after(30):
            (await listener.accept()).close()
        client.close()
    listener.close()


async def test_every_process_gets_some_and_a_closed_one_none(port: Callable[[], int]) -> None:
    workers, plain = TrioWorkers(), TcpNetwork(TrioWorkers())
    shared = port()
    listeners: list[NetworkListener] = []
    for _ in range(3):
        own = port()
        listeners.append(await MachineNetwork(TcpNetwork(workers), own, (HOST, shared)).listen(HOST, own, 64))
    taken: list[int] = []
    one_more, heard = trio.open_memory_channel[int](0)

    async def take(number: int) -> None:
        while True:
            (await listeners[number].accept()).close()
            await one_more.send(number)

    async def connect(times: int) -> None:
        for _ in range(times):
            (await plain.connect(HOST, shared)).close()
            with trio.fail_after(30):
                taken.append(await heard.receive())

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(take, number)
        await connect(60)
        nursery.cancel_scope.cancel()
    assert {*taken} == {0, 1, 2}
    taken.clear()
    listeners[0].close()
    async with trio.open_nursery() as nursery:
        for number in (1, 2):
            nursery.start_soon(take, number)
        await connect(60)
        nursery.cancel_scope.cancel()
    assert {*taken} == {1, 2}
    for each in listeners[1:]:
        each.close()


async def test_who_waits_is_told_of_a_close_as_by_other_listeners(port: Callable[[], int]) -> None:
    plain, own = TcpNetwork(TrioWorkers()), port()
    listener = await MachineNetwork(plain, own, (HOST, port())).listen(HOST, own, 16)

    async def accept() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await listener.accept()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        listener.close()


async def test_other_listeners_are_the_networks(port: Callable[[], int]) -> None:
    plain = TcpNetwork(TrioWorkers())
    network = MachineNetwork(plain, port(), (HOST, port()))
    listener = await network.listen(HOST, 0, 16)
    client = await network.connect(HOST, listener.port)
    (await listener.accept()).close()
    client.close()
    listener.close()
