"""Requests that wait for a watermark of a partition.

An ``OffsetWaiter`` waits for a watermark of one partition. Its outcome is decided when the partition changes, not when its task
runs: by then the broker may lead again, with another log.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.errors import ErrorCode, KafkaError
from ..base.wakeup import Wakeup


class OffsetWaiter(Wakeup):
    """Waits until a watermark reaches ``offset``, or this broker no longer leads."""

    __slots__ = ("is_released", "offset")

    def __init__(self, offset: int, on_reached: Callable[[], None] | None = None) -> None:
        super().__init__(on_reached)
        self.offset = offset
        self.is_released = False
        """Whether the wait ended because this broker no longer leads."""


def wake_up_to(reached: int, waiters: list[OffsetWaiter]) -> None:
    """Wake those whose offset is ``reached``, and remove them."""
    still = []
    for waiter in waiters:
        if waiter.offset <= reached:
            waiter.set()
        else:
            still.append(waiter)
    waiters[:] = still


def release(waiters: list[OffsetWaiter]) -> None:
    """Wake all, because the watermark is not known here any more, and remove them."""
    for waiter in waiters:
        waiter.is_released = True
        waiter.set()
    waiters.clear()


async def wait_in(
    waiters: list[OffsetWaiter], offset: int, timeout: float, on_reached: Callable[[], None] | None = None
) -> None:
    """Return once the watermark that ``waiters`` are for has reached ``offset``; ``timeout`` in seconds.

    ``on_reached`` is called in the step that moves the watermark, or releases the waiters. Raises REQUEST_TIMED_OUT, also when
    the client has gone, or NOT_LEADER_OR_FOLLOWER when leadership is lost meanwhile.
    """
    waiter = OffsetWaiter(offset, on_reached)
    waiters.append(waiter)
    try:
        await waiter.wait(timeout)
    finally:
        if waiter in waiters:
            waiters.remove(waiter)
    if waiter.is_released:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"leadership was lost before offset {offset} was reached")
    if not waiter.is_set:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"offset {offset} is not reached yet")
