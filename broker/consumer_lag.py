"""Consumer lag of groups on the partitions that this broker leads.

Lag is the high watermark less the committed offset, and never below 0, as Kafka's own tools have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ..group_coordinator.committed_offsets import CommittedOffset, CommittedOffsets
from ..replication.partition import Partition


class Replicas(Protocol):
    """The replicas on this broker, by topic and partition number."""

    def get(self, key: tuple[str, int], /) -> Partition | None: ...


class CommittedOffsetLag(NamedTuple):
    """One commit, and how many records are behind it; None of a partition that is not led here."""

    topic: str
    number: int
    committed: CommittedOffset
    partition: Partition | None
    lag: int | None

    @property
    def is_lost(self) -> bool:
        """Whether the next record to be read has been deleted already."""
        return self.partition is not None and self.committed.value.offset < self.partition.log.log_start_offset


def lags(offsets: CommittedOffsets, replicas: Replicas) -> Iterator[CommittedOffsetLag]:
    """Every commit of a group, with its lag, by topic and number."""
    for topic, number, committed in commits(offsets):
        partition = replicas.get((topic, number))
        if partition is None or not partition.is_leader:
            yield CommittedOffsetLag(topic, number, committed, None, None)
        else:
            yield CommittedOffsetLag(topic, number, committed, partition, lag_behind(partition, committed.value.offset))


def commits(offsets: CommittedOffsets) -> Iterator[tuple[str, int, CommittedOffset]]:
    """Every commit of a group, by topic and number; what comes meanwhile of another topic is not among them."""
    for topic in sorted(offsets):
        for number, committed in sorted(offsets.get(topic, {}).items()):
            yield topic, number, committed


def lag_behind(partition: Partition, committed: int) -> int:
    """How many offsets a reader of a partition led here has before it."""
    return max(partition.log.high_watermark - committed, 0)
