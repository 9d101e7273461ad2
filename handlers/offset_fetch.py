"""OffsetFetch (key 9): how far a group has read.

Behaviour: a partition without a commit, also of an unknown group, is answered with offset -1 and no error. Naming no
topics (null) asks for everything the group has committed. With ``require_stable`` a partition whose commit is part of an
open transaction is answered UNSTABLE_OFFSET_COMMIT. Topics that the client may not describe are answered
TOPIC_AUTHORIZATION_FAILED, or left out where no topics were named.

Version notes: 2 allows null topics and adds an error for the whole response; 3 the throttle time; 5 the leader epoch; 6 is
flexible; 7 adds require_stable (KIP-447); 8 asks for many groups (KIP-709), each with an error of its own; 9 may name the
member (KIP-848; groups of the classic protocol ignore it); 10 names topics by id, and an unknown id is answered
UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..group_coordinator.offsets import not_fetched
from ..security.acl import Operation
from ..wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ..wire.schema import ZERO_UUID, replace
from .call import Call
from .rights import GROUP, TOPIC, allowed_names, check, may

_MANY_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10


async def handle(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if call.version < _MANY_GROUPS_FROM:
        return _single(await _fetch(call, _only_group(request), request.require_stable))
    return OffsetFetchResponse(groups=[await _fetch(call, group, request.require_stable) for group in request.groups])


def error_response(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    if request.groups:
        groups = [OffsetFetchResponseGroup(group_id=g.group_id, error_code=error.code) for g in request.groups]
        return OffsetFetchResponse(groups=groups)
    return _single(_failed(_only_group(request), error))


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """What versions before 8 ask for, in the later form."""
    topics = None
    if request.topics is not None:
        topics = [OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in request.topics]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The response for one group in the form before version 8."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _failed(group: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    """The error for the group, and for each partition, which is where version 1 looks."""
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=error.code,
        topics=[_unanswered(topic, error.code) for topic in group.topics or ()],
    )


def _unanswered(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[not_fetched(partition, code) for partition in topic.partition_indexes],
    )


async def _fetch(call: Call, group: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    refused: list[OffsetFetchResponseTopics] = []
    is_all = group.topics is None
    try:
        check(call, Operation.DESCRIBE, GROUP, group.group_id)
        group = replace(group, topics=_known(call, group.topics, refused))
        response = await call.broker.groups.fetch_offsets(group, require_stable, call.flush)
    except KafkaError as error:
        if call.version >= _MANY_GROUPS_FROM:
            return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
        return _failed(group, error)
    if is_all and call.broker.authorizer is not None:
        names = [topic.name for topic in response.topics]
        visible = allowed_names(call, Operation.DESCRIBE, TOPIC, names, log_if_denied=False)
        response.topics = [topic for topic in response.topics if topic.name in visible]
    if call.version >= _TOPIC_IDS_FROM and is_all:
        _name_by_id(call, response)
    response.topics += refused
    return response


def _known(
    call: Call, asked: list[OffsetFetchRequestTopics] | None, refused: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchRequestTopics] | None:
    """The topics to look for, under their names and ids; the responses of the others are put into ``refused``."""
    if asked is None:
        return None
    known = []
    for topic in asked:
        if call.version >= _TOPIC_IDS_FROM:
            name, topic_id = call.broker.metadata.topic_name(topic.topic_id), topic.topic_id
        else:
            name, topic_id = topic.name, call.broker.metadata.topic_id(topic.name) or ZERO_UUID
        if name is None:
            refused.append(_unanswered(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not may(call, Operation.DESCRIBE, TOPIC, name):
            refused.append(_unanswered(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            known.append(replace(topic, name=name, topic_id=topic_id))
    return known


def _name_by_id(call: Call, response: OffsetFetchResponseGroup) -> None:
    """Give every topic its id; one that has none cannot be named at this version and is left out."""
    topics = []
    for topic in response.topics:
        topic_id = call.broker.metadata.topic_id(topic.name)
        if topic_id is not None:
            topic.topic_id = topic_id
            topics.append(topic)
    response.topics = topics
