"""What the coordinator needs of ``__consumer_offsets``; the replication layer implements it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

TOPIC = "__consumer_offsets"


class CoordinatorLog(Protocol):
    """The partitions of ``__consumer_offsets`` that this broker leads."""

    def partition_count(self) -> int | None:
        """How many partitions the topic has; None while it does not exist."""
        ...

    def append(self, partition: int, batch: bytearray) -> int:
        """Append one batch; the offset after it. KafkaError when it was not written."""
        ...

    def high_watermark(self, partition: int) -> int:
        """The offset up to which records are committed; KafkaError when this broker does not lead the partition."""
        ...

    async def wait_committed(self, partition: int, offset: int) -> None:
        """Return when the high watermark is at ``offset`` or above; KafkaError when leadership is lost."""
        ...

    def batches(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches, in chunks of any number, from the log's start to the end it has when this is called."""
        ...
