"""Handshakes beyond what may be under way at a time wait, but not for clients that keep silent."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.broker.auth.tls_handshakes import Handshakes


async def test_a_handshake_waits_until_another_ends(autojump_clock: trio.testing.MockClock) -> None:
    handshakes, done = Handshakes(2), []

    async def shake_hands() -> None:
        await trio.sleep(1)
        done.append(trio.current_time() - began)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(handshakes.run, shake_hands)
    assert done == [1, 1, 2, 2, 3]


async def test_one_that_does_not_come_to_its_end_makes_room(autojump_clock: trio.testing.MockClock) -> None:
    handshakes, given_up = Handshakes(2), []

    async def keep_silent(name: str) -> None:
        with pytest.raises(OSError, match="more than 2 handshakes at a time"):
            await handshakes.run(trio.sleep_forever)
        given_up.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_silent, "first")
        await trio.sleep(1)
        nursery.start_soon(handshakes.run, trio.sleep_forever)
        await trio.sleep(0.5)
        with trio.fail_after(1):
            await handshakes.run(trio.lowlevel.checkpoint)
        await trio.testing.wait_all_tasks_blocked()
        assert given_up == ["first"]
        nursery.cancel_scope.cancel()


async def test_one_that_is_cancelled_leaves_its_place(autojump_clock: trio.testing.MockClock) -> None:
    handshakes = Handshakes(1)
    with trio.move_on_after(1):
        await handshakes.run(trio.sleep_forever)
    with trio.fail_after(1):
        await handshakes.run(trio.lowlevel.checkpoint)
