"""``TopicPartition``, and the constants for a missing leader and an unknown broker epoch."""

from __future__ import annotations

from typing import NamedTuple

NO_LEADER = -1
"""In place of a broker id: no broker leads the partition now."""

NO_BROKER_EPOCH = -1
"""In place of a broker epoch (KIP-380): it is not known, so it is not checked."""


class TopicPartition(NamedTuple):
    """A partition by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
