"""Turns of the event loop: what comes in masses leaves room for others, in order, and nobody is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from ottla.base.loop_turns import LoopTurns

_MANY = 40
_STEP = 0.0002


class Clock:
    """Moves only when a step says how long it has taken."""

    def __init__(self) -> None:
        self.now = 0.0

    def elapsed(self) -> float:
        return self.now


class Crowd:
    """Many tasks that are due at once, each with one step; notes in which turn of the loop each was taken."""

    def __init__(self, turns: LoopTurns, clock: Clock, step: float = _STEP) -> None:
        self._turns, self._clock, self._step = turns, clock, step
        self.came: list[int] = []
        """Tasks that had to wait."""
        self.taken: list[tuple[int, int]] = []
        """Turn and task."""

    async def come(self, task: int) -> None:
        self.came.append(task)
        if not await self._turns.wait():
            self.came.remove(task)
        self.taken.append((self._turns.number, task))
        self._clock.now += self._step
        self._turns.note(self._turns.number, self._step)

    def per_turn(self) -> list[int]:
        return [count for _, count in sorted(Counter(turn for turn, _ in self.taken).items())]


@asynccontextmanager
async def running(clock: Clock) -> AsyncIterator[LoopTurns]:
    turns = LoopTurns(clock.elapsed)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        await trio.testing.wait_all_tasks_blocked()
        yield turns
        nursery.cancel_scope.cancel()


async def come_at_once(crowd: Crowd, count: int = _MANY) -> None:
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            for task in range(count):
                nursery.start_soon(crowd.come, task)


async def test_a_crowd_is_spread_over_many_turns() -> None:
    clock = Clock()
    async with running(clock) as turns:
        crowd = Crowd(turns, clock)
        await come_at_once(crowd)
    assert len(crowd.taken) == _MANY
    assert max(crowd.per_turn()) <= 8, "the first guess of a step is half of what it takes"
    assert max(crowd.per_turn()[5:]) <= 4


async def test_a_long_step_has_a_turn_of_its_own() -> None:
    clock = Clock()
    async with running(clock) as turns:
        crowd = Crowd(turns, clock, step=0.01)
        await come_at_once(crowd)
    assert crowd.per_turn()[-10:] == [1] * 10


async def test_those_that_wait_are_called_in_the_order_in_which_they_came() -> None:
    clock = Clock()
    async with running(clock) as turns:
        crowd = Crowd(turns, clock)
        await come_at_once(crowd)
    assert len(crowd.came) > _MANY / 2
    turn_of = {task: turn for turn, task in crowd.taken}
    turns_in_order = [turn_of[task] for task in crowd.came]
    assert turns_in_order == sorted(turns_in_order)


async def test_who_comes_alone_does_not_wait() -> None:
    clock = Clock()
    async with running(clock) as turns:
        before = turns.number
        assert not await turns.wait()
        assert turns.number == before


async def test_beside_other_work_the_crowd_has_as_much_time_as_that() -> None:
    clock = Clock()

    async def work() -> None:
        while True:
            clock.now += 0.0016
            await trio.lowlevel.checkpoint()

    async with running(clock) as turns, trio.open_nursery() as nursery:
        nursery.start_soon(work)
        crowd = Crowd(turns, clock)
        await come_at_once(crowd)
        nursery.cancel_scope.cancel()
    assert 6 <= max(crowd.per_turn()[3:-1]) <= 10


async def test_one_that_is_cancelled_while_it_waits_takes_nobodys_turn() -> None:
    clock = Clock()
    async with running(clock) as turns:
        crowd = Crowd(turns, clock)
        with trio.fail_after(10):
            async with trio.open_nursery() as others, trio.open_nursery() as nursery:
                for task in range(_MANY):
                    nursery.start_soon(crowd.come, task)
                    others.start_soon(crowd.come, _MANY + task)
                await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
    assert {task for _, task in crowd.taken} > set(range(_MANY, 2 * _MANY))
    assert len(crowd.taken) < 2 * _MANY


async def test_nobody_waits_once_it_no_longer_runs() -> None:
    clock = Clock()
    turns = LoopTurns(clock.elapsed)
    crowd = Crowd(turns, clock)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery, trio.open_nursery() as running_here:
            running_here.start_soon(turns.run)
            await trio.testing.wait_all_tasks_blocked()
            for task in range(_MANY):
                nursery.start_soon(crowd.come, task)
            await trio.lowlevel.checkpoint()
            running_here.cancel_scope.cancel()
    assert len(crowd.taken) == _MANY
