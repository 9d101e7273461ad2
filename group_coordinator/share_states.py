"""The partitions of a share group's topics that the share coordinator has to begin with, and those that wait for members."""

from __future__ import annotations

from collections.abc import Iterable

from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .share_state_partitions import NO_PARTITIONS, NamedPartitions


def uninitialized(
    shard: GroupCoordinatorShard, group: ShareGroup, names: Iterable[str]
) -> dict[bytes, NamedPartitions]:
    """The partitions of these topics that the share coordinator is to be asked for, by topic id: it is not at it already."""
    topics = shard.context.topics
    asked = shard.asked_states.get(group.group_id, {})
    missing: dict[bytes, NamedPartitions] = {}
    for name in names:
        size = topics.find(name)
        if size is None:
            continue
        known = group.states.of(size.topic_id)
        if len(known) >= size.partition_count:
            continue
        known |= asked.get(size.topic_id, NO_PARTITIONS)
        numbers = frozenset(range(size.partition_count)) - known
        if numbers:
            missing[size.topic_id] = NamedPartitions(name, numbers)
    return missing


def has_unassigned(shard: GroupCoordinatorShard, group: ShareGroup) -> bool:
    """Whether a partition that members may be given is in nobody's target. What the last look came to is remembered."""
    if group.is_empty or not group.states.initialized:
        return False
    topics = shard.context.topics
    seen = shard.fully_assigned.get(group.group_id)
    # Both are immutable, so the same objects have the same partitions. A change of topics makes the target another one.
    if seen is not None and seen[0] is group.target and seen[1] is group.states and seen[2] == topics.version:
        return False
    assigned: dict[bytes, set[int]] = {}
    for part in group.target.members.newest().values():
        for topic_id, partitions in part.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    for topic_id, topic in group.states.initialized.items():
        found = topics.find_by_id(topic_id)
        if found is None or not group.is_subscribed_to(found[0]):
            continue
        if not topic.partitions.intersection(range(found[1])) <= assigned.get(topic_id, NO_PARTITIONS):
            return True
    shard.fully_assigned[group.group_id] = group.target, group.states, topics.version
    return False
