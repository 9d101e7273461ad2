"""OffsetCommit (key 8): remember how far a group has read.

Behaviour: partitions that do not exist are answered UNKNOWN_TOPIC_OR_PARTITION and the others are committed. See
``group_coordinator.offsets`` for who may commit.

Version notes: 2-4 may name how long the offsets are kept (later it is the broker's ``offsets.retention.minutes``); 3 adds
the throttle time; 6 the leader epoch of the record (KIP-320); 7 the instance id of static members; 8 is flexible; 9
answers GROUP_ID_NOT_FOUND where older versions answer ILLEGAL_GENERATION; 10 names topics by id, and an unknown id is
answered UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ..wire.schema import replace
from .call import Call
from .joining import check_known
from .rights import GROUP, TOPIC, check, may

_TOPIC_IDS_FROM = 10


async def handle(call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse:
    check(call, Operation.READ, GROUP, request.group_id)
    await check_known(call)
    accepted: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        _sort(call, topic, accepted, refused)
    if accepted:
        wanted = replace(request, topics=accepted)
        try:
            response = await call.broker.groups.commit_offsets(wanted, call.version, call.flush)
        except KafkaError as error:
            response = error_response(wanted, error)
    else:
        response = OffsetCommitResponse()
    for answer in refused:
        _merge(response, answer)
    return response


def error_response(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )


def _sort(
    call: Call,
    topic: OffsetCommitRequestTopic,
    accepted: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
) -> None:
    """Put the partitions that exist into ``accepted``, under the topic's name and id, and the others into ``refused``.

    A topic that the client may not read is refused whether it exists or not.
    """
    if call.version >= _TOPIC_IDS_FROM:
        name = call.broker.metadata.topic_name(topic.topic_id)
        if name is None:
            refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            return
        topic = replace(topic, name=name)
    if not may(call, Operation.READ, TOPIC, topic.name):
        refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        return
    known = call.broker.metadata.topic(topic.name)
    if known is None:
        refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return
    topic = replace(topic, topic_id=known.topic_id)
    numbers = known.partitions
    existing = [partition for partition in topic.partitions if partition.partition_index in numbers]
    if len(existing) == len(topic.partitions):
        accepted.append(topic)
        return
    missing = [partition for partition in topic.partitions if partition.partition_index not in numbers]
    missing_topic = replace(topic, partitions=missing)
    refused.append(_refused(missing_topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if existing:
        accepted.append(replace(topic, partitions=existing))


def _merge(response: OffsetCommitResponse, refused: OffsetCommitResponseTopic) -> None:
    for topic in response.topics:
        if topic.name == refused.name and topic.topic_id == refused.topic_id:
            topic.partitions += refused.partitions
            return
    response.topics.append(refused)
