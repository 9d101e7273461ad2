"""``play`` runs one seed and returns its result."""

from __future__ import annotations

import dataclasses
import gc
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

from . import determinism
from .machine import watching
from .run import Mode, Run

_CPU_SECONDS = 60

W = TypeVar("W", bound=Run)


class Endless(BaseException):
    """The loop runs without progress in time."""


@dataclasses.dataclass
class Result:
    """The result of one seed. ``violations`` is empty if there are none."""

    seed: int
    mode: Mode
    violations: list[str]
    events: list[str]
    digest: str
    lives: int


def play(seed: int, new_world: Callable[[], W], story: Callable[[W], Awaitable[None]]) -> Result:
    """Run ``story`` in a world, and return the result. ``new_world`` is called within the loop."""
    world: W | None = None

    async def main() -> None:
        nonlocal world
        world = new_world()
        with watching(world, logging.getLogger("ottla")):
            await story(world)

    def give_up(signum: int, frame: object) -> None:
        raise Endless(f"seed {seed} takes more than {_CPU_SECONDS} s of CPU time")

    gc.disable()  # a seed leaves little garbage, and looking for it takes a twentieth of the time
    previous = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_SECONDS)
    try:
        determinism.run(main, seed)
    except (Exception, BaseExceptionGroup, Endless) as error:
        assert world is not None
        world.violations.append(f"the simulation ended with {error!r}{_inner(error)}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
        gc.enable()
    assert world is not None
    return Result(seed, world.mode, world.violations, world.events, world.digest, world.lives)


def _inner(error: BaseException) -> str:
    """The innermost errors of a group, with where they come from."""
    if isinstance(error, BaseExceptionGroup):
        return "".join(_inner(inner) for inner in error.exceptions)
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}"
    return f"\n    {error!r}{where}"
