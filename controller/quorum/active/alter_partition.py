"""AlterPartition: ISR changes that leaders propose and the controller decides (KIP-497, KIP-841, KIP-903).

The proposal names the leader epoch and the partition epoch that the leader knows, so nothing is decided on an old view. A
member must be alive under the broker epoch with which it has fetched: one that has restarted meanwhile may have lost records.
There is no early success for an ISR that is so already. Source: ``alterPartition`` of Kafka's
ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....base.errors import ErrorCode
from ....metadata.image import TopicImage
from ....metadata.types import PartitionRegistration
from ....wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from ....wire.messages.topic_records import PartitionChangeRecord
from ....wire.metadata_records import VersionedRecord
from ..replay import changed_partition
from .brokers import check_broker_epoch
from .context import OperationContext
from .partition_changes import SAME_LEADER, ElectionGoal, PartitionTarget
from .result import ControllerResult

TELLS_MEMBER_EPOCHS = 3
"""The version of AlterPartition from which members come with their broker epochs."""
_ANY_EPOCH = -1
_RECOVERED, _RECOVERING = 0, 1


def alter_partition(
    context: OperationContext, request: AlterPartitionRequest, version: int
) -> ControllerResult[AlterPartitionResponse]:
    """``version``, 2 or 3, is the request's. Raises KafkaError STALE_BROKER_EPOCH."""
    if not request.topics:
        return ControllerResult([], AlterPartitionResponse())  # whoever asks, as in Kafka
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    response = AlterPartitionResponse()
    for topic_data in request.topics:
        topic = context.topic(topic_data.topic_id)
        outcomes = []
        for data in topic_data.partitions:
            if topic is None:
                outcomes.append(_failed(data, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            members = _members(data, version)
            error = _why_not(context, request.broker_id, topic, data, members)
            if error is ErrorCode.NONE:
                outcomes.append(_altered(context, request.broker_id, topic, data, members, records))
            else:
                outcomes.append(_failed(data, error))
        response.topics.append(ResponseTopicData(topic_id=topic_data.topic_id, partitions=outcomes))
    return ControllerResult(records, response, is_atomic=False)


def _members(data: PartitionData, version: int) -> Sequence[BrokerState]:
    if version >= TELLS_MEMBER_EPOCHS:
        return data.new_isr_with_epochs
    return [BrokerState(broker_id=broker_id) for broker_id in data.new_isr]


def _failed(data: PartitionData, error: ErrorCode) -> ResponsePartitionData:
    return ResponsePartitionData(partition_index=data.partition_index, error_code=error)


def _why_not(
    context: OperationContext, broker_id: int, topic: TopicImage, data: PartitionData, members: Sequence[BrokerState]
) -> ErrorCode:
    """What is wrong with a proposal, NONE for a good one. A leader that knows more than this controller shall find another."""
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not _is_possible(partition, data, [member.broker_id for member in members]):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if all(_is_eligible(context, member) for member in members) else ErrorCode.INELIGIBLE_REPLICA


def _is_possible(partition: PartitionRegistration, data: PartitionData, isr: Sequence[int]) -> bool:
    """Whether the ISR has replicas only, each once, the leader among them; a leader that recovers is alone (KIP-704)."""
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or partition.leader not in isr:
        return False
    if data.leader_recovery_state == _RECOVERING:
        return len(isr) == 1 and partition.is_recovering
    return bool(data.leader_recovery_state == _RECOVERED)


def _is_eligible(context: OperationContext, member: BrokerState) -> bool:
    broker = context.broker(member.broker_id)
    if broker is None or broker.is_shutting_down or broker.is_fenced:
        return False
    return bool(member.broker_epoch in (_ANY_EPOCH, broker.epoch))


def _altered(
    context: OperationContext,
    broker_id: int,
    topic: TopicImage,
    data: PartitionData,
    members: Sequence[BrokerState],
    records: list[VersionedRecord],
) -> ResponsePartitionData:
    """Write a good proposal. One that completes a reassignment may end the leadership of the leader that has made it."""
    partition = topic.partitions[data.partition_index]
    target = PartitionTarget(
        isr=tuple(member.broker_id for member in members),
        is_recovering=data.leader_recovery_state == _RECOVERING,
        goal=ElectionGoal.UNCLEAN if context.allows_unclean_election(topic) else ElectionGoal.ONLINE,
    )
    change = context.change(topic, data.partition_index, target)
    if change is not None:
        records.append(change)
        record = change[0]
        assert isinstance(record, PartitionChangeRecord)
        partition = changed_partition(partition, record)
        if record.leader not in (broker_id, SAME_LEADER):
            return _failed(data, ErrorCode.NEW_LEADER_ELECTED)  # the one error that comes with a record
    return ResponsePartitionData(
        partition_index=data.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=int(partition.is_recovering),
        partition_epoch=partition.partition_epoch,
    )
