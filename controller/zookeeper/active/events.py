"""The controller's event queue, handled one event at a time as by Kafka's controller thread.

An event is a call. One that waits already is not queued a second time, so a burst of changes is handled once. A request is an
event that a caller waits for; it is dropped if the caller gives up before its turn, and finished if after that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from ....base.distribution import Distribution

Event = Callable[[], Awaitable[None]]
T = TypeVar("T")


class EventQueue:
    """``run`` in a task of its own handles what is ``put`` and ``ask``\\ ed. An exception of an event ends it."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Event, float] = OrderedDict()
        self._changed = trio.Event()
        self._is_paused = False
        self._is_busy = False
        self.times = Distribution()
        """How long events have waited for their turn, in ms."""

    @property
    def size(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._is_busy

    def put(self, event: Event) -> None:
        """Have ``event`` handled after those that wait, unless it is waiting already."""
        if event not in self._waiting:
            self._waiting[event] = trio.current_time()
            self._changed.set()

    async def ask(self, handle: Callable[[], Awaitable[T]]) -> T:
        """What ``handle`` returns when it is its turn. Raises what it raises, or what ``fail_pending`` was given."""
        await trio.lowlevel.checkpoint_if_cancelled()  # its turn could come before the cancellation does
        request = _Request(handle)
        self.put(request)
        try:
            await request.done.wait()
        finally:
            self._waiting.pop(request, None)
        return request.outcome()

    def fail_pending(self, error: Exception) -> None:
        """Drop all that waits; callers of ``ask`` get ``error``."""
        dropped = list(self._waiting)
        self._waiting.clear()
        for event in dropped:
            if isinstance(event, _Request):
                event.refuse(error)

    def hold(self) -> None:
        """Begin no event until ``resume``."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._changed.set()

    async def run(self) -> None:
        while True:
            while self._is_paused or not self._waiting:
                self._changed = trio.Event()
                await self._changed.wait()
            event, put_at = self._waiting.popitem(last=False)
            self.times.note((trio.current_time() - put_at) * 1000)
            self._is_busy = True
            try:
                await event()
            finally:
                self._is_busy = False


class _Request(Generic[T]):
    """An event with an outcome."""

    def __init__(self, handle: Callable[[], Awaitable[T]]) -> None:
        self._handle = handle
        self._results: list[T] = []
        self._error: Exception | None = None
        self.done = trio.Event()

    async def __call__(self) -> None:
        try:
            self._results.append(await self._handle())
        except Exception as error:
            self._error = error
        self.done.set()

    def refuse(self, error: Exception) -> None:
        self._error = error
        self.done.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._results[0]
