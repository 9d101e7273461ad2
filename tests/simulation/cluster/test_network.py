"""The network of simulated machines: what is cut is late, what is killed is reset, what has no power is silent."""

from __future__ import annotations

import random

import pytest
import trio

from ottla.tests.simulation.cluster.network import ClusterNetwork, HostConnection
from ottla.tests.simulation.determinism import SimulationClock

Clock = SimulationClock


@pytest.fixture
def autojump_clock() -> Clock:
    """The clock of the test."""
    return SimulationClock()


async def connected(network: ClusterNetwork) -> tuple[HostConnection, HostConnection]:
    """The ends at hosts ``a`` and ``b``."""
    listener = await network.host("b").listen("b", 1, 10)
    near = await network.host("a").connect("b", 1)
    return near, await listener.accept()


async def receive(connection: HostConnection) -> bytes:
    await connection.wait_readable()
    buffer = bytearray(100)
    return bytes(buffer[: connection.receive_into(memoryview(buffer))])


async def test_what_cannot_pass_arrives_late_even_if_its_sender_has_closed(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, far = await connected(network)
    network.cut([("a", "b")])
    await near.send([b"late"])
    near.close()
    with trio.move_on_after(60) as scope:
        await receive(far)
    assert scope.cancelled_caught
    network.heal()
    assert await receive(far) == b"late"
    assert await receive(far) == b""


async def test_one_way_can_be_cut_alone(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, far = await connected(network)
    network.cut([("a", "b")])
    await near.send([b"lost for now"])
    await far.send([b"passes"])
    assert await receive(near) == b"passes"
    with trio.move_on_after(60) as scope:
        await network.host("a").connect("b", 1)
    assert scope.cancelled_caught


async def test_a_connection_stalls_beside_one_that_works(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, far = await connected(network)
    network.stall([("a", "b")])
    assert network.is_troubled("a") and network.is_troubled("b")
    await near.send([b"late"])
    await far.send([b"passes"])
    assert await receive(near) == b"passes"
    listener = network.listeners["b", 1]
    other, other_far = await network.host("a").connect("b", 1), await listener.accept()
    await other.send([b"passes as well"])
    assert await receive(other_far) == b"passes as well"
    with trio.move_on_after(60) as scope:
        await receive(far)
    assert scope.cancelled_caught
    network.heal()
    assert await receive(far) == b"late"
    assert not network.is_troubled("a")


async def test_a_killed_process_resets_its_connections_and_refuses_new_ones(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, _ = await connected(network)
    network.kill("b", silently=False)
    with pytest.raises(ConnectionResetError):
        await receive(near)
    with pytest.raises(BrokenPipeError):
        await near.send([b"to no reader"])
    with pytest.raises(ConnectionRefusedError):
        await network.host("a").connect("b", 1)


async def test_a_machine_without_power_says_nothing_until_it_is_back(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, _ = await connected(network)
    network.kill("b", silently=True)
    await near.send([b"to no reader"])
    with trio.move_on_after(60) as scope:
        await receive(near)
    assert scope.cancelled_caught
    network.wake_up("b")
    with pytest.raises(ConnectionResetError):
        await receive(near)


async def test_what_is_sent_over_a_slow_way_keeps_its_order(autojump_clock: Clock) -> None:
    network = ClusterNetwork(random.Random(1))
    near, far = await connected(network)
    network.slow_down([("a", "b")], 3.0)
    for number in range(20):
        await near.send([bytes([number])])
    found = b""
    while len(found) < 20:
        found += await receive(far)
    assert found == bytes(range(20))
    assert trio.current_time() > 1


async def test_what_a_file_has_to_give_is_read_when_there_is_room_for_it(autojump_clock: Clock) -> None:
    class Slice:
        """As a slice of a file whose content changes."""

        content = b"before"
        nbytes = 6

        def read(self) -> bytes:
            return self.content

        def release(self) -> None:
            pass

    network = ClusterNetwork(random.Random(1))
    near, far = await connected(network)
    network.choke([("a", "b")])
    part = Slice()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(near.send, [part])
        await trio.sleep(1)
        part.content = b"behind"
        await far.send([b"the other way"])
        assert await receive(near) == b"the other way"
        network.heal()
    assert await receive(far) == b"behind"
