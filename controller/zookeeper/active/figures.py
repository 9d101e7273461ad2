"""The values of a controller's metrics, active or standby: counters kept over all terms, and computed values.

The counts are plain numbers that the controller changes as it goes; the rest is counted when it is asked for, at a cost that
grows with the number of partitions. Names and meanings are those of Kafka's KafkaController and ControllerStats.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from ....base.distribution import Distribution
from ....base.partitions import NO_LEADER
from ..state.context import ControllerContext
from .controller_channel_manager import ControllerChannelManager
from .events import EventQueue


@dataclasses.dataclass(slots=True)
class ElectionFigures:
    """Counts of elections over all terms of one broker."""

    times: Distribution = dataclasses.field(default_factory=Distribution)
    """How long elections took after brokers came or went, in ms."""
    unclean: int = 0
    """Elected leaders that were not in sync."""


class ClusterFigures(NamedTuple):
    """The cluster as its controller knows it; all 0 where that is another broker."""

    brokers: int = 0
    topics: int = 0
    partitions: int = 0
    offline_partitions: int = 0
    preferred_imbalance: int = 0
    topics_to_delete: int = 0


class ControllerFigures:
    """See the module."""

    def __init__(self, events: EventQueue, senders: ControllerChannelManager) -> None:
        self.events = events
        self.senders = senders
        self.elections = ElectionFigures()
        self.context: ControllerContext | None = None
        """That of the present term; None while another broker is the controller."""

    def partitions_by_topic(self) -> list[tuple[str, int]]:
        """Every topic of the cluster with the number of its partitions; none where another broker is the controller."""
        topics = {} if self.context is None else self.context.topics
        return [(name, len(topic.partitions)) for name, topic in topics.items()]

    def cluster(self) -> ClusterFigures:
        """Counted now. Partitions of topics that are being deleted are neither offline nor led by the wrong replica."""
        context = self.context
        if context is None:
            return ClusterFigures()
        offline = imbalanced = 0
        for _, partition in context.undeleted_partitions():
            leader = NO_LEADER if partition.state is None else partition.state.leader
            offline += leader == NO_LEADER
            imbalanced += leader != partition.assignment.replicas[0]
        return ClusterFigures(
            len(context.brokers),
            len(context.topics),
            sum(len(topic.partitions) for topic in context.topics.values()),
            offline,
            imbalanced,
            len(context.deleting),
        )
