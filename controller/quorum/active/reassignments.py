"""Partition reassignments: their start, cancellation and listing (KIP-455).

During a move a partition has the replicas wanted, in their order, and then those to be removed. It ends when the leader proposes
an ISR with all that is added (``partition_changes.completed_reassignment``). Sources: Kafka's PartitionReassignmentReplicas,
PartitionReassignmentRevert and ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import TopicImage
from ....metadata.types import PartitionRegistration
from ....wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ....wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ....wire.metadata_records import VersionedRecord
from .context import OperationContext
from .new_partitions import check_replicas
from .partition_changes import ElectionGoal, PartitionTarget, Replicas
from .result import ControllerResult, bounded


class ReplicaMove(NamedTuple):
    """A reassignment as a partition has it while it is under way."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas


def move_to(current: Replicas, wanted: Replicas) -> ReplicaMove:
    """The move from all present replicas to those wanted. One under way goes on from what it has made."""
    removing = tuple(sorted(set(current) - set(wanted)))
    return ReplicaMove((*wanted, *removing), tuple(sorted(set(wanted) - set(current))), removing)


class Reverted(NamedTuple):
    """A partition without the move that was under way."""

    replicas: Replicas
    isr: Replicas
    is_unclean: bool
    """No replica from before the move is in sync; the first one then is taken for it, although it may lack records."""


def reverted(partition: PartitionRegistration) -> Reverted:
    """What a partition becomes when its move is cancelled: without the replicas that the move has added."""
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    if isr:
        return Reverted(replicas, isr, is_unclean=False)
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Invalid replica assignment: addingReplicas contains all replicas.",
        )
    return Reverted(replicas, replicas[:1], is_unclean=True)


def alter_reassignments(
    context: OperationContext, request: AlterPartitionReassignmentsRequest
) -> ControllerResult[AlterPartitionReassignmentsResponse]:
    """The failure of one partition does not touch the others. Raises KafkaError POLICY_VIOLATION for too many."""
    if not request.topics:
        return ControllerResult([], AlterPartitionReassignmentsResponse())
    may_change_factor = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor, error_message=None
    )
    records: list[VersionedRecord] = []
    for topic in request.topics:
        outcomes = []
        for wanted in topic.partitions:
            outcome = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            try:
                record = _altered(context, topic.name, wanted, may_change_factor=may_change_factor)
            except KafkaError as error:
                outcome.error_code, outcome.error_message = error.code, error.message
            else:
                records += [] if record is None else [record]
            outcomes.append(outcome)
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=outcomes))
    return ControllerResult(bounded(records), response)


def _altered(
    context: OperationContext, name: str, wanted: ReassignablePartition, *, may_change_factor: bool
) -> VersionedRecord | None:
    topic = context.topic_named(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{wanted.partition_index}."
        )
    if wanted.replicas is None:
        return _cancelled(context, topic, wanted.partition_index, partition)
    check_replicas(context, wanted.replicas, None)
    if not may_change_factor:
        _check_factor(partition, len(wanted.replicas))
    move = move_to(partition.replicas, tuple(wanted.replicas))
    # Where the new move adds or removes nothing, Kafka (up to 4.3) keeps the whole list of the move before: a replica that was
    # asked to stay is removed then, or the move never ends.
    still_adding = tuple(replica for replica in partition.adding if replica in wanted.replicas)
    target = PartitionTarget(replicas=move.replicas, adding=move.adding or still_adding, removing=move.removing)
    return context.change(topic, wanted.partition_index, target)


def _cancelled(
    context: OperationContext, topic: TopicImage, number: int, partition: PartitionRegistration
) -> VersionedRecord | None:
    if not partition.adding and not partition.removing:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    before = reverted(partition)
    may_be_unclean = context.allows_unclean_election(topic)
    if before.is_unclean and not may_be_unclean:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{number} because it would require an unclean leader "
            "election.",
        )
    goal = ElectionGoal.UNCLEAN if may_be_unclean else ElectionGoal.ONLINE
    target = PartitionTarget(isr=before.isr, replicas=before.replicas, adding=(), removing=(), goal=goal)
    return context.change(topic, number, target)


def _check_factor(partition: PartitionRegistration, wanted: int) -> None:
    """The replication factor of a move under way is that of its end."""
    current = len(set(partition.replicas) - set(partition.removing))
    if current != wanted:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {current} to {wanted}"
        )


def list_reassignments(
    context: OperationContext, request: ListPartitionReassignmentsRequest
) -> ControllerResult[ListPartitionReassignmentsResponse]:
    """The moves under way of the partitions named, or of all. Nothing is written."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    wanted: dict[str, list[int]] = {}
    if request.topics is None:
        for topic_id, number in context.index.moving.newest():
            topic = context.topic(topic_id)
            assert topic is not None, "the index has partitions of topics only"
            wanted.setdefault(topic.name, []).append(number)
        listed: Iterable[tuple[str, list[int]]] = wanted.items()
    else:
        listed = [(topic.name, topic.partition_indexes) for topic in request.topics]
    for name, numbers in listed:
        found = context.topic_named(name)
        moving = [] if found is None else list(_moving(found, numbers))
        if moving:
            response.topics.append(OngoingTopicReassignment(name=name, partitions=moving))
    return ControllerResult([], response)


def _moving(topic: TopicImage, numbers: Iterable[int]) -> Iterable[OngoingPartitionReassignment]:
    for number in numbers:
        partition = topic.partitions.get(number)
        if partition is not None and (partition.adding or partition.removing):
            yield OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
