"""Leader elections on request, and the periodic ones of the controller (KIP-183, KIP-460).

Elections that follow from a broker's state are in ``broker_states``. Source: Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import NO_LEADER
from ....metadata.image import TopicImage
from ....metadata.rules.election import ElectionType
from ....wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ....wire.metadata_records import VersionedRecord
from .context import OperationContext
from .image_index import PartitionKey
from .partition_changes import ElectionGoal, PartitionTarget
from .result import ControllerResult, bounded

MAX_ELECTIONS = 1_000
"""In one turn of what the controller does from time to time; the next one follows at once (MAX_ELECTIONS_PER_IMBALANCE)."""

_Elect = Callable[[str, int], None]


def elect_leaders(context: OperationContext, request: ElectLeadersRequest) -> ControllerResult[ElectLeadersResponse]:
    """Elect the leaders of the partitions named, or of all. Raises KafkaError INVALID_REQUEST, POLICY_VIOLATION."""
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}") from None
    records: list[VersionedRecord] = []
    response = ElectLeadersResponse()

    def elect(topic: str, number: int) -> None:
        records.append(_elected(context, topic, number, election_type))

    if request.topic_partitions is None:
        for name, image in context.image.topics.newest().items():
            results = [result for result in _results(name, image.partitions, elect) if not _was_not_needed(result)]
            response.replica_election_results.append(ReplicaElectionResult(topic=name, partition_result=results))
    else:
        for topic in request.topic_partitions:
            results = _results(topic.topic, topic.partitions, elect)
            response.replica_election_results.append(ReplicaElectionResult(topic=topic.topic, partition_result=results))
    return ControllerResult(bounded(records), response, is_atomic=False)


def _results(topic: str, numbers: Iterable[int], elect: _Elect) -> list[PartitionResult]:
    results = []
    for number in numbers:
        result = PartitionResult(partition_id=number, error_message=None)
        try:
            elect(topic, number)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return results


def _was_not_needed(result: PartitionResult) -> bool:
    return bool(result.error_code == ErrorCode.ELECTION_NOT_NEEDED)


def _elected(context: OperationContext, name: str, number: int, election_type: ElectionType) -> VersionedRecord:
    """Raises KafkaError where there is nothing to elect, or nobody."""
    topic = context.topic_named(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    is_preferred = election_type is ElectionType.PREFERRED
    if partition.leader == partition.replicas[0] if is_preferred else partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    goal = ElectionGoal.PREFERRED if is_preferred else ElectionGoal.UNCLEAN
    record = context.change(topic, number, PartitionTarget(goal=goal))
    if record is not None:
        return record
    if is_preferred:
        raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")


def balance_leaders(context: OperationContext) -> ControllerResult[bool]:
    """Have first replicas lead again that may. True if there may be more, which then are done at once."""
    return _elected_of(context, context.index.not_preferred.newest(), ElectionGoal.PREFERRED, lambda topic: True)


def elect_unclean_leaders(context: OperationContext) -> ControllerResult[bool]:
    """Have replicas lead that may lack records, where nobody leads and the topic allows it. True if there may be more."""
    return _elected_of(context, context.index.without_leader(), ElectionGoal.UNCLEAN, context.allows_unclean_election)


def _elected_of(
    context: OperationContext,
    keys: Iterable[PartitionKey],
    goal: ElectionGoal,
    is_wanted: Callable[[TopicImage], bool],
) -> ControllerResult[bool]:
    records: list[VersionedRecord] = []
    for topic_id, number in keys:
        if len(records) >= MAX_ELECTIONS:
            break
        topic = context.topic(topic_id)
        assert topic is not None, "the index has partitions of topics only"
        if is_wanted(topic):
            record = context.change(topic, number, PartitionTarget(goal=goal))
            if record is not None:
                records.append(record)
    return ControllerResult(records, len(records) >= MAX_ELECTIONS, is_atomic=False)
