"""AssignReplicasToDirs: a broker's report of the log directories that hold its replicas (KIP-858).

A replica that comes to a directory which the controller takes for offline leaves the ISR at once: the broker has noticed the
failure after it had put the replica there. Source: ``handleAssignReplicasToDirs`` of Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import TopicImage
from ....wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version
from .broker_states import without_broker
from .brokers import check_broker_epoch
from .context import OperationContext
from .image_index import PartitionKey
from .partition_changes import PartitionTarget
from .result import ControllerResult


def assign_replicas(
    context: OperationContext, request: AssignReplicasToDirsRequest
) -> ControllerResult[AssignReplicasToDirsResponse]:
    """The failure of one replica does not touch the others. Raises KafkaError UNSUPPORTED_VERSION, STALE_BROKER_EPOCH."""
    if not metadata_version.has_directories(context.level):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    offline: dict[PartitionKey, None] = {}
    response = AssignReplicasToDirsResponse()
    for directory in request.directories:
        is_online = context.has_online_directory(request.broker_id, directory.id)
        topics = []
        for requested in directory.topics:
            topic = context.topic(requested.topic_id)
            partitions = []
            for data in requested.partitions:
                number = data.partition_index
                error = _why_not(topic, number, request.broker_id)
                partitions.append(ResponsePartitionData(partition_index=number, error_code=error))
                if topic is None or error is not ErrorCode.NONE:
                    continue
                target = PartitionTarget(directories={request.broker_id: directory.id})
                record = context.change(topic, number, target)
                records += [] if record is None else [record]
                if not is_online:
                    offline[topic.topic_id, number] = None
            topics.append(ResponseTopicData(topic_id=requested.topic_id, partitions=partitions))
        response.directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    records += without_broker(context, request.broker_id, offline)
    return ControllerResult(records, response, is_atomic=False)


def _why_not(topic: TopicImage | None, number: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(number)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER
