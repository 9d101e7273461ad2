"""Counts of a controller's metadata and of its elections, updated with each delta.

Elections are counted from the start of the node on, in batches that it has replayed. Meanings are those of Kafka's
ControllerMetricsChanges and TopicDelta.
"""

from __future__ import annotations

from typing import NamedTuple

from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage
from ....metadata.types import PartitionRegistration


class MetadataCounts(NamedTuple):
    """Counts of one node."""

    partitions: int = 0
    unclean_elections: int = 0
    """Leaders that were not in sync."""
    elr_elections: int = 0
    """Leaders that were eligible leader replicas (KIP-966)."""

    def replaced(self, image: ClusterImage) -> MetadataCounts:
        """Those of a whole image, at a cost of its topics: for a node that has loaded a snapshot."""
        return self._replace(partitions=sum(len(topic.partitions) for topic in image.topics.newest().values()))

    def apply(self, before: ClusterImage, delta: ClusterDelta) -> MetadataCounts:
        """Those of ``before.apply(delta)``; call it before that, because ``before`` is read."""
        if not delta.topics:
            return self
        partitions, unclean, elr = self
        known = before.topics_by_id.newest()
        for topic in delta.topics:
            image = known.get(topic.topic_id)
            earlier = {} if image is None else image.partitions
            for number, partition in topic.partitions.items():
                old = earlier.get(number)
                partitions += (partition is not None) - (old is not None)
                if old is not None and partition is not None and old.leader != partition.leader:
                    unclean += _was_unclean(old, partition)
                    elr += partition.leader in old.elr
        return MetadataCounts(partitions, unclean, elr)


def _was_unclean(old: PartitionRegistration, new: PartitionRegistration) -> bool:
    return new.is_recovering and not old.is_recovering
