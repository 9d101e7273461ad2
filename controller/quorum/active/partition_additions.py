"""CreatePartitions: the addition of partitions to existing topics.

Sources: Kafka's ReplicationControlManager, and ControllerApis for names that are doubled.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import TopicImage
from ....metadata.rules.striped_placement import place_replicas
from ....wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ....wire.metadata_records import VersionedRecord
from ...new_topics import Charge
from .context import OperationContext
from .new_partitions import bad_assignment, check_active, check_one_active, check_replicas, partition_records_of
from .result import MAX_RECORDS, ControllerResult, bounded


def create_partitions(
    context: OperationContext,
    request: CreatePartitionsRequest,
    may_alter: Callable[[str], bool],
    charge: Charge,
    randomness: random.Random,
) -> ControllerResult[CreatePartitionsResponse]:
    """The failure of one topic does not touch the others. ``may_alter``: whether the client may, by the topic's name.

    Raises KafkaError POLICY_VIOLATION for too many partitions, and none is added then.
    """
    counts = Counter(topic.name for topic in request.topics)
    records: list[VersionedRecord] = []
    response = CreatePartitionsResponse()
    for name, count in counts.items():
        if count > 1:
            response.results.append(_refused(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif not may_alter(name):
            response.results.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, None))
    for wanted in request.topics:
        if counts[wanted.name] > 1 or not may_alter(wanted.name):
            continue
        try:
            records += _added_partitions(context, wanted, charge, randomness)
        except KafkaError as error:
            response.results.append(_refused(wanted.name, error.code, error.message))
        else:
            response.results.append(CreatePartitionsTopicResult(name=wanted.name))
    return ControllerResult([] if request.validate_only else bounded(records), response)


def _refused(name: str, code: ErrorCode, why: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=why)


def _added_partitions(
    context: OperationContext, wanted: CreatePartitionsTopic, charge: Charge, randomness: random.Random
) -> list[VersionedRecord]:
    topic = context.topic_named(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    first = len(topic.partitions)
    added = _checked_increase(topic, wanted)
    charge(added)
    factor = len(next(iter(topic.partitions.values())).replicas)
    if wanted.assignments is None:
        placed = place_replicas(context.usable_brokers(), added, factor, randomness)
        check_one_active(context, placed, factor)
    else:
        placed = [tuple(assignment.broker_ids) for assignment in wanted.assignments]
        for number, replicas in enumerate(placed, first):
            check_replicas(context, replicas, factor)
            check_active(context, number, replicas)
    return partition_records_of(context, topic.topic_id, dict(enumerate(placed, first)))


def _checked_increase(topic: TopicImage, wanted: CreatePartitionsTopic) -> int:
    """How many partitions are to be added."""
    count = len(topic.partitions)
    if wanted.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wanted.count < count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {count} partition(s); {wanted.count} would not be an increase.",
        )
    added = wanted.count - count
    if added > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    if wanted.assignments is not None and len(wanted.assignments) != added:
        raise bad_assignment(
            f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} assignment(s) were "
            "specified."
        )
    return added
