"""Expected errors of worker threads, passed on without the stack frames they came through.

An exception keeps the frames that it came through. One that crosses threads is part of a reference cycle, so what those frames
hold, which may be megabytes, would live until the next garbage collection. Here the error comes back without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, cast

from .seams import Workers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def run_expecting(workers: Workers, expected: type[Exception], function: Callable[[*Ts], T], *args: *Ts) -> T:
    """``workers.run(function, *args)``, for work whose usual error is ``expected``. Raises that, and what is not expected."""
    result, error = await workers.run(_result_or_error, expected, function, args)
    if error is None:
        return cast("T", result)
    try:
        raise error
    finally:
        del error  # else its new traceback and this frame would keep each other


def _result_or_error(
    expected: type[Exception], function: Callable[[*Ts], T], args: tuple[*Ts]
) -> tuple[T | None, Exception | None]:
    try:
        return function(*args), None
    except expected as error:
        error.__cause__ = error.__context__ = None
        return None, error.with_traceback(None)
