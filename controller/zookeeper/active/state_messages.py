"""Builders of the controller's requests to brokers, from its context (pure functions).

LeaderAndIsr goes to every live replica of a partition and makes it lead or follow. UpdateMetadata goes to every live
broker, so that each can serve clients. StopReplica ends a replica. The values are those of Kafka 3.9's controller: a
topic under deletion has leader -2 in UpdateMetadata, and epoch -2 in StopReplica, which overrides any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from ....base.partitions import TopicPartition
from ....metadata.rules.election import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from ....metadata.types import SECURITY_PROTOCOLS
from ....wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ....wire.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from ....wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ..state.context import ControllerContext, PartitionState

_TopicState = TypeVar("_TopicState")


def leader_and_isr_requests(
    context: ControllerContext, keys: Iterable[TopicPartition], *, is_new: bool = False, adding_are_new: bool = False
) -> dict[int, LeaderAndIsrRequest]:
    """By live broker, the partitions among ``keys`` that it holds a replica of.

    A new replica's log may be made in any log directory, that of another one only if no log directory has failed. ``is_new``: all
    are new. ``adding_are_new``: those that a move adds are, unless they are in sync, for then they have a log.
    """
    states: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
    new: dict[tuple[int, TopicPartition], LeaderAndIsrPartitionState] = {}
    for key in keys:
        partition = context.partition(key)
        if partition.state is not None:
            states[key] = _leader_and_isr_partition(key.partition, partition, is_new)
            if adding_are_new:
                added = _leader_and_isr_partition(key.partition, partition, True)
                isr = partition.state.isr
                new.update(
                    ((broker_id, key), added) for broker_id in partition.assignment.adding if broker_id not in isr
                )

    def topic_state(topic: str) -> LeaderAndIsrTopicState:
        return LeaderAndIsrTopicState(topic_name=topic, topic_id=context.topics[topic].topic_id)

    return {
        broker_id: LeaderAndIsrRequest(
            controller_id=context.controller_id,
            controller_epoch=context.epoch,
            broker_epoch=context.brokers[broker_id].epoch,
            topic_states=topics,
            live_leaders=_live_leaders(context, {state.leader for topic in topics for state in topic.partition_states}),
        )
        for broker_id, topics in _by_replica(context, states, topic_state, exceptions=new).items()
    }


def _leader_and_isr_partition(number: int, partition: PartitionState, is_new: bool) -> LeaderAndIsrPartitionState:
    assert partition.state is not None
    return LeaderAndIsrPartitionState(
        partition_index=number,
        controller_epoch=partition.state.controller_epoch,
        leader=partition.state.leader,
        leader_epoch=partition.state.leader_epoch,
        isr=list(partition.state.isr),
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.assignment.replicas),
        adding_replicas=list(partition.assignment.adding),
        removing_replicas=list(partition.assignment.removing),
        is_new=is_new,
        leader_recovery_state=int(partition.state.is_recovering),
    )


def _live_leaders(context: ControllerContext, leaders: Collection[int]) -> list[LeaderAndIsrLiveLeader]:
    result = []
    for broker_id in sorted(leaders):
        broker = context.brokers.get(broker_id)
        endpoint = None if broker is None else broker.registration.endpoint(context.inter_broker_listener)
        if endpoint is not None:
            result.append(LeaderAndIsrLiveLeader(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port))
    return result


def update_metadata_requests(
    context: ControllerContext, keys: Iterable[TopicPartition], brokers: Collection[int] | None = None
) -> dict[int, UpdateMetadataRequest]:
    """By live broker (those of ``brokers``, else all): the state of ``keys``, and which brokers are alive."""
    topic_states = []
    for topic, numbers in context.by_topic(keys).items():
        deleting = topic in context.deleting
        partitions = context.topics[topic].partitions
        topic_states.append(
            UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=context.topics[topic].topic_id,
                partition_states=[
                    _metadata_partition(context, TopicPartition(topic, number), deleting)
                    for number in numbers
                    if partitions[number].state is not None
                ],
            )
        )
    live_brokers = [_metadata_broker(context, broker_id) for broker_id in sorted(context.brokers)]
    targets = context.brokers if brokers is None else [b for b in brokers if b in context.brokers]
    return {
        broker_id: UpdateMetadataRequest(
            controller_id=context.controller_id,
            controller_epoch=context.epoch,
            broker_epoch=context.brokers[broker_id].epoch,
            topic_states=topic_states,
            live_brokers=live_brokers,
        )
        for broker_id in targets
    }


def _metadata_partition(
    context: ControllerContext, key: TopicPartition, deleting: bool
) -> UpdateMetadataPartitionState:
    partition = context.partition(key)
    state = partition.state
    assert state is not None
    replicas = partition.assignment.replicas
    eligible = context.eligible(key)
    return UpdateMetadataPartitionState(
        partition_index=key.partition,
        controller_epoch=state.controller_epoch,
        leader=LEADER_DURING_DELETE if deleting else state.leader,
        leader_epoch=0 if deleting else state.leader_epoch,
        isr=list(state.isr),
        zk_version=partition.partition_epoch,
        replicas=list(replicas),
        offline_replicas=[replica for replica in replicas if replica not in eligible],
    )


def _metadata_broker(context: ControllerContext, broker_id: int) -> UpdateMetadataBroker:
    registration = context.brokers[broker_id].registration
    return UpdateMetadataBroker(
        id=broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SECURITY_PROTOCOLS.get(endpoint.security_protocol, 0),
            )
            for endpoint in registration.endpoints
        ],
        rack=registration.rack,
    )


def stop_replica_requests(
    context: ControllerContext,
    keys: Iterable[TopicPartition],
    *,
    delete: bool,
    removed: Mapping[TopicPartition, Sequence[int]] | None = None,
) -> dict[int, StopReplicaRequest]:
    """By live broker, the replicas of ``keys`` that it is to stop: all, or those that were ``removed``."""
    states = {}
    for key in keys:
        state = context.partition(key).state
        epoch = -1 if state is None else state.leader_epoch
        states[key] = StopReplicaPartitionState(
            partition_index=key.partition,
            leader_epoch=EPOCH_DURING_DELETE if key.topic in context.deleting else epoch,
            delete_partition=delete,
        )
    return {
        broker_id: StopReplicaRequest(
            controller_id=context.controller_id,
            controller_epoch=context.epoch,
            broker_epoch=context.brokers[broker_id].epoch,
            topic_states=topics,
        )
        for broker_id, topics in _by_replica(
            context, states, lambda topic: StopReplicaTopicState(topic_name=topic), replicas=removed
        ).items()
    }


def _by_replica(
    context: ControllerContext,
    states: Mapping[TopicPartition, Any],
    topic_state: Callable[[str], _TopicState],
    *,
    replicas: Mapping[TopicPartition, Sequence[int]] | None = None,
    exceptions: Mapping[tuple[int, TopicPartition], Any] = MappingProxyType({}),
) -> dict[int, list[_TopicState]]:
    """By live broker, the states of the partitions that it holds a replica of, in topics that ``topic_state`` makes.

    ``replicas`` are used instead of those that partitions have; ``exceptions`` are states for one broker only.
    """
    found: dict[int, dict[str, Any]] = {}
    for key, state in states.items():
        for broker_id in context.partition(key).assignment.replicas if replicas is None else replicas[key]:
            if broker_id in context.brokers:
                topics = found.setdefault(broker_id, {})
                if key.topic not in topics:
                    topics[key.topic] = topic_state(key.topic)
                topics[key.topic].partition_states.append(exceptions.get((broker_id, key), state))
    return {broker_id: list(topics.values()) for broker_id, topics in found.items()}
