"""The contents of ShareGroupDescribe responses (KIP-932). Topics that no longer exist are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode
from ..wire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from .shard import GroupCoordinatorShard
from .share_group import ASSIGNOR, ShareGroup
from .topics import TopicSizes


def describe_share_group(shard: GroupCoordinatorShard, group_id: str) -> DescribedGroup:
    """The group with its members; with GROUP_ID_NOT_FOUND where it is none, or of another type."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        why = f"Group {group_id} {'not found' if group is None else 'is not a share group'}."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why)
    topics = shard.context.topics
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target.epoch,
        assignor_name=ASSIGNOR,
        members=[
            Member(
                member_id=member.member_id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.topic_names),
                assignment=_assignment(member.assigned, topics),
            )
            for member in group.members.values()
        ],
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], topics: TopicSizes) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=found[0], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if (found := topics.find_by_id(topic_id)) is not None
        ]
    )
