"""The contents of ConsumerGroupDescribe responses (KIP-848).

A member's assignment has the partitions that it still has to give up, too: it answers for them until then. Topics that no longer
exist are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode
from ..wire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .shard import GroupCoordinatorShard
from .topics import TopicSizes

_CLASSIC, _CONSUMER = 0, 1
"""Types of a member on the wire (KIP-1099)."""


def describe_consumer_group(shard: GroupCoordinatorShard, group_id: str) -> DescribedGroup:
    """The group with its members; with GROUP_ID_NOT_FOUND where it is none, or of another type."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        why = f"Group {group_id} {'not found' if group is None else 'is not a consumer group'}."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    topics = shard.context.topics
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target.epoch,
        assignor_name=group.preferred_assignor or shard.context.settings.assignors[0],
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerGroupMember, topics: TopicSizes) -> Member:
    held: dict[bytes, set[int]] = {}
    for part in (member.assigned, member.pending_revocation):
        for topic_id, partitions in part.epochs.items():
            held.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.expression,
        assignment=_assignment(held, topics),
        target_assignment=_assignment(group.target.of(member.member_id), topics),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicSizes) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=found[0], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if (found := topics.find_by_id(topic_id)) is not None
        ]
    )
