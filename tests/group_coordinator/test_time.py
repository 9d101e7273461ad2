"""Timers, expiry and stalls of the loop, in simulated time."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity


def run_with_timers(make_world, main, **settings):
    """``main(world, clock)`` beside the coordinator's own loops, in simulated time."""
    clock = MockClock(autojump_threshold=0)

    async def whole() -> None:
        world = make_world(**settings)
        await world.groups.load(0, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.groups.run)
            await main(world, clock)
            nursery.cancel_scope.cancel()

    trio.run(whole, clock=clock)


def test_a_session_ends_when_its_time_is_up(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        member = await world.enter()
        await world.sync(member, 1, {})
        await trio.sleep(9.9)
        assert await world.state() == "Stable"
        await trio.sleep(0.2)
        assert await world.state() == "Empty"

    run_with_timers(make_world, main)


def test_a_deadline_that_rounding_brings_forward_is_met(make_world):
    """In seconds and back it is a little less than the milliseconds it was: too early to fire, and nothing to sleep for."""
    now = next(n / 1009 for n in range(1, 9999) if (n / 1009 * 1000 + 10_000) / 1000 * 1000 < n / 1009 * 1000 + 10_000)

    async def main(world: Any, clock: MockClock) -> None:
        await trio.sleep(now)
        member = await world.enter()
        await world.sync(member, 1, {})
        await trio.sleep(10.1)
        assert await world.state() == "Empty"

    run_with_timers(make_world, main)


def test_sessions_do_not_end_because_the_loop_stood_still(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        member = await world.enter()
        await world.sync(member, 1, {})
        await trio.sleep(5.5)
        clock.jump(60)
        await trio.sleep(3)
        assert await world.heartbeat(member, 1) == ErrorCode.NONE
        await trio.sleep(10.1)
        assert await world.state() == "Empty"

    run_with_timers(make_world, main)


def test_a_rebalance_does_not_end_because_the_loop_stood_still(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        member = await world.enter()
        await world.sync(member, 1, {})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: world.join(version=3, session=1_000_000))
            await trio.sleep(5)
            clock.jump(200)
            await trio.sleep(1)
            assert (await world.join(member)).generation_id == 2

    run_with_timers(make_world, main)


def test_an_idle_coordinator_sleeps(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        await world.commit(1)
        before = trio.lowlevel.current_statistics().seconds_to_next_deadline
        assert before > 500

    run_with_timers(make_world, main)


def test_a_timer_set_while_the_loop_sleeps_is_still_on_time(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        await trio.sleep(100)
        member = await world.enter()
        await world.sync(member, 1, {})
        await trio.sleep(10.05)
        assert await world.state() == "Empty"

    run_with_timers(make_world, main)


def test_the_initial_delay_runs_on_time(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        started = trio.current_time()
        assert (await world.join(version=3)).generation_id == 1
        assert trio.current_time() - started == pytest.approx(3)

    run_with_timers(make_world, main, group_initial_rebalance_delay_ms=3_000)


def test_offsets_expire_by_themselves(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        await world.commit(1)
        await trio.sleep(59)
        assert await world.fetch() == 1
        await trio.sleep(62)
        assert await world.fetch() is None
        assert await world.groups.list_groups((), (), world.flush) == []

    run_with_timers(make_world, main, offsets_retention_minutes=1, offsets_retention_check_interval_ms=60_000)


def test_leaving_lets_the_others_go_on_at_once(make_world):
    async def main(world: Any, clock: MockClock) -> None:
        first = await world.enter()
        await world.sync(first, 1, {})
        answers: list[Any] = []

        async def second() -> None:
            answers.append(await world.join(version=3))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(second)
            await trio.sleep(1)
            request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=first)])
            await world.groups.leave_group(request, world.flush)
        assert answers[0].generation_id == 2
        assert trio.current_time() == pytest.approx(1)

    run_with_timers(make_world, main)
