"""Common parts of the five requests to a share coordinator (keys 83 to 87).

Behaviour: each share partition has its own error, with a text. All are written before the first is waited for. A request without
a group, without topics, or with a topic without partitions has an empty response, as in Kafka. Without ``share.version`` 1 the
whole request is refused, with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey
from .call import Call
from .share_groups import check_enabled

R = TypeVar("R")

_PARTITIONS_PER_STEP = 16

Results = Callable[[bytes, list[Any]], Any]
"""(topic id, results of its partitions) -> the struct of the response that has them."""


async def results(
    call: Call,
    request: Any,
    topic_result: Results,
    partition_result: Callable[[int], Any],
    apply: Callable[[SharePartitionKey, Any], Applied[R]],
    fill: Callable[[Any, R], None],
) -> list[Any]:
    """The results of a response.

    ``partition_result`` makes the struct for a partition, ``apply`` does what is asked for one, and ``fill`` puts what comes of
    it into the struct.
    """
    check_enabled(call)
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return []
    topics = []
    waiting: list[tuple[Any, Applied[R]]] = []
    count = 0
    for topic in request.topics:
        made = [partition_result(data.partition) for data in topic.partitions]
        topics.append(topic_result(topic.topic_id, made))
        for data, result in zip(topic.partitions, made, strict=True):
            try:
                key = SharePartitionKey(request.group_id, topic.topic_id, data.partition)
                waiting.append((result, apply(key, data)))
            except KafkaError as error:
                _fail(result, error)
            count += 1
            if count % _PARTITIONS_PER_STEP == 0:
                await trio.lowlevel.checkpoint()
    coordinator = call.broker.share_coordinator
    deadline = trio.current_time() + coordinator.settings.share_coordinator_write_timeout_ms / 1000
    for result, applied in waiting:
        left_ms = max(1, int(1000 * (deadline - trio.current_time())))
        try:
            fill(result, await coordinator.committed(applied, call.flush, left_ms))
        except KafkaError as error:
            _fail(result, error)
    return topics


def nothing(result: Any, value: None) -> None:
    """The ``fill`` of a request that gives nothing."""


def refusals(
    request: Any, error: KafkaError, topic_result: Results, partition_result: Callable[[int], Any]
) -> list[Any]:
    """The results of a request that failed as a whole: the error for each partition."""
    topics = []
    for topic in request.topics:
        made = [partition_result(data.partition) for data in topic.partitions]
        for result in made:
            _fail(result, error)
        topics.append(topic_result(topic.topic_id, made))
    return topics


def _fail(result: Any, error: KafkaError) -> None:
    result.error_code = error.code
    result.error_message = error.message or ErrorCode(error.code).name
