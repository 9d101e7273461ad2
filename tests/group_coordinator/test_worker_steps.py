"""Computations in steps that worker threads carry out."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio

from ottla.base.seams import InlineWorkers, TrioWorkers
from ottla.group_coordinator.assignors.assignor import Steps
from ottla.group_coordinator.worker_steps import WorkerSteps


def steps_of(name: str, count: int, log: list[str]) -> Steps[str]:
    for number in range(count):
        log.append(f"{name}{number}")
        yield
    return name


async def test_steps_run_in_a_worker_thread() -> None:
    threads = set()

    def steps() -> Steps[int]:
        for _ in range(3):
            threads.add(threading.get_ident())
            yield
        return 42

    assert await WorkerSteps(TrioWorkers()).finished(steps()) == 42
    assert threads
    assert threading.get_ident() not in threads


async def test_computations_take_turns() -> None:
    log: list[str] = []
    worker = WorkerSteps(InlineWorkers())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.finished, steps_of("a", 9, log))
        nursery.start_soon(worker.finished, steps_of("b", 2, log))
    assert log.index("b1") < log.index("a3")
    assert log[-1] == "a8"


async def test_one_thread_is_busy_at_most() -> None:
    class CountingWorkers(InlineWorkers):
        running = most = 0

        async def run(self, function: Callable, *args: object) -> object:
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                return await super().run(function, *args)
            finally:
                self.running -= 1

    workers = CountingWorkers()
    worker = WorkerSteps(workers)
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(worker.finished, steps_of(name, 5, []))
    assert workers.most == 1


async def test_an_error_of_a_step_is_raised_and_others_go_on() -> None:
    def failing() -> Steps[None]:
        yield
        raise ValueError("broken")

    worker = WorkerSteps(InlineWorkers())
    with pytest.raises(ValueError, match="broken"):
        await worker.finished(failing())
    assert await worker.finished(steps_of("a", 1, [])) == "a"


async def test_a_cancelled_computation_takes_no_more_steps() -> None:
    log: list[str] = []
    worker = WorkerSteps(InlineWorkers())
    with trio.CancelScope() as scope:

        def steps() -> Steps[None]:
            log.append("first")
            scope.cancel()
            yield
            log.append("second")

        await worker.finished(steps())
    assert log == ["first"]
    assert await worker.finished(steps_of("a", 1, [])) == "a"
