"""The network of a simulated machine: its death cuts the connections in both directions."""

from __future__ import annotations

import pytest
import trio

from ottla.tests.simulation.network import HOST, PORT, SimulatedNetwork


async def test_a_death_cuts_what_was_opened_and_what_waits_to_be_accepted() -> None:
    network = SimulatedNetwork()
    listener = await network.listen(HOST, PORT, 10)
    gone, opened, waiting = [await network.connect(HOST, PORT) for _ in range(3)]
    _, accepted = await listener.accept(), await listener.accept()
    gone.close()
    network.cut_all()
    with trio.fail_after(20):
        for connection in (opened, accepted, waiting):
            with pytest.raises(ConnectionResetError):
                await connection.receive()
    with pytest.raises(ConnectionRefusedError):
        await network.connect(HOST, PORT)
