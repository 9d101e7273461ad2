"""Where producer ids come from; the controller's block allocation implements it."""

from __future__ import annotations

from typing import Protocol


class ProducerIdSource(Protocol):
    """Gives ids that no producer of the cluster had before."""

    async def next_producer_id(self) -> int:
        """A new id. KafkaError when there is none to be had."""
        ...
