"""The three requests by which a controller of ZooKeeper mode tells a broker of the cluster, translated into its metadata.

LeaderAndIsr says what replicas the broker has, StopReplica which it has no more, UpdateMetadata what all of the cluster is. Here,
and in their handlers, they end: what applies them (``ReplicaManager``, ``MetadataCache``) knows partitions and brokers only.

A request of an earlier controller than the broker has heard of is refused as a whole, with STALE_CONTROLLER_EPOCH; the epoch is
one for all three. A leader epoch that is known says nothing new, unless the topic has been given an id.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...base.errors import ErrorCode, KafkaError
from ...metadata.delta import ClusterDelta, TopicDelta
from ...metadata.types import BrokerEndpoint, BrokerRegistration, PartitionRegistration
from ...replication.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from ...wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from ...wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from .znodes import SECURITY_PROTOCOLS

LEADER_DURING_DELETE = -2
_NO_LEADER_EPOCH = -1
_LEADER_EPOCH_DURING_DELETE = -2
_PROTOCOL_NAMES = {number: name for name, number in SECURITY_PROTOCOLS.items()}


def new_topics(request: LeaderAndIsrRequest) -> list[str]:
    """The topics of which the broker has no replica yet: their configs are to be read before their first logs are made."""
    return [topic.topic_name for topic in request.topic_states if any(state.is_new for state in topic.partition_states)]


def apply_leader_and_isr(
    request: LeaderAndIsrRequest, replicas: ReplicaManager, metadata: MetadataCache
) -> LeaderAndIsrResponse:
    """Make partitions lead or follow; one error code per partition."""
    if not metadata.accept_controller_epoch(request.controller_epoch):
        return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    topics = []
    for topic in request.topic_states:
        errors = _apply_topic(topic, replicas, says_known=request.is_kraft_controller)
        topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
    return LeaderAndIsrResponse(topics=topics)


def _apply_topic(
    topic: LeaderAndIsrTopicState, replicas: ReplicaManager, *, says_known: bool
) -> list[LeaderAndIsrPartitionError]:
    errors = []
    settings = replicas.topic_settings(topic.topic_name)  # one object for all partitions
    for state in topic.partition_states:
        number, code = state.partition_index, ErrorCode.NONE
        try:
            if not says_known:
                _check_new_epoch(replicas, topic, state)
            replicas.apply(topic.topic_name, topic.topic_id, number, _replica(state), settings)
        except KafkaError as error:
            replicas.log_refusal(topic.topic_name, number, error)
            code = error.code
        errors.append(LeaderAndIsrPartitionError(partition_index=number, error_code=code))
    return errors


def _check_new_epoch(
    replicas: ReplicaManager, topic: LeaderAndIsrTopicState, state: LeaderAndIsrPartitionState
) -> None:
    known = replicas.find(topic.topic_name, state.partition_index)
    if known is not None and known.topic_id == topic.topic_id and known.leader_epoch == state.leader_epoch:
        raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, f"leader epoch {state.leader_epoch} is known")


def _replica(state: LeaderAndIsrPartitionState) -> PartitionRegistration:
    return PartitionRegistration(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        isr=tuple(state.isr),
        replicas=tuple(state.replicas),
        adding=tuple(state.adding_replicas),
        removing=tuple(state.removing_replicas),
        is_recovering=state.leader_recovery_state == 1,
        is_new=state.is_new,
    )


def apply_stop_replica(
    request: StopReplicaRequest, replicas: ReplicaManager, metadata: MetadataCache
) -> StopReplicaResponse:
    """Stop replicas, and delete their logs where the request says so; one error code per partition."""
    if not metadata.accept_controller_epoch(request.controller_epoch):
        return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    errors = []
    for topic in request.topic_states:
        for state in topic.partition_states:
            name, number, code = topic.topic_name, state.partition_index, ErrorCode.NONE
            try:
                replicas.stop(name, number, _epoch_of_stop(state), deletes=state.delete_partition)
            except KafkaError as error:
                replicas.log_refusal(name, number, error)
                code = error.code
            errors.append(StopReplicaPartitionError(topic_name=name, partition_index=number, error_code=code))
    return StopReplicaResponse(partition_errors=errors)


def _epoch_of_stop(state: StopReplicaPartitionState) -> int | None:
    """The leader epoch under which a replica is stopped; None for any: early versions have none, and a deletion asks for none."""
    return None if state.leader_epoch in (_LEADER_EPOCH_DURING_DELETE, _NO_LEADER_EPOCH) else state.leader_epoch


def apply_update_metadata(request: UpdateMetadataRequest, metadata: MetadataCache) -> UpdateMetadataResponse:
    """Take over what a controller says of the cluster."""
    if not metadata.accept_controller_epoch(request.controller_epoch):
        return UpdateMetadataResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    topics = [
        TopicDelta(topic.topic_name, topic.topic_id, _partitions(topic.partition_states))
        for topic in request.topic_states
    ]
    metadata.publish(ClusterDelta(request.controller_id, [_broker(each) for each in request.live_brokers], topics))
    return UpdateMetadataResponse()


def _partitions(states: Iterable[UpdateMetadataPartitionState]) -> dict[int, PartitionRegistration | None]:
    """The states by number; None for one that is being deleted, of which clients are not to be told any more."""
    return {
        state.partition_index: None
        if state.leader == LEADER_DURING_DELETE
        else PartitionRegistration(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.zk_version,
            isr=tuple(state.isr),
            replicas=tuple(state.replicas),
            offline=tuple(state.offline_replicas),
        )
        for state in states
    }


def _broker(told: UpdateMetadataBroker) -> BrokerRegistration:
    endpoints = [
        BrokerEndpoint(each.listener, each.host, each.port, security_protocol(each.security_protocol))
        for each in told.endpoints
    ]
    return BrokerRegistration(told.id, tuple(endpoints), told.rack)


def security_protocol(number: int) -> str:
    """The name of a number; Kafka's error for one that there is not (``SecurityProtocol.forId``)."""
    name = _PROTOCOL_NAMES.get(number)
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no security protocol with the number {number}")
    return name
