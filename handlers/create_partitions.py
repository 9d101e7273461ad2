"""CreatePartitions (key 37): enlarge topics; new partitions take the next numbers.

Behaviour: one answer per topic, a topic named twice is INVALID_REQUEST. ``count`` is the number of partitions in all; one
that is no increase is INVALID_PARTITIONS. Replicas may be named by hand, a list for each new partition. ``validate_only``
checks and changes nothing; a timeout of 0 or less changes nothing and is REQUEST_TIMED_OUT.

Version notes: 2 is flexible; 3 may answer THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from collections import Counter

from ..base.errors import ErrorCode, KafkaError
from ..base.presence import while_present
from ..security.acl import Operation
from ..wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from .call import Call
from .controller_requests import check_is_controller
from .mutations import charge
from .rights import TOPIC, check

_FIRST_STRICT_VERSION = 3


async def handle(call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    if call.broker.authorizer is not None:
        check_is_controller(call)
    counts = Counter(topic.name for topic in request.topics)
    results: dict[str, KafkaError | None] = dict.fromkeys(counts, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    await call.flush()
    with while_present(max(request.timeout_ms, 0) / 1000):
        for topic in request.topics:
            try:
                if counts[topic.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                check(call, Operation.ALTER, TOPIC, topic.name)
                await _enlarge(call, topic, request.validate_only)
                results[topic.name] = None
            except KafkaError as error:
                results[topic.name] = error
    return CreatePartitionsResponse(results=[_result(name, error) for name, error in results.items()])


async def _enlarge(call: Call, topic: CreatePartitionsTopic, validate_only: bool) -> None:
    assignments = None if topic.assignments is None else [a.broker_ids for a in topic.assignments]
    await call.broker.commands.create_partitions(
        topic.name,
        topic.count,
        assignments,
        validate_only=validate_only,
        charge=charge(call, _FIRST_STRICT_VERSION),
    )


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)


def error_response(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_result(topic.name, error) for topic in request.topics])
