"""Creation of topics.

A topic is one batch of records: TopicRecord, its configs, its partitions. Sources: Kafka's ReplicationControlManager, and
ControllerApis for names that are doubled or not allowed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....metadata.rules.striped_placement import place_replicas
from ....metadata.rules.topic_names import check_name
from ....wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ....wire.messages.topic_records import TopicRecord
from ....wire.metadata_records import VersionedRecord
from ...new_topics import Charge
from .context import OperationContext
from .image_index import unified_name
from .new_partitions import bad_assignment, check_active, check_one_active, check_replicas, partition_records_of
from .partition_changes import Replicas
from .result import MAX_RECORDS, ControllerResult, bounded

METADATA_TOPIC = "__cluster_metadata"
"""The log of the quorum. No topic has this name."""


class TopicCreation(NamedTuple):
    """What creating topics needs beside the cluster."""

    config_records: Callable[[ClusterImage, str, Mapping[str, str]], Sequence[VersionedRecord]]
    """The records of a new topic's configs. Raises KafkaError where one is invalid."""
    describe_configs: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]
    """All configs of a topic with these overrides, for the response, in the order of their names."""
    may_create: Callable[[str], bool]
    """Whether the client may make a topic of this name."""
    may_describe: Callable[[str], bool]
    """Whether the client may see a topic's configs, and the numbers that come with them."""
    charge: Charge
    """Charges partitions to the client's quota. Raises KafkaError where it is exhausted."""
    new_uuid: Callable[[], bytes]
    """An id that no topic has had (``random_uuids``)."""
    randomness: random.Random


def create_topics(
    context: OperationContext, request: CreateTopicsRequest, creation: TopicCreation
) -> ControllerResult[CreateTopicsResponse]:
    """The failure of one topic does not touch the others. Raises KafkaError POLICY_VIOLATION for too many partitions."""
    counts = Counter(topic.name for topic in request.topics)
    wanted = [topic for topic in request.topics if counts[topic.name] == 1 and topic.name != METADATA_TOPIC]
    creatable = [topic for topic in wanted if creation.may_create(topic.name)]
    _check_total(creatable, context.settings.num_partitions)
    records: list[VersionedRecord] = []
    response = CreateTopicsResponse()
    for topic in creatable:
        try:
            made, result = _created(context, topic, creation)
        except KafkaError as error:
            result = _refused(topic.name, error.code, error.message)
        else:
            records += made
        response.topics.append(result)
    for name, count in counts.items():
        if count > 1:
            response.topics.append(_refused(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        elif name == METADATA_TOPIC:
            why = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            response.topics.append(_refused(name, ErrorCode.INVALID_REQUEST, why))
        elif not creation.may_create(name):
            response.topics.append(_refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."))
    return ControllerResult([] if request.validate_only else bounded(records), response)


def _refused(name: str, code: ErrorCode, why: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=why)


def _check_total(topics: Iterable[CreatableTopic], default_count: int) -> None:
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += default_count
        else:
            total += max(topic.num_partitions, 0)
    if total > MAX_RECORDS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _created(
    context: OperationContext, topic: CreatableTopic, creation: TopicCreation
) -> tuple[list[VersionedRecord], CreatableTopicResult]:
    _check_new_name(context, topic.name)
    configs = _given_configs(topic)
    config_records = creation.config_records(context.image, topic.name, configs) if configs else []
    placed = _assigned(context, topic) if topic.assignments else _placed(context, topic, creation.randomness)
    creation.charge(len(placed))
    topic_id = creation.new_uuid()
    result = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
    if creation.may_describe(topic.name):
        result.configs = creation.describe_configs(configs)
        result.num_partitions = len(placed)
        result.replication_factor = len(placed[0])
    else:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    made: list[VersionedRecord] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0), *config_records]
    made += partition_records_of(context, topic_id, dict(sorted(placed.items())))
    return made, result


def _check_new_name(context: OperationContext, name: str) -> None:
    if context.topic_named(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    unified = unified_name(name)
    colliding = context.index.similar_names.newest().get(unified, ()) if unified is not None else ()
    if colliding:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding[0]}"
        )
    check_name(name)


def _given_configs(topic: CreatableTopic) -> dict[str, str]:
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(missing)}")
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _assigned(context: OperationContext, topic: CreatableTopic) -> dict[int, Replicas]:
    """The replicas that a client has named, by partition."""
    for name, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
        if value != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {name} was not set to -1."
            )
    assigned: dict[int, Replicas] = {}
    factor = None
    for assignment in topic.assignments:
        number, replicas = assignment.partition_index, tuple(assignment.broker_ids)
        if number in assigned:
            raise bad_assignment(f"Found multiple manual partition assignments for partition {number}")
        check_replicas(context, replicas, factor)
        factor = len(replicas)
        check_active(context, number, replicas)
        assigned[number] = replicas
    if assigned.keys() != set(range(len(assigned))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return assigned


def _placed(context: OperationContext, topic: CreatableTopic, randomness: random.Random) -> dict[int, Replicas]:
    """Replicas by partition, striped over the brokers."""
    count, factor = topic.num_partitions, topic.replication_factor
    if factor < -1 or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = context.settings.num_partitions if count == -1 else count
    factor = context.settings.default_replication_factor if factor == -1 else factor
    try:
        placed = place_replicas(context.usable_brokers(), count, factor, randomness)
    except KafkaError as error:
        raise KafkaError(error.code, f"Unable to replicate the partition {factor} time(s): {error.message}") from None
    check_one_active(context, placed, factor)
    return dict(enumerate(placed))
