"""Batches of controller decisions for one broker: at most one request of each kind, in Kafka's order (pure functions).

Decisions that wait for the same broker are merged, so that no more than each partition's newest state waits for a broker that
does not answer. Within a batch LeaderAndIsr goes before StopReplica, so a LeaderAndIsr that makes a replica again must not be
merged into a batch that stops it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

import trio

from ....base.partitions import TopicPartition
from ....wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ....wire.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from ....wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)


@dataclasses.dataclass(slots=True)
class ControllerBrokerRequestBatch:
    """Requests to one broker. Each is taken out once its response is there."""

    leader_and_isr: LeaderAndIsrRequest | None = None
    update_metadata: UpdateMetadataRequest | None = None
    stop_replica: StopReplicaRequest | None = None
    done: trio.Event = dataclasses.field(default_factory=trio.Event)
    """Set after the last response, or when the broker is gone."""
    queued_at: float = 0.0
    """When the first of them began to wait, by trio's clock."""

    @property
    def size(self) -> int:
        """How many requests there are."""
        requests = self.leader_and_isr, self.update_metadata, self.stop_replica
        return sum(request is not None for request in requests)

    def take(self, newer: ControllerBrokerRequestBatch) -> bool:
        """Merge a later batch into this one; False if that would put its requests into the wrong order."""
        if partitions_of(self.stop_replica) & partitions_of(newer.leader_and_isr):
            return False
        self.leader_and_isr = _merged_leader_and_isr(self.leader_and_isr, newer.leader_and_isr)
        self.update_metadata = _merged_update_metadata(self.update_metadata, newer.update_metadata)
        self.stop_replica = _merged_stop_replica(self.stop_replica, newer.stop_replica)
        return True


def batches(
    leader_and_isr: Mapping[int, LeaderAndIsrRequest],
    update_metadata: Mapping[int, UpdateMetadataRequest],
    stop_replica: Mapping[int, StopReplicaRequest],
) -> dict[int, ControllerBrokerRequestBatch]:
    """Requests by broker as one batch each."""
    return {
        broker_id: ControllerBrokerRequestBatch(
            leader_and_isr.get(broker_id), update_metadata.get(broker_id), stop_replica.get(broker_id)
        )
        for broker_id in {**leader_and_isr, **update_metadata, **stop_replica}
    }


def partitions_of(request: LeaderAndIsrRequest | StopReplicaRequest | None) -> set[TopicPartition]:
    if request is None:
        return set()
    return {
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
    }


def _merged_leader_and_isr(
    older: LeaderAndIsrRequest | None, newer: LeaderAndIsrRequest | None
) -> LeaderAndIsrRequest | None:
    """A partition that is new in ``older`` is new in the result, because the broker has not heard of ``older``."""
    if older is None or newer is None:
        return newer or older
    topics: dict[tuple[str, bytes], dict[int, LeaderAndIsrPartitionState]] = {}
    for request in (older, newer):
        for topic in request.topic_states:
            states = topics.setdefault((topic.topic_name, topic.topic_id), {})
            for state in topic.partition_states:
                before = states.get(state.partition_index)
                states[state.partition_index] = state
                if before is not None and before.is_new:
                    merged_state = states[state.partition_index] = copy.copy(state)
                    merged_state.is_new = True
    leaders = {leader.broker_id: leader for request in (older, newer) for leader in request.live_leaders}
    merged = copy.copy(newer)
    merged.live_leaders = list(leaders.values())
    merged.topic_states = [
        LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id, partition_states=list(states.values()))
        for (name, topic_id), states in topics.items()
    ]
    return merged


def _merged_update_metadata(
    older: UpdateMetadataRequest | None, newer: UpdateMetadataRequest | None
) -> UpdateMetadataRequest | None:
    """A topic that was deleted and made again is in it twice, by its ids, and in this order."""
    if older is None or newer is None:
        return newer or older
    topics: dict[tuple[str, bytes], dict[int, UpdateMetadataPartitionState]] = {}
    for request in (older, newer):
        for topic in request.topic_states:
            states = topics.setdefault((topic.topic_name, topic.topic_id), {})
            states.update((state.partition_index, state) for state in topic.partition_states)
    merged = copy.copy(newer)
    merged.topic_states = [
        UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=list(states.values()))
        for (name, topic_id), states in topics.items()
    ]
    return merged


def _merged_stop_replica(
    older: StopReplicaRequest | None, newer: StopReplicaRequest | None
) -> StopReplicaRequest | None:
    if older is None or newer is None:
        return newer or older
    topics: dict[str, dict[int, StopReplicaPartitionState]] = {}
    for request in (older, newer):
        for topic in request.topic_states:
            states = topics.setdefault(topic.topic_name, {})
            for state in topic.partition_states:
                before = states.get(state.partition_index)
                states[state.partition_index] = state
                if before is not None and before.delete_partition:
                    merged_state = states[state.partition_index] = copy.copy(state)
                    merged_state.delete_partition = True
    merged = copy.copy(newer)
    merged.topic_states = [
        StopReplicaTopicState(topic_name=name, partition_states=list(states.values()))
        for name, states in topics.items()
    ]
    return merged
