"""One task waits for one event, for a time, and no longer than its client is there."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from ottla.base import wakeup as module
from ottla.base.presence import Presence
from ottla.base.wakeup import Wakeup


async def waited(wakeup: Wakeup, seconds: float, into: list[tuple[float, bool]]) -> None:
    was_set = await wakeup.wait(seconds)
    into.append((trio.current_time(), was_set))


async def test_it_ends_when_it_is_set_or_after_its_time(autojump_clock: trio.testing.MockClock) -> None:
    ended: list[tuple[float, bool]] = []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        set_in_time = Wakeup()
        # The second is to end before the first, though it comes later.
        for wakeup, seconds in ((set_in_time, 100.0), (Wakeup(), 5.0), (Wakeup(), 3.0), (Wakeup(), 200.0)):
            nursery.start_soon(waited, wakeup, seconds, ended)
            await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(4)
        set_in_time.set()
    assert [(at - began, was_set) for at, was_set in ended] == [(3, False), (4, True), (5, False), (200, False)]


@pytest.mark.parametrize("seconds", [math.inf, 1.0, 0.0, -1.0])
async def test_what_is_set_before_is_not_waited_for(seconds: float) -> None:
    wakeup = Wakeup()
    wakeup.set()
    assert await wakeup.wait(seconds)


async def test_without_time_it_ends_at_once() -> None:
    assert not await Wakeup().wait(0)


async def test_a_task_that_is_cancelled_is_not_woken_later(autojump_clock: trio.testing.MockClock) -> None:
    wakeup = Wakeup()
    with trio.move_on_after(1):
        await wakeup.wait(2)
    wakeup.set()
    await trio.sleep(5)


async def test_it_ends_when_the_client_goes(autojump_clock: trio.testing.MockClock) -> None:
    ended: list[tuple[float, bool]] = []
    presence = Presence()

    async def serve() -> None:
        presence.begin()
        for _ in range(2):
            await waited(Wakeup(), 60, ended)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await trio.sleep(1)
        presence.leave()
    assert [was_set for _, was_set in ended] == [False, False]
    assert trio.current_time() < 60


async def test_waits_that_have_ended_are_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    """Of requests that may take 30 s, nearly all take a millisecond."""
    async with trio.open_nursery() as nursery:
        for _ in range(3000):
            wakeup = Wakeup()
            nursery.start_soon(wakeup.wait, 30)
            await trio.lowlevel.checkpoint()
            wakeup.set()
    assert len(module._of_this_loop.get()._heap) < 1000
