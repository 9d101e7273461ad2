"""Translation of the controller's LeaderAndIsr, StopReplica and UpdateMetadata requests into a broker's metadata.

LeaderAndIsr says what replicas the broker has, StopReplica which it has no more, UpdateMetadata what all of the cluster is. Here,
and in their handlers, they end: what applies them (``ReplicaManager``, ``MetadataCache``) knows partitions and brokers only.

A request of an earlier controller than the broker has heard of is refused as a whole, with STALE_CONTROLLER_EPOCH; the epoch is
one for all three. One that was meant for an earlier registration of the broker is refused with STALE_BROKER_EPOCH (KIP-380).
Early versions name the topic with each partition, later ones group the partitions by topic: both are read here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar

from ...base.errors import ErrorCode, KafkaError
from ...base.partitions import NO_BROKER_EPOCH
from ...metadata.delta import ClusterDelta, TopicDelta
from ...metadata.rules.election import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from ...metadata.types import PROTOCOL_NAMES, AdvertisedListener, BrokerRegistration, PartitionRegistration
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
    StopReplicaTopicState,
)
from ...wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

_NO_LEADER_EPOCH = -1

_TopicState = TypeVar("_TopicState")


class ReplicaRequests:
    """Applies the requests to one broker. Its own controller calls them directly: it is a ``BrokerChannel`` without a connection.

    ``broker_epoch`` gives that of the present registration. ``refresh_topic_configs`` reads the configs of new topics, which have
    to be known before their first logs are made.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        broker_epoch: Callable[[], int],
        refresh_topic_configs: Callable[[Iterable[str]], Awaitable[None]],
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._broker_epoch = broker_epoch
        self._refresh_topic_configs = refresh_topic_configs
        self._controller_epoch = -1

    def check_broker_epoch(self, broker_epoch: int) -> None:
        """Raises KafkaError STALE_BROKER_EPOCH.

        A higher epoch than the own one is valid: the controller may know of a registration before the broker itself does
        (``KafkaApis.isBrokerEpochStale``).
        """
        own = self._broker_epoch()
        if broker_epoch != NO_BROKER_EPOCH and broker_epoch < own:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"the broker's epoch is {own}, not {broker_epoch}")

    def _accepts(self, controller_epoch: int) -> bool:
        """Note a controller's epoch; False when it is older than that of another controller that this broker has heard of."""
        if controller_epoch < self._controller_epoch:
            return False
        self._controller_epoch = controller_epoch
        return True

    # --- LeaderAndIsr -------------------------------------------------------------------------------------------------

    async def leader_and_isr(
        self, request: LeaderAndIsrRequest, *, is_for_registration: bool = False
    ) -> LeaderAndIsrResponse:
        """Make partitions lead or follow; one error code per partition. ``is_for_registration``: the broker epoch is checked.

        Raises KafkaError.
        """
        states = [(state.topic_name, state) for state in request.ungrouped_partition_states]
        topics = request.topic_states or _by_topic(states, LeaderAndIsrTopicState)
        if is_for_registration:
            self.check_broker_epoch(request.broker_epoch)
        await self._refresh_topic_configs(
            topic.topic_name for topic in topics if any(state.is_new for state in topic.partition_states)
        )
        if is_for_registration:  # meanwhile the broker may have been registered again
            self.check_broker_epoch(request.broker_epoch)
        return self.lead_and_follow(request.controller_epoch, topics, says_known=request.is_kraft_controller)

    def lead_and_follow(
        self, controller_epoch: int, topics: Iterable[LeaderAndIsrTopicState], *, says_known: bool = False
    ) -> LeaderAndIsrResponse:
        """Apply the states of partitions. ``says_known``: the controller repeats leader epochs that the broker knows."""
        if not self._accepts(controller_epoch):
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        told = [_lead_and_follow(self._replicas, topic, says_known=says_known) for topic in topics]
        return LeaderAndIsrResponse(topics=told)

    # --- StopReplica --------------------------------------------------------------------------------------------------

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas, and delete their logs where the request says so; one error code per partition."""
        if not self._accepts(request.controller_epoch):
            return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        errors = []
        for topic in request.topic_states or _by_topic(_with_flags(request), StopReplicaTopicState):
            for state in topic.partition_states:
                name, number, code = topic.topic_name, state.partition_index, ErrorCode.NONE
                try:
                    self._replicas.stop(name, number, _epoch_of_stop(state), deletes=state.delete_partition)
                except KafkaError as error:
                    self._replicas.log_refusal(name, number, error)
                    code = error.code
                errors.append(StopReplicaPartitionError(topic_name=name, partition_index=number, error_code=code))
        return StopReplicaResponse(partition_errors=errors)

    # --- UpdateMetadata -----------------------------------------------------------------------------------------------

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take over what a controller says of the cluster. Raises KafkaError, and takes nothing over, for what is malformed."""
        if not self._accepts(request.controller_epoch):
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self._metadata.publish(cluster_delta(request))
        return UpdateMetadataResponse()

    def close(self) -> None:
        """There is nothing to close."""


