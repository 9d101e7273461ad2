"""The surroundings of groups whose partitions the coordinator assigns: settings of the broker, times of each group, topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .consumer_group_settings import ConsumerGroupSettings
from .group_times import GroupTimes
from .share_group_settings import ShareGroupSettings
from .topics import TopicSizes

TimesOfGroups = Callable[[str], GroupTimes]
"""The times of a group by its id, as they are set at the moment."""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupContext:
    """The same for all groups of a broker."""

    settings: ConsumerGroupSettings
    times: TimesOfGroups
    """Of consumer groups."""
    share_settings: ShareGroupSettings
    share_times: TimesOfGroups
    """Of share groups."""
    topics: TopicSizes

    @classmethod
    def of(
        cls, settings: ConsumerGroupSettings, topics: TopicSizes, share_settings: ShareGroupSettings | None = None
    ) -> GroupContext:
        """Where no group has times of its own."""
        share = share_settings or ShareGroupSettings()
        return cls(settings, lambda group_id: settings.times(), share, lambda group_id: share.times(), topics)
