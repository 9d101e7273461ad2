"""DescribeTopicPartitions (key 75): partitions of topics, a page at a time (KIP-966).

Behaviour: topics come sorted by name, all of them when none is named. At most ``response_partition_limit`` partitions
(and never more than max.request.partition.size.limit, never less than one) are in one answer; the cursor says where the
next begins, and a request that carries it goes on from there. A cursor must name one of the topics asked for. Only a cluster of
KRaft has eligible leader replicas. Topics that the client may not describe come last in every answer,
TOPIC_AUTHORIZATION_FAILED, or are left out where all are asked for.

Version notes: only 0 exists.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.settings import ControllerSettings
from ..metadata.image import TopicImage
from ..metadata.rules.topic_names import INTERNAL_TOPICS, why_invalid
from ..security.acl import Operation
from ..wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from .call import Call
from .metadata import leader_error
from .rights import TOPIC, allowed_names, authorized_operations


async def handle(call: Call, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    names = _names(call, request)
    allowed = allowed_names(call, Operation.DESCRIBE, TOPIC, names, log_if_denied=bool(request.topics))
    response = _page(call, request, [name for name in names if name in allowed])
    if request.topics:
        response.topics += [_forbidden(name) for name in names if name not in allowed]
    return response


def _page(call: Call, request: DescribeTopicPartitionsRequest, names: list[str]) -> DescribeTopicPartitionsResponse:
    metadata = call.broker.metadata
    limit = call.broker.config.settings(ControllerSettings).max_request_partition_size_limit
    room = max(1, min(limit, request.response_partition_limit))
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if room == 0:
            return DescribeTopicPartitionsResponse(topics=answers, next_cursor=Cursor(topic_name=name))
        topic = metadata.topic(name)
        if topic is None:
            answers.append(_unknown(call, name))
            continue
        first = request.cursor.partition_index if request.cursor and request.cursor.topic_name == name else 0
        numbers = [number for number in topic.partitions if number >= first]
        answers.append(_known(call, topic, numbers[:room]))
        if len(numbers) > room:
            cursor = Cursor(topic_name=name, partition_index=numbers[room])
            return DescribeTopicPartitionsResponse(topics=answers, next_cursor=cursor)
        room -= len(numbers)
    return DescribeTopicPartitionsResponse(topics=answers)


def _names(call: Call, request: DescribeTopicPartitionsRequest) -> list[str]:
    names = {topic.name for topic in request.topics} or set(call.broker.metadata.topics)
    cursor = request.cursor
    if cursor is None:
        return sorted(names)
    if request.topics and cursor.topic_name not in names:
        why = f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "DescribeTopicPartitionsRequest cursor partition must be valid")
    return sorted(name for name in names if name >= cursor.topic_name)


def _forbidden(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _unknown(call: Call, name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if why_invalid(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations(call, TOPIC, name),
    )


def _known(call: Call, topic: TopicImage, numbers: list[int]) -> DescribeTopicPartitionsResponseTopic:
    nodes = call.broker.metadata.nodes(call.connection.listener)
    states = [(number, topic.partitions[number]) for number in numbers]
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=leader_error(call, state.leader, nodes, True),
                partition_index=number,
                leader_id=state.leader if state.leader in nodes else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=list(state.elr),
                last_known_elr=list(state.last_known_elr),
                offline_replicas=call.broker.metadata.offline_replicas(state),
            )
            for number, state in states
        ],
        topic_authorized_operations=authorized_operations(call, TOPIC, topic.name),
    )


def error_response(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error.code, name=topic.name) for topic in request.topics
        ]
    )
