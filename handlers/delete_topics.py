"""DeleteTopics (key 20): delete topics by name or by id.

Behaviour: each topic succeeds or fails by itself; one that does not exist is UNKNOWN_TOPIC_OR_PARTITION, an id that no
topic has UNKNOWN_TOPIC_ID, one that the client may not delete TOPIC_AUTHORIZATION_FAILED whether it exists or not, without
its name where it was asked for by id and may not be described; a topic named twice (by name and id too) INVALID_REQUEST.
With delete.topic.enable=false nothing is deleted: TOPIC_DELETION_DISABLED. A timeout of 0 or less deletes nothing and is
REQUEST_TIMED_OUT, as in Kafka's KRaft mode.

Version notes: up to 2, a disabled deletion is INVALID_REQUEST. 4 is flexible; 5 adds the error's text; 6 takes ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..base.presence import while_present
from ..controller.settings import ControllerSettings
from ..security.acl import Operation
from ..wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ..wire.schema import ZERO_UUID
from .call import Call
from .controller_requests import check_is_controller
from .mutations import charge
from .rights import TOPIC, may, refusal

_FIRST_VERSION_WITH_DISABLED = 3
_FIRST_STRICT_VERSION = 5
_FIRST_VERSION_BY_ID = 6


async def handle(call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if call.broker.authorizer is not None:
        check_is_controller(call)
    if not call.broker.config.settings(ControllerSettings).delete_topic_enable:
        code = (
            ErrorCode.INVALID_REQUEST
            if call.version < _FIRST_VERSION_WITH_DISABLED
            else ErrorCode.TOPIC_DELETION_DISABLED
        )
        raise KafkaError(code, "Topic deletion is disabled.")
    asked = request.topics if call.version >= _FIRST_VERSION_BY_ID else _by_name(request)
    refused, wanted = _resolve(call, asked)
    refused += _charge(call, wanted)
    await call.flush()
    # Set before the wait: where the time is up the scope cuts the command off, and nothing else says how the topics fare.
    timed_out = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    outcome: Mapping[str, KafkaError | None] = dict.fromkeys(wanted, timed_out)
    with while_present(max(request.timeout_ms, 0) / 1000):
        outcome = await call.broker.commands.delete_topics(wanted)
    results = [_result(name, topic_id, outcome[name]) for name, topic_id in wanted.items()]
    return DeleteTopicsResponse(responses=results + refused)


def _by_name(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return [DeleteTopicState(name=name) for name in request.topic_names]


def _resolve(call: Call, asked: list[DeleteTopicState]) -> tuple[list[DeletableTopicResult], dict[str, bytes]]:
    """The answers that need no deletion, and the topics to delete with their ids, each once."""
    metadata = call.broker.metadata
    refused = []
    named: list[tuple[str, bytes]] = []
    for topic in asked:
        by_id = topic.topic_id != ZERO_UUID
        if by_id == (topic.name is not None):
            why = "both" if by_id else "neither"
            text = f"A topic needs either a name or an id, and has {why}."
            refused.append(_result(topic.name, topic.topic_id, KafkaError(ErrorCode.INVALID_REQUEST, text)))
        elif by_id and (name := metadata.topic_name(topic.topic_id)) is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
            refused.append(_result(None, topic.topic_id, error))
        else:
            found = name if by_id else topic.name
            assert found is not None
            if by_id and not may(call, Operation.DESCRIBE, TOPIC, found):
                refused.append(_result(None, topic.topic_id, refusal(TOPIC)))
                continue
            if not may(call, Operation.DELETE, TOPIC, found):
                refused.append(_result(found, topic.topic_id, refusal(TOPIC)))
                continue
            named.append((found, metadata.topic_id(found) or ZERO_UUID))
    counts = Counter(name for name, _ in named)
    duplicate = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    refused += [_result(name, ZERO_UUID, duplicate) for name, count in counts.items() if count > 1]
    once = {name: topic_id for name, topic_id in named if counts[name] == 1}
    # For clients a topic is gone once its deletion has begun, even if some replicas remain. Only the controller may say so.
    gone = [name for name in once if call.broker.cluster.is_controller and metadata.topic(name) is None]
    refused += [_result(name, once.pop(name), _unknown(name)) for name in gone]
    return refused, once


def _charge(call: Call, wanted: dict[str, bytes]) -> list[DeletableTopicResult]:
    """Charge what is about to be deleted to the client's quota; topics beyond it leave ``wanted``: returns their responses."""
    refused = []
    counted = charge(call, _FIRST_STRICT_VERSION)
    if counted is not None and call.broker.cluster.is_controller:
        for name, topic_id in list(wanted.items()):
            topic = call.broker.metadata.topic(name)
            try:
                counted(0 if topic is None else len(topic.partitions))
            except KafkaError as error:
                del wanted[name]
                refused.append(_result(name, topic_id, error))
    return refused


def _unknown(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _result(name: str | None, topic_id: bytes, error: KafkaError | None) -> DeletableTopicResult:
    if error is None:
        return DeletableTopicResult(name=name, topic_id=topic_id)
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)


def error_response(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    asked = request.topics or _by_name(request)
    return DeleteTopicsResponse(responses=[_result(topic.name, topic.topic_id, error) for topic in asked])