def _by_topic(states: Iterable[tuple[str, Any]], topic_state: Callable[..., _TopicState]) -> list[_TopicState]:
    """States of partitions, each with its topic's name, as the states of topics; both in the order they came in."""
    partitions: dict[str, list[Any]] = {}
    for topic, state in states:
        partitions.setdefault(topic, []).append(state)
    return [topic_state(topic_name=topic, partition_states=found) for topic, found in partitions.items()]


def _lead_and_follow(
    replicas: ReplicaManager, topic: LeaderAndIsrTopicState, *, says_known: bool
) -> LeaderAndIsrTopicError:
    name, errors = topic.topic_name, []
    settings = replicas.topic_settings(name)  # one object for all partitions
    for state in topic.partition_states:
        number, registration, code = state.partition_index, _registration(state), ErrorCode.NONE
        try:
            replicas.apply(name, topic.topic_id, number, registration, settings, may_be_known=says_known)
        except KafkaError as error:
            replicas.log_refusal(name, number, error)
            code = error.code
        errors.append(LeaderAndIsrPartitionError(partition_index=number, error_code=code))
    return LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors)


def _registration(state: LeaderAndIsrPartitionState) -> PartitionRegistration:
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


def _with_flags(request: StopReplicaRequest) -> Iterator[tuple[str, StopReplicaPartitionState]]:
    """The partitions of an early version, in which one flag says for all whether they are deleted."""
    named = [(partition.topic_name, partition.partition_index) for partition in request.ungrouped_partitions]
    named += [(topic.name, number) for topic in request.topics for number in topic.partition_indexes]
    for name, number in named:
        yield name, StopReplicaPartitionState(partition_index=number, delete_partition=request.delete_partitions)


def _epoch_of_stop(state: StopReplicaPartitionState) -> int | None:
    """The leader epoch under which a replica is stopped; None for any: early versions have none, and a deletion asks for none."""
    return None if state.leader_epoch in (EPOCH_DURING_DELETE, _NO_LEADER_EPOCH) else state.leader_epoch


def cluster_delta(request: UpdateMetadataRequest) -> ClusterDelta:
    """What a controller says of the cluster. Raises KafkaError for a security protocol that does not exist."""
    states = [(state.topic_name, state) for state in request.ungrouped_partition_states]
    topics = [
        TopicDelta(topic.topic_name, topic.topic_id, _partitions(topic.partition_states))
        for topic in request.topic_states or _by_topic(states, UpdateMetadataTopicState)
    ]
    return ClusterDelta(request.controller_id, [_broker(each) for each in request.live_brokers], topics)


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
    """A live broker. Version 0 has one address; listeners without a name, before version 3, are named by their protocols."""
    addresses = told.endpoints or [UpdateMetadataEndpoint(host=told.v0_host, port=told.v0_port)]
    endpoints = []
    for each in addresses:
        protocol = security_protocol(each.security_protocol)
        endpoints.append(AdvertisedListener(each.listener or protocol, each.host, each.port, protocol))
    return BrokerRegistration(told.id, tuple(endpoints), told.rack)


def security_protocol(number: int) -> str:
    """The name of a number; Kafka's error for one that there is not (``SecurityProtocol.forId``)."""
    name = PROTOCOL_NAMES.get(number)
    if name is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no security protocol with the number {number}")
    return name
