"""DescribeShareGroupOffsets (key 90): how far share groups have come, and how far they are behind (KIP-932).

Behaviour: each group succeeds or fails by itself. Without topics in the request it is all that the group has, of topics that the
client may describe. Where nothing is known the start offset is -1, and no error; so it is for a group that does not exist. Any
broker responds that coordinates the group. Without ``share.version`` 1 every group is refused with UNSUPPORTED_VERSION.

Version notes: 1 adds the lag (KIP-1226), which is -1 where the share coordinator was never told of finished records.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import KafkaError
from ..group_coordinator.share_offsets import ShareStart
from ..security.acl import Operation
from ..share_coordinator.state import NOT_BEGUN, UNKNOWN_COUNT
from ..wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from .call import Call
from .rights import GROUP, TOPIC, allowed_names, check, refusal, split
from .share_groups import check_enabled

_Partition = DescribeShareGroupOffsetsResponsePartition
_LAG_FROM = 1


async def handle(call: Call, request: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    check_enabled(call)
    response = DescribeShareGroupOffsetsResponse()
    for group in request.groups:
        try:
            check(call, Operation.DESCRIBE, GROUP, group.group_id)
            topics = await (_all_topics(call, group.group_id) if group.topics is None else _named_topics(call, group))
            described = DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=topics)
        except KafkaError as error:
            described = _failed(group.group_id, error)
        response.groups.append(described)
    return response


async def _all_topics(call: Call, group_id: str) -> list[DescribeShareGroupOffsetsResponseTopic]:
    partitions = await call.broker.groups.initialized_share_partitions(group_id, call.flush)
    found = {topic_id: call.broker.metadata.topic_by_id(topic_id) for topic_id in partitions}
    names = {topic_id: topic.name for topic_id, topic in found.items() if topic is not None}
    allowed = allowed_names(call, Operation.DESCRIBE, TOPIC, set(names.values()))
    wanted = {topic_id: partitions[topic_id] for topic_id, name in names.items() if name in allowed}
    return await _described(call, group_id, names, wanted)


async def _named_topics(
    call: Call, group: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    allowed, refused = split(call, Operation.DESCRIBE, TOPIC, group.topics or (), lambda topic: topic.topic_name)
    names: dict[bytes, str] = {}
    wanted: dict[bytes, frozenset[int]] = {}
    absent = []
    for asked in allowed:
        topic = call.broker.metadata.topic(asked.topic_name)
        if topic is None:
            absent.append(_unknown(asked))
        else:
            names[topic.topic_id] = topic.name
            wanted[topic.topic_id] = frozenset(asked.partitions)
    topics = await _described(call, group.group_id, names, wanted)
    return [*topics, *absent, *(_unknown(asked, refusal(TOPIC)) for asked in refused)]


async def _described(
    call: Call, group_id: str, names: Mapping[bytes, str], wanted: Mapping[bytes, frozenset[int]]
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    if not wanted:
        return []
    starts = await call.broker.groups.share_starts(group_id, wanted)
    counted = [
        (names[key.topic_id], key.partition)
        for key, start in starts.items()
        if start.start_offset != NOT_BEGUN and start.delivery_complete_count != UNKNOWN_COUNT
    ]
    ends = await call.broker.partition_ends.of(counted if call.version >= _LAG_FROM else ())
    topics = {
        topic_id: DescribeShareGroupOffsetsResponseTopic(topic_name=names[topic_id], topic_id=topic_id)
        for topic_id in wanted
    }
    for key, start in starts.items():
        partition = _with_lag(key.partition, start, ends.get((names[key.topic_id], key.partition)))
        topics[key.topic_id].partitions.append(partition)
    return list(topics.values())


def _with_lag(number: int, start: ShareStart, end: int | KafkaError | None) -> _Partition:
    if isinstance(end, KafkaError):
        return _Partition(partition_index=number, error_code=end.code, error_message=end.message)
    lag = -1 if end is None else end - start.start_offset - start.delivery_complete_count
    return _Partition(partition_index=number, start_offset=start.start_offset, leader_epoch=start.leader_epoch, lag=lag)


def _unknown(
    asked: DescribeShareGroupOffsetsRequestTopic, error: KafkaError | None = None
) -> DescribeShareGroupOffsetsResponseTopic:
    """A topic that does not exist, or that the client may not see."""
    partitions = [_Partition(partition_index=number, start_offset=NOT_BEGUN) for number in asked.partitions]
    if error is not None:
        for partition in partitions:
            partition.error_code, partition.error_message = error.code, error.message
    return DescribeShareGroupOffsetsResponseTopic(topic_name=asked.topic_name, partitions=partitions)


def _failed(group_id: str, error: KafkaError) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, error_code=error.code, error_message=error.message)


def error_response(request: DescribeShareGroupOffsetsRequest, error: KafkaError) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[_failed(group.group_id, error) for group in request.groups])
