"""Ctrl-C while steps are carried out: the first ends the run after the step that is under way, the second cancels that step.

SIGTERM counts as Ctrl-C does.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType


class Stop:
    """A request to stop, for ``with`` in the main thread. It is true once no other step is to begin."""

    def __init__(self) -> None:
        self._is_asked = False
        self._before: dict[int, object] = {}

    def __bool__(self) -> bool:
        return self._is_asked

    def __enter__(self) -> Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked:
            raise KeyboardInterrupt
        self._is_asked = True
        print(
            "ottla: stops when the moves under way are done; a second Ctrl-C cancels them",
            file=sys.stderr,
            flush=True,
        )
