"""A queue of AlterPartition requests, all of which are processed with the first one that is due.

When a follower is slow, each leader asks for other in-sync replicas at about the same time; written together, that costs
one round trip to the store.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from ....wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from .alter_partition import AlterPartitions

Turn = Callable[[AlterPartitions], Awaitable[None]]


@dataclasses.dataclass(eq=False)
class _QueuedAlterPartition:
    request: AlterPartitionRequest
    version: int
    response: AlterPartitionResponse | None = None


class AlterPartitionQueue:
    """``answer`` waits for a turn by ``take_turn``, which calls what it is given when the controller comes to it."""

    def __init__(self, take_turn: Callable[[Turn], Awaitable[None]]) -> None:
        self._take_turn = take_turn
        self._waiting: list[_QueuedAlterPartition] = []

    async def answer(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Raises what ``take_turn`` raises."""
        own = _QueuedAlterPartition(request, version)

        async def answer_all(partitions: AlterPartitions) -> None:
            # An earlier turn may have taken this request with its own: then nothing is left to do in this one.
            if own.response is None:
                taken = [own, *(each for each in self._waiting if each is not own)]
                self._waiting.clear()
                responses = await partitions.answer([(each.request, each.version) for each in taken])
                for each, response in zip(taken, responses, strict=True):
                    each.response = response

        self._waiting.append(own)
        try:
            await self._take_turn(answer_all)
        finally:
            if own in self._waiting:
                self._waiting.remove(own)
        assert own.response is not None
        return own.response
