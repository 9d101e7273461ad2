"""Computations in steps, carried out by worker threads, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import trio

from ..base.seams import Workers
from .assignors.assignor import Steps

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    value: T


class WorkerSteps:
    """A queue of computations, which take turns: however many there are and however long they take, they keep one thread busy."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._turn = trio.Lock()

    async def finished(self, steps: Steps[T]) -> T:
        """The result of the steps. A cancellation waits for the end of one step."""
        while True:
            async with self._turn:
                result = await self._workers.run(_step, steps)
            if result is not None:
                return result.value


def _step(steps: Steps[T]) -> _Result[T] | None:
    """The result, if this was the last step."""
    try:
        next(steps)
    except StopIteration as end:
        return _Result(end.value)
    return None
