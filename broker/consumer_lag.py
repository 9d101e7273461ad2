"""Consumer lag of groups on the partitions that this broker leads.

Lag is the high watermark less the committed offset, and never below 0, as Kafka's own tools have it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..group_coordinator.committed_offsets import CommittedOffset, CommittedOffsets
from ..replication.partition import Partition


def commits(offsets: CommittedOffsets) -> Iterator[tuple[str, int, CommittedOffset]]:
    """Every commit of a group, by topic and number; what comes meanwhile of another topic is not among them."""
    for topic in sorted(offsets):
        for number, committed in sorted(offsets.get(topic, {}).items()):
            yield topic, number, committed


def lag_behind(partition: Partition, committed: int) -> int:
    """How many offsets a reader of a partition led here has before it."""
    return max(partition.log.high_watermark - committed, 0)
