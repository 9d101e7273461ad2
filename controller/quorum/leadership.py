"""Confirmation of a partition's leadership by the controller, because the broker's own metadata may be stale.

The question is an AlterPartition that changes nothing: the in-sync replicas that the broker knows, under its leader epoch. The
controller compares epochs before everything else, and writes no record for what is as it was (``ReplicationControlManager``).
A controller that was deposed without having learned of it may answer yes; the quorum ends that within 1.5 fetch timeouts.
"""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from ...base.partitions import NO_BROKER_EPOCH
from ...metadata.types import PartitionRegistration
from ...replication.broker_client import PeerUnavailableError
from ...replication.controller_channel import RequestChannel
from ...wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)

_SECONDS = 3.0
_LEADS_ON = (ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA)
"""The controller's responses after it has found the leader epoch to be the present one."""


async def confirmed_leader_epoch(
    controller: RequestChannel,
    broker_id: int,
    broker_epoch: int,
    topic_id: bytes,
    number: int,
    known: PartitionRegistration,
) -> int | None:
    """The leader epoch of a partition that this broker leads as far as it knows; None if the controller does not confirm it."""
    unchanged = PartitionData(
        partition_index=number,
        leader_epoch=known.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=replica, broker_epoch=NO_BROKER_EPOCH) for replica in known.isr],
        leader_recovery_state=int(known.is_recovering),
        partition_epoch=known.partition_epoch,
    )
    request = AlterPartitionRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, topics=[TopicData(topic_id=topic_id, partitions=[unchanged])]
    )
    try:
        response: AlterPartitionResponse = await controller.send(request, timeout=_SECONDS)
    except (KafkaError, PeerUnavailableError):
        return None
    if response.error_code:
        return None
    answers = [partition for topic in response.topics for partition in topic.partitions]
    return known.leader_epoch if answers and answers[0].error_code in _LEADS_ON else None
