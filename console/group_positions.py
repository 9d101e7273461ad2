"""The state and the offsets of one group, as the console's actions ask its coordinator for them.

A group of each type is described by a request of its own, which older brokers lack. A share group (KIP-932) has start offsets in
place of committed ones.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ..wire.messages.describe_groups import DescribeGroupsRequest
from ..wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ..wire.messages.offset_fetch import OffsetFetchRequest
from ..wire.messages.share_group_describe import ShareGroupDescribeRequest
from .kafka_requests import GroupCoordinatorTarget, KafkaRequests, check

DEAD = "Dead"


class FoundGroup(NamedTuple):
    """What a group is."""

    state: str
    """``DEAD`` where there is none."""
    is_share: bool = False


async def group_state(kafka: KafkaRequests, group: str) -> FoundGroup:
    """The state of a group of any type but streams. Raises KafkaError."""
    response = await kafka.ask(DescribeGroupsRequest(groups=[group]), GroupCoordinatorTarget(group))
    (found,) = response.groups
    check(found.error_code)
    if found.group_state != DEAD:
        return FoundGroup(str(found.group_state))
    for request, is_share in (
        (ConsumerGroupDescribeRequest(group_ids=[group]), False),
        (ShareGroupDescribeRequest(group_ids=[group]), True),
    ):
        try:
            response = await kafka.ask(request, GroupCoordinatorTarget(group))
            (newer,) = response.groups
            check(newer.error_code, newer.error_message)
        except KafkaError as error:
            if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise
        else:
            return FoundGroup(str(newer.group_state), is_share)
    return FoundGroup(DEAD)


async def committed(kafka: KafkaRequests, group: str) -> dict[TopicPartition, int | None]:
    """What a group has committed. Raises KafkaError."""
    response = await kafka.ask(OffsetFetchRequest(group_id=group, topics=None), GroupCoordinatorTarget(group))
    check(response.error_code)
    return {
        TopicPartition(topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


async def share_starts(kafka: KafkaRequests, group: str) -> dict[TopicPartition, int | None]:
    """Where a share group begins in each of its partitions; None where nobody has read. Raises KafkaError."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    response = await kafka.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), GroupCoordinatorTarget(group))
    (found,) = response.groups
    check(found.error_code, found.error_message)
    return {
        TopicPartition(topic.topic_name, at.partition_index): at.start_offset if at.start_offset >= 0 else None
        for topic in found.topics
        for at in topic.partitions
        if not at.error_code
    }
