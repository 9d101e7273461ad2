"""A pending response, and the offset that must be committed before it is sent."""

from __future__ import annotations

from typing import Generic, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.presence import while_present

T = TypeVar("T")


class Waiter(Generic[T]):
    """Holds one response once it is given."""

    __slots__ = ("_event", "answer", "offset")

    def __init__(self) -> None:
        self.answer: T | None = None
        self.offset = 0
        """What the high watermark must reach before the response is sent."""
        self._event: trio.Event | None = None

    @classmethod
    def answered(cls, answer: T, offset: int) -> Waiter[T]:
        """A waiter that has its answer from the start."""
        waiter = cls()
        waiter.complete(answer, offset)
        return waiter

    def complete(self, answer: T, offset: int) -> None:
        """Set the answer, once."""
        assert self.answer is None
        self.answer = answer
        self.offset = offset
        if self._event is not None:
            self._event.set()

    async def wait(self) -> T:
        """Return the answer when it is there. Raises KafkaError when the client has gone, so that nobody waits for it."""
        if self.answer is None:
            self._event = trio.Event()
            with while_present():
                await self._event.wait()
        if self.answer is None:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the client has gone")
        return self.answer
