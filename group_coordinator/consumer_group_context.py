"""The surroundings of consumer groups (KIP-848): settings of the broker, times of each group, and topics of the cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .consumer_group_settings import ConsumerGroupSettings, ConsumerGroupTimes
from .topics import TopicSizes


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerGroupContext:
    """The same for all groups of a broker."""

    settings: ConsumerGroupSettings
    times: Callable[[str], ConsumerGroupTimes]
    """The times of a group by its id, as they are set at the moment."""
    topics: TopicSizes

    @classmethod
    def of(cls, settings: ConsumerGroupSettings, topics: TopicSizes) -> ConsumerGroupContext:
        """Where no group has times of its own."""
        return cls(settings, lambda group_id: settings.times(), topics)
