"""The network in memory, where it has to behave as the system's does."""

from __future__ import annotations

import pytest
import trio

from ottla.base.memory_network import MemoryNetwork


async def test_both_ends_of_a_connection_hear_one_another() -> None:
    network = MemoryNetwork()
    listener = await network.listen("broker", 9092, 10)
    opened = await network.connect("broker", 9092)
    accepted = await listener.accept()
    assert opened.peer == "broker:9092"
    await opened.send([b"question"])
    assert await accepted.receive() == b"question"
    await accepted.send([b"answer"])
    assert await opened.receive() == b"answer"
    accepted.close()
    assert await opened.receive() == b""


async def test_where_nobody_listens_the_connection_is_refused() -> None:
    network = MemoryNetwork()
    listener = await network.listen("broker", 9092, 10)
    listener.close()
    for port in (9092, 9093):
        with pytest.raises(ConnectionRefusedError):
            await network.connect("broker", port)


async def test_who_is_not_accepted_before_the_listener_closes_is_cut() -> None:
    """One stands in the backlog, one waits for a place in it."""
    network = MemoryNetwork()
    listener = await network.listen("broker", 9092, 1)
    first = await network.connect("broker", 9092)

    async def connect_second() -> None:
        second = await network.connect("broker", 9092)
        with pytest.raises(ConnectionResetError):
            await second.receive()

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connect_second)
            await trio.testing.wait_all_tasks_blocked()
            listener.close()
        with pytest.raises(ConnectionResetError):
            await first.receive()
