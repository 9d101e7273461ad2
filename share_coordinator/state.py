"""The state of a share partition as its leader reads and writes it, and the store that keeps it.

A *share partition* is a partition of a topic as one share group reads it. Its state is a start offset, and *batches* from there
on: runs of records in one delivery state, in the order of their offsets, without overlaps. Records in no batch are available, and
were never delivered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..wire.schema import uuid_from_text, uuid_to_text

_NUMBER = re.compile("[+-]?[0-9]{1,10}")
_LARGEST_PARTITION = 0x7FFFFFFF

NOT_BEGUN = -1
"""Start offset of a share partition that nobody has read yet."""
UNKNOWN_COUNT = -1
"""Delivery complete count that was never told."""


class StateBatch(NamedTuple):
    """A run of records in one state."""

    first_offset: int
    last_offset: int
    """Of its last record, so it is in the batch."""
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived."""
    delivery_count: int
    """How often its records were delivered."""


@dataclass(frozen=True, slots=True)
class SharePartitionKey:
    """A share partition."""

    group_id: str
    topic_id: bytes
    """16 bytes."""
    partition: int

    def coordinator_key(self) -> str:
        """``group:topic id:partition``, as FindCoordinator has it; the group may contain colons."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"

    @classmethod
    def of(cls, coordinator_key: str) -> SharePartitionKey:
        """Raises ValueError for what is not a ``coordinator_key``."""
        parts = coordinator_key.rsplit(":", 2)
        if len(parts) < 3:
            raise ValueError(f"{coordinator_key!r} is not of the form group:topic id:partition")
        group_id, topic_id, partition = parts
        if not group_id.strip():
            raise ValueError("the group id is empty")
        if _NUMBER.fullmatch(partition) is None or abs(int(partition)) > _LARGEST_PARTITION:
            raise ValueError(f"{partition!r} is not a partition")
        return cls(group_id, uuid_from_text(topic_id), int(partition))


@dataclass(frozen=True, slots=True)
class ShareState:
    """The state of a share partition, as its leader reads it."""

    state_epoch: int
    start_offset: int
    """``NOT_BEGUN`` before the first read."""
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int
    """How many records from the start offset on will not be delivered again. ``UNKNOWN_COUNT`` as long as Kafka's response to a
    read has no such field: the leader counts them in the batches."""


class ShareStateStore(Protocol):
    """Keeps the states of share partitions. Each method raises KafkaError, and returns once its change is committed."""

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Begin anew at ``start_offset``, without batches. FENCED_STATE_EPOCH if a later state epoch is known."""
        ...

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        """The state, for the leader of ``leader_epoch``: from now on leaders of earlier ones get FENCED_LEADER_EPOCH."""
        ...

    async def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Change the start offset, and the states of the records in ``batches``; those of others stay."""
        ...

    async def delete(self, key: SharePartitionKey) -> None:
        """Forget the state; nothing happens where there is none."""
        ...

    async def summary(self, key: SharePartitionKey, leader_epoch: int) -> tuple[int, int, int, int]:
        """State epoch, leader epoch, start offset, delivery complete count."""
        ...
