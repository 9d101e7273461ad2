"""Topics are created, deleted, and get more partitions.

A topic is one batch of records: TopicRecord, its configs, its partitions. RemoveTopicRecord alone removes it, since its
partitions and configs go by replay. What the listener of a request decides is not checked here: rights, names that are doubled in
a request, and whether topics may be deleted at all. Source: Kafka's ReplicationControlManager.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage, TopicImage
from ....metadata.rules.striped_placement import place_replicas
from ....metadata.rules.topic_names import check_name
from ....metadata.types import PartitionRegistration
from ....wire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from ....wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ....wire.messages.topic_records import RemoveTopicRecord, TopicRecord
from ....wire.metadata_records import VersionedRecord
from ...new_topics import Charge
from ...random_uuids import random_uuid
from ..snapshot_records import partition_record
from .context import OperationContext
from .image_index import unified_name
from .result import MAX_RECORDS, ControllerResult, bounded

_Replicas = tuple[int, ...]


class TopicCreation(NamedTuple):
    """What creating topics needs beside the cluster."""

    config_records: Callable[[ClusterImage, str, Mapping[str, str]], Sequence[VersionedRecord]]
    """The records of a new topic's configs. Raises KafkaError where one is invalid."""
    describe_configs: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]
    """All configs of a topic with these overrides, for the response, in the order of their names."""
    may_describe: Callable[[str], bool]
    """Whether the client may see a topic's configs, and the numbers that come with them."""
    charge: Charge
    """Charges partitions to the client's quota. Raises KafkaError where it is exhausted."""
    randomness: random.Random


def create_topics(
    context: OperationContext, request: CreateTopicsRequest, creation: TopicCreation
) -> ControllerResult[CreateTopicsResponse]:
    """The failure of one topic does not touch the others. Raises KafkaError POLICY_VIOLATION for too many partitions."""
    _check_total(request.topics, context.settings.num_partitions)
    records: list[VersionedRecord] = []
    response = CreateTopicsResponse()
    for topic in request.topics:
        try:
            made, result = _created(context, topic, creation)
        except KafkaError as error:
            result = CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
        else:
            records += made
        response.topics.append(result)
    return ControllerResult([] if request.validate_only else bounded(records), response)


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
    topic_id = random_uuid(creation.randomness)
    result = CreatableTopicResult(name=topic.name, topic_id=topic_id)
    if creation.may_describe(topic.name):
        result.configs = creation.describe_configs(configs)
        result.num_partitions = len(placed)
        result.replication_factor = len(placed[0])
    else:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    made: list[VersionedRecord] = [(TopicRecord(name=topic.name, topic_id=topic_id), 0), *config_records]
    made += _partition_records(context, topic_id, dict(sorted(placed.items())))
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


def _assigned(context: OperationContext, topic: CreatableTopic) -> dict[int, _Replicas]:
    """The replicas that a client has named, by partition."""
    for name, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
        if value != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {name} was not set to -1."
            )
    assigned: dict[int, _Replicas] = {}
    factor = None
    for assignment in topic.assignments:
        number, replicas = assignment.partition_index, tuple(assignment.broker_ids)
        if number in assigned:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {number}")
        check_replicas(context, replicas, factor)
        factor = len(replicas)
        _check_active(context, number, replicas)
        assigned[number] = replicas
    if assigned.keys() != set(range(len(assigned))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return assigned


def _placed(context: OperationContext, topic: CreatableTopic, randomness: random.Random) -> dict[int, _Replicas]:
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
    _check_one_active(context, placed, factor)
    return dict(enumerate(placed))


def delete_topics(
    context: OperationContext, topic_ids: Collection[bytes], charge: Charge
) -> ControllerResult[dict[bytes, KafkaError | None]]:
    """The outcome by id: UNKNOWN_TOPIC_ID, or what ``charge`` raises. Raises KafkaError POLICY_VIOLATION for too many."""
    records: list[VersionedRecord] = []
    outcomes: dict[bytes, KafkaError | None] = {}
    for topic_id in topic_ids:
        topic = context.topic(topic_id)
        if topic is None:
            outcomes[topic_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        try:
            charge(len(topic.partitions))
        except KafkaError as error:
            outcomes[topic_id] = error
        else:
            outcomes[topic_id] = None
            records.append((RemoveTopicRecord(topic_id=topic_id), 0))
    return ControllerResult(bounded(records), outcomes)


def create_partitions(
    context: OperationContext,
    topics: Iterable[CreatePartitionsTopic],
    charge: Charge,
    randomness: random.Random,
    *,
    validate_only: bool = False,
) -> ControllerResult[list[CreatePartitionsTopicResult]]:
    """Partitions are added behind those there are. Raises KafkaError POLICY_VIOLATION for too many, and none is added then."""
    records: list[VersionedRecord] = []
    results = []
    for wanted in topics:
        try:
            records += _added_partitions(context, wanted, charge, randomness)
        except KafkaError as error:
            results.append(
                CreatePartitionsTopicResult(name=wanted.name, error_code=error.code, error_message=error.message)
            )
        else:
            results.append(CreatePartitionsTopicResult(name=wanted.name))
    return ControllerResult([] if validate_only else bounded(records), results)


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
        _check_one_active(context, placed, factor)
    else:
        placed = [tuple(assignment.broker_ids) for assignment in wanted.assignments]
        for number, replicas in enumerate(placed, first):
            check_replicas(context, replicas, factor)
            _check_active(context, number, replicas)
    return _partition_records(context, topic.topic_id, dict(enumerate(placed, first)))


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
        raise _bad_assignment(
            f"Attempted to add {added} additional partition(s), but only {len(wanted.assignments)} assignment(s) were "
            "specified."
        )
    return added


def check_replicas(context: OperationContext, replicas: Sequence[int], factor: int | None) -> None:
    """Replicas that a client names: registered brokers, each once, and ``factor`` of them. Raises INVALID_REPLICA_ASSIGNMENT."""
    if not replicas:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if context.broker(broker_id) is None:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            raise _bad_assignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if factor is not None and len(replicas) != factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )


def _check_active(context: OperationContext, number: int, replicas: Iterable[int]) -> None:
    if not any(map(context.is_active, replicas)):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {number} are fenced or in "
            "controlled shutdown."
        )


def _check_one_active(context: OperationContext, placed: Iterable[_Replicas], factor: int) -> None:
    for replicas in placed:
        if not any(map(context.is_active, replicas)):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced or in controlled "
                "shutdown.",
            )


def _partition_records(
    context: OperationContext, topic_id: bytes, placed: Mapping[int, _Replicas]
) -> list[VersionedRecord]:
    """New partitions: the active brokers are in sync, and the first of them leads."""
    records = []
    for number, replicas in placed.items():
        isr = tuple(filter(context.is_active, replicas))
        directories = tuple(map(context.default_directory, replicas))
        partition = PartitionRegistration(isr[0], 0, 0, isr, replicas, directories=directories)
        records.append(partition_record(topic_id, number, partition, context.level, has_elr=context.has_elr))
    return records


def _bad_assignment(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
