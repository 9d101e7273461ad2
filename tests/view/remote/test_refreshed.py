"""What is read of a cluster again and again: a page waits for a slow reading once."""

from __future__ import annotations

import trio
import trio.testing

from ottla.view.remote.refreshed import Refreshed


async def test_a_page_waits_for_a_slow_reading_once(autojump_clock: trio.testing.MockClock) -> None:
    is_slow = True

    async def read() -> str:
        await trio.sleep(20 if is_slow else 0)
        return f"read at {trio.current_time():.0f}"

    part: Refreshed[str] = Refreshed(read, 5, "nothing")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(part.run)
        await trio.testing.wait_all_tasks_blocked()
        assert await part.get() == "nothing"
        assert 1 < trio.current_time() < 10, "it was waited for for a while"
        before = trio.current_time()
        assert await part.get() == "nothing"
        assert trio.current_time() == before
        await trio.sleep(20)
        is_slow = False
        assert await part.get() == "read at 20"
        await trio.sleep(3600)  # while no page asks it is not read again and again
        assert await part.get() != "read at 20"
        assert trio.current_time() - 3600 < 60
        nursery.cancel_scope.cancel()
