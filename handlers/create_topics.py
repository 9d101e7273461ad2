"""CreateTopics (key 19): make topics with partitions, replicas and settings.

Behaviour: each topic succeeds or fails by itself. A name given twice is INVALID_REQUEST, once in the response. -1 stands
for the broker's number of partitions and replication factor; replicas named by hand exclude both. ``validate_only`` does
every check, that of an existing topic too, and makes nothing. What a client makes beyond its quota is refused
(``request_cost``). Topics answered without error are ready for produce where this broker leads them. A client that may not
describe a topic's configs gets none of its details, but ``topic_config_error_code``. A timeout of 0 or less makes nothing and is
REQUEST_TIMED_OUT, as in Kafka's KRaft mode.

Version notes: 4 is the first that may leave out partitions and replication factor. 5 is flexible and answers with the
topic's partitions, replicas and every setting; 6 may answer THROTTLING_QUOTA_EXCEEDED; 7 adds the topic id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..base.presence import while_present
from ..controller.new_topics import CreatedTopic, NewTopic
from ..security.acl import Operation
from ..wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from .call import Call
from .config_entries import topic_entries
from .controller_requests import check_is_controller
from .mutations import charge
from .rights import CLUSTER, TOPIC, allowed_names, may, refusal

METADATA_TOPIC = "__cluster_metadata"
_FIRST_STRICT_VERSION = 6


async def handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    counts = Counter(topic.name for topic in request.topics)
    creatable = describable = set(counts)
    if call.broker.authorizer is not None:
        check_is_controller(call)
        if not may(call, Operation.CREATE, CLUSTER, log_if_denied=False):
            creatable = allowed_names(call, Operation.CREATE, TOPIC, counts)
        describable = allowed_names(call, Operation.DESCRIBE_CONFIGS, TOPIC, counts, log_if_denied=False)
    results: dict[str, CreatedTopic | KafkaError] = {}
    wanted = []
    for topic in request.topics:
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if topic.name not in creatable and topic.name != METADATA_TOPIC:
                raise refusal(TOPIC)
            wanted.append(_new_topic(topic))
        except KafkaError as error:
            results[topic.name] = error
    await call.flush()
    # Set before the wait: where the time is up the scope cuts the command off, and nothing else says how the topics fare.
    timed_out = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    results.update((topic.name, timed_out) for topic in wanted)
    with while_present(max(request.timeout_ms, 0) / 1000):
        results.update(
            await call.broker.commands.create_topics(
                wanted, validate_only=request.validate_only, charge=charge(call, _FIRST_STRICT_VERSION)
            )
        )
    return CreateTopicsResponse(
        topics=[_result(call.broker.config, name, results[name], shows_configs=name in describable) for name in counts]
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    if topic.name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if topic.num_partitions == 0 or topic.num_partitions < -1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    if topic.replication_factor == 0 or topic.replication_factor < -1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        _assignment(topic.assignments) if topic.assignments else None,
        {config.name: config.value for config in topic.configs},
    )


def _assignment(assignments: Sequence[CreatableReplicaAssignment]) -> dict[int, Sequence[int]]:
    by_partition: dict[int, Sequence[int]] = {}
    for assignment in assignments:
        if assignment.partition_index in by_partition:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        by_partition[assignment.partition_index] = assignment.broker_ids
    return by_partition


def described_configs(config: Config, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """The settings of a topic with these overrides, as a response has them."""
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(config, overrides)
    ]


def _result(
    config: Config, name: str, result: CreatedTopic | KafkaError, *, shows_configs: bool
) -> CreatableTopicResult:
    if isinstance(result, KafkaError):
        return CreatableTopicResult(name=name, error_code=result.code, error_message=result.message)
    if not shows_configs:
        return CreatableTopicResult(
            name=name,
            error_message=None,
            topic_id=result.topic_id,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=None,
        )
    return CreatableTopicResult(
        name=name,
        error_message=None,
        topic_id=result.topic_id,
        num_partitions=result.partition_count,
        replication_factor=result.replication_factor,
        configs=described_configs(config, result.configs),
    )


def error_response(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )
