"""What is kept for pages: new where it is read in time, and otherwise what was read before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from ottla.view.cached import KEPT_SECONDS, PATIENCE_SECONDS, BackgroundCache


class Slow:
    """Something that takes ``seconds`` to be read; its value is how often it was."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.count = 0
        self.fails = False

    async def read(self) -> int:
        await trio.sleep(self.seconds)
        if self.fails:
            raise ValueError("read in vain")
        self.count += 1
        return self.count


@asynccontextmanager
async def in_background(kept: BackgroundCache[int]) -> AsyncIterator[None]:
    """``kept`` is read by a task of its own, as a view's is."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.run)
        yield
        nursery.cancel_scope.cancel()


def many(value: int) -> int:
    return 9000


async def test_who_asks_waits_a_tenth_of_a_second_at_most(autojump_clock: trio.testing.MockClock) -> None:
    slow = Slow(3.0)
    kept = BackgroundCache(slow.read, many)
    async with in_background(kept):
        await trio.sleep(3.5)
        await trio.sleep(100)
        began = trio.current_time()
        assert await kept.get() == 1
        assert trio.current_time() - began <= PATIENCE_SECONDS + 0.001
        await trio.sleep(3.5)
        assert await kept.get() == 2, "asked for, it was read"


async def test_what_is_read_in_time_is_new(autojump_clock: trio.testing.MockClock) -> None:
    quick = Slow(0.01)
    kept = BackgroundCache(quick.read, many)
    async with in_background(kept):
        await trio.sleep(2)
        assert [await kept.get(), await kept.get()] == [2, 2]
        await trio.sleep(2 * KEPT_SECONDS + 1)
        assert quick.count == 4, "it is read when nobody asks, too"


async def test_a_reading_that_fails_leaves_what_there_was(autojump_clock: trio.testing.MockClock) -> None:
    slow = Slow(0.01)
    kept = BackgroundCache(slow.read, many)
    async with in_background(kept):
        await trio.sleep(2)
        slow.fails = True
        assert await kept.get() == 1
        slow.fails = False
        await trio.sleep(2)
        assert await kept.get() == 2


async def test_without_its_background_it_is_read_by_who_asks(autojump_clock: trio.testing.MockClock) -> None:
    slow = Slow(3.0)
    kept = BackgroundCache(slow.read, many)
    assert await kept.get() == 1
    await trio.sleep(100)
    assert await kept.get() == 2


async def test_what_is_of_few_things_is_new_however_long_it_took(autojump_clock: trio.testing.MockClock) -> None:
    slow = Slow(3.0)
    kept = BackgroundCache(slow.read, lambda value: 1000)
    async with in_background(kept):
        await trio.sleep(100)
        assert await kept.get() == 2


async def test_what_is_read_unasked_for_something_else_is_new_too(autojump_clock: trio.testing.MockClock) -> None:
    quick = Slow(0.01)
    part = BackgroundCache(quick.read, lambda value: 1)
    whole = BackgroundCache(part.get, lambda value: 1, [part])
    async with in_background(part):
        await trio.sleep(0.1)
        async with in_background(whole):
            await trio.sleep(0.1)
            assert quick.count == 2
            assert await part.get() == 3
