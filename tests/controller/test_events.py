"""The queue of events: one at a time, in order, and what becomes of requests whose caller gives up."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.controller.zookeeper.active.events import EventQueue


async def test_events_come_in_order_and_one_that_waits_is_not_put_twice() -> None:
    queue = EventQueue()
    handled: list[str] = []

    async def first() -> None:
        handled.append("first")
        await trio.lowlevel.checkpoint()
        handled.append("first ends")

    async def second() -> None:
        handled.append("second")

    for event in (first, second, first):
        queue.put(event)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run)
        await trio.testing.wait_all_tasks_blocked()
        assert queue.is_idle
        queue.put(first)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert handled == ["first", "first ends", "second", "first", "first ends"]


async def test_how_many_events_wait_and_for_how_long(autojump_clock: trio.testing.MockClock) -> None:
    queue = EventQueue()

    async def slow() -> None:
        await trio.sleep(3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run)
        queue.put(slow)
        await trio.testing.wait_all_tasks_blocked()
        queue.put(slow)
        await trio.sleep(1)
        with trio.move_on_after(0):
            await queue.ask(slow)
        assert queue.size == 1
        await trio.sleep(3)
        assert queue.size == 0
        nursery.cancel_scope.cancel()
    assert queue.times.cumulative()[-1] == 2
    assert queue.times.sum == 3000


async def test_a_request_of_no_time_is_not_begun_and_one_that_was_begun_is_finished() -> None:
    queue = EventQueue()
    begun: list[str] = []
    finished: list[str] = []
    may_go_on = trio.Event()

    async def change(name: str) -> None:
        begun.append(name)
        await may_go_on.wait()
        finished.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run)
        for _ in range(20):  # which of two ready tasks trio runs first is random
            with trio.move_on_after(0):
                await queue.ask(lambda: change("never"))
        async with trio.open_nursery() as callers:
            callers.start_soon(queue.ask, lambda: change("begun"))
            await trio.testing.wait_all_tasks_blocked()
            callers.start_soon(queue.ask, lambda: change("waiting"))
            await trio.testing.wait_all_tasks_blocked()
            callers.cancel_scope.cancel()
        may_go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert begun == finished == ["begun"]


async def test_a_request_ends_with_what_its_change_raised_and_the_queue_goes_on() -> None:
    queue = EventQueue()

    async def fail() -> None:
        raise ValueError("no")

    async def answer() -> int:
        return 7

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run)
        with pytest.raises(ValueError, match="no"):
            await queue.ask(fail)
        assert await queue.ask(answer) == 7
        nursery.cancel_scope.cancel()


async def test_while_it_is_held_nothing_begins_and_what_waits_can_be_refused() -> None:
    queue = EventQueue()
    handled: list[str] = []
    refused: list[str] = []

    async def event() -> None:
        handled.append("event")

    async def request() -> None:
        try:
            await queue.ask(event)
        except ValueError as error:
            refused.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run)
        queue.hold()
        nursery.start_soon(request)
        queue.put(event)
        await trio.testing.wait_all_tasks_blocked()
        assert handled == []
        queue.fail_pending(ValueError("over"))
        queue.resume()
        await trio.testing.wait_all_tasks_blocked()
        assert (handled, refused) == ([], ["over"])
        queue.put(event)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert handled == ["event"]
