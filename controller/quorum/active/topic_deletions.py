"""Deletion of topics, by name or by id (KIP-516).

RemoveTopicRecord alone removes a topic: its partitions and configs go by replay. A client that may not see a topic learns
nothing of it, its id neither. Sources: Kafka's ReplicationControlManager, and ControllerApis for how a request names topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import TopicImage
from ....wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ....wire.messages.topic_records import RemoveTopicRecord
from ....wire.metadata_records import VersionedRecord
from ....wire.schema import ZERO_UUID
from ...new_topics import Charge
from .context import OperationContext
from .result import ControllerResult, bounded

_SAYS_DELETION_IS_DISABLED = 3
"""The version from which the response may be TOPIC_DELETION_DISABLED."""
_HIDDEN = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
_UNKNOWN_NAME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
_UNKNOWN_ID = (ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
_INVALID = ErrorCode.INVALID_REQUEST


class DeletionRights(NamedTuple):
    """What the client may, by a topic's name."""

    may_describe: Callable[[str], bool]
    may_delete: Callable[[str], bool]


def delete_topics(
    context: OperationContext,
    request: DeleteTopicsRequest,
    version: int,
    rights: DeletionRights,
    charge: Charge,
    *,
    is_enabled: bool = True,
) -> ControllerResult[DeleteTopicsResponse]:
    """The failure of one topic does not touch the others. ``is_enabled`` is ``delete.topic.enable``.

    Raises KafkaError TOPIC_DELETION_DISABLED, INVALID_REQUEST, and POLICY_VIOLATION for too many topics.
    """
    if not is_enabled:
        if version < _SAYS_DELETION_IS_DISABLED:
            raise KafkaError(_INVALID, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    results = _Results()
    records: list[VersionedRecord] = []
    for topic in _found(context, request, rights, results):
        try:
            charge(len(topic.partitions))
        except KafkaError as error:
            results.add(topic.name, topic.topic_id, (error.code, error.message))
        else:
            records.append((RemoveTopicRecord(topic_id=topic.topic_id), 0))
            results.add(topic.name, topic.topic_id, (ErrorCode.NONE, None))
    return ControllerResult(bounded(records), DeleteTopicsResponse(responses=results.all))


class _Results:
    def __init__(self) -> None:
        self.all: list[DeletableTopicResult] = []

    def add(self, name: str | None, topic_id: bytes, error: tuple[ErrorCode, str | None]) -> None:
        code, why = error
        self.all.append(DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=why))


def _found(
    context: OperationContext, request: DeleteTopicsRequest, rights: DeletionRights, results: _Results
) -> list[TopicImage]:
    """The topics that the request names once, and that the client may delete. All others have their result."""
    states = [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]
    names = Counter(state.name for state in states if state.name is not None and state.topic_id == ZERO_UUID)
    ids = Counter(state.topic_id for state in states if state.name is None and state.topic_id != ZERO_UUID)
    for state in states:
        if state.name is None and state.topic_id == ZERO_UUID:
            results.add(None, ZERO_UUID, (_INVALID, "Neither topic name nor id were specified."))
        elif state.name is not None and state.topic_id != ZERO_UUID:
            results.add(state.name, state.topic_id, (_INVALID, "You may not specify both topic name and topic id."))
    for name, count in names.items():
        if count > 1:
            results.add(name, ZERO_UUID, (_INVALID, "Duplicate topic name."))
    for topic_id, count in ids.items():
        if count > 1:
            results.add(None, topic_id, (_INVALID, "Duplicate topic id."))
    found = {
        topic.topic_id: topic
        for topic_id, count in ids.items()
        if count == 1 and (topic := _by_id(context, topic_id, rights, results)) is not None
    }
    for name, count in names.items():
        topic = _by_name(context, name, rights, results) if count == 1 else None
        if topic is not None and topic.topic_id in ids:
            found.pop(topic.topic_id, None)
            why = "The provided topic name maps to an ID that was already supplied."
            results.add(name, topic.topic_id, (_INVALID, why))
        elif topic is not None:
            found[topic.topic_id] = topic
    return list(found.values())


def _by_id(context: OperationContext, topic_id: bytes, rights: DeletionRights, results: _Results) -> TopicImage | None:
    topic = context.topic(topic_id)
    if topic is None:
        results.add(None, topic_id, _UNKNOWN_ID)
    elif rights.may_delete(topic.name):
        return topic
    else:
        results.add(topic.name if rights.may_describe(topic.name) else None, topic_id, _HIDDEN)
    return None


def _by_name(context: OperationContext, name: str, rights: DeletionRights, results: _Results) -> TopicImage | None:
    topic = context.topic_named(name)
    if not rights.may_describe(name):
        results.add(name, ZERO_UUID, _HIDDEN)
    elif topic is None:
        results.add(name, ZERO_UUID, _UNKNOWN_NAME)
    elif rights.may_delete(name):
        return topic
    else:
        results.add(name, ZERO_UUID, _HIDDEN)
    return None
