"""AlterPartition: ISR changes that leaders request and the controller stores (KIP-497).

``judge`` has the rules, in Kafka's order (KafkaController.tryProcessAlterPartition). A change that is in place already is a
success before the partition epochs are compared, since a leader that missed an answer asks again. The leader epoch stays.

Two rules are those of Kafka's KRaft mode, which its ZooKeeper mode lacks (ReplicationControlManager.alterPartition): only the
leader may ask, for a set of assigned replicas with itself among them; and a replica does not join because of what it had
before its broker was restarted: with v3 the leader names the broker epochs under which replicas caught up (KIP-903).

One rule is in neither: a leader that shuts down may take others in, for they are to lead after it. Kafka refuses every set
with a broker that shuts down, so a leader that is alone in sync then finds no successor, however often it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ....base.errors import ErrorCode
from ....base.partitions import NO_BROKER_EPOCH, TopicPartition
from ....metadata.types import LeaderState
from ....wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
)
from ..state.context import ControllerContext, PartitionState
from .partition_state_machine import PartitionStateMachine

_FIRST_VERSION_BY_ID = 2
_FIRST_VERSION_WITH_EPOCHS = 3
_FIRST_VERSION_WITH_INELIGIBLE = 2


class IsrChange(NamedTuple):
    """The in-sync replicas that a leader proposes for one partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    is_recovering: bool
    broker_epochs: Mapping[int, int]
    """By in-sync replica, the broker epoch with which it has fetched; -1 where the leader does not know it."""


def judge(
    asked: IsrChange, partition: PartitionState, eligible_epochs: Mapping[int, int], controller_epoch: int
) -> LeaderState | ErrorCode:
    """The state to write, which may be the present one, or why not. ``eligible_epochs``: the brokers that may be in sync."""
    state = partition.state
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if asked.partition_epoch > partition.partition_epoch or asked.leader_epoch > state.leader_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows more: there is a newer controller
    if asked.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if not _is_well_formed(asked, state, partition.assignment.replicas):
        return ErrorCode.INVALID_REQUEST
    if set(asked.isr) == set(state.isr) and asked.is_recovering == state.is_recovering:
        # Before the partition epoch is compared: the leader repeats a request whose response was lost.
        return state
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if asked.is_recovering and (len(asked.isr) > 1 or not state.is_recovering):
        return ErrorCode.INVALID_REQUEST
    if any(replica != asked.leader and not _is_eligible(replica, asked, eligible_epochs) for replica in asked.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return LeaderState(state.leader, state.leader_epoch, asked.isr, controller_epoch, asked.is_recovering)


def _is_well_formed(asked: IsrChange, state: LeaderState, replicas: Collection[int]) -> bool:
    isr = set(asked.isr)
    return asked.leader == state.leader and asked.leader in isr and len(isr) == len(asked.isr) and isr <= set(replicas)


def _is_eligible(replica: int, asked: IsrChange, eligible_epochs: Mapping[int, int]) -> bool:
    known_to_leader = asked.broker_epochs.get(replica, NO_BROKER_EPOCH)
    return replica in eligible_epochs and known_to_leader in (NO_BROKER_EPOCH, eligible_epochs[replica])


class AlterPartitions:
    """Decides on requests of leaders, several of them together. Raises StoreError."""

    def __init__(
        self,
        context: ControllerContext,
        leaders: PartitionStateMachine,
        on_change: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        """``on_change`` is told of the partitions for which other in-sync replicas were asked."""
        self._context = context
        self._leaders = leaders
        self._on_change = on_change

    async def answer(self, requests: Sequence[tuple[AlterPartitionRequest, int]]) -> list[AlterPartitionResponse]:
        """The responses to some requests with their versions, in their order; what they change is written together."""
        names = self._context.names_by_id()
        responses: list[AlterPartitionResponse] = []
        while len(responses) < len(requests):
            asked: dict[TopicPartition, IsrChange] = {}
            group = []
            for request, version in requests[len(responses) :]:
                changes = _changes(request, version, names) if self._knows(request) else {}
                if asked.keys() & changes.keys():
                    break  # it has to be decided by the state that those before it leave
                asked.update(changes)
                group.append((request, version))
            results = await self._alter(asked)
            responses += [self._response(request, version, names, results) for request, version in group]
        return responses

    async def _alter(self, asked: Mapping[TopicPartition, IsrChange]) -> dict[TopicPartition, LeaderState | ErrorCode]:
        context = self._context
        epochs = {b: broker.epoch for b, broker in context.brokers.items() if b not in context.shutting_down}
        results: dict[TopicPartition, LeaderState | ErrorCode] = {}

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            result = results[key] = judge(asked[key], partition, epochs, context.epoch)
            return result if isinstance(result, LeaderState) and result != partition.state else None

        found = [key for key in asked if context.find(key) is not None]
        await self._leaders.change(found, decide)
        self._leaders.send_update_metadata(found)
        self._on_change(found)
        return results

    def _knows(self, request: AlterPartitionRequest) -> bool:
        broker = self._context.brokers.get(request.broker_id)
        return broker is not None and broker.epoch == request.broker_epoch

    def _response(
        self,
        request: AlterPartitionRequest,
        version: int,
        names: Mapping[bytes, str],
        results: Mapping[TopicPartition, LeaderState | ErrorCode],
    ) -> AlterPartitionResponse:
        if not self._knows(request):
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        topics = []
        for topic in request.topics:
            name = _name(topic, version, names)
            answered = ResponseTopicData(topic_name=topic.topic_name, topic_id=topic.topic_id)
            for partition in topic.partitions:
                answer = ResponsePartitionData(partition_index=partition.partition_index)
                if name is None:
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
                else:
                    self._fill(answer, TopicPartition(name, partition.partition_index), version, results)
                answered.partitions.append(answer)
            topics.append(answered)
        return AlterPartitionResponse(topics=topics)

    def _fill(
        self,
        answer: ResponsePartitionData,
        key: TopicPartition,
        version: int,
        results: Mapping[TopicPartition, LeaderState | ErrorCode],
    ) -> None:
        result = results.get(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(result, LeaderState):
            answer.leader_id, answer.leader_epoch, answer.isr = result.leader, result.leader_epoch, list(result.isr)
            answer.leader_recovery_state = int(result.is_recovering)
            answer.partition_epoch = self._context.partition(key).partition_epoch
        elif result is ErrorCode.INELIGIBLE_REPLICA and version < _FIRST_VERSION_WITH_INELIGIBLE:
            answer.error_code = ErrorCode.OPERATION_NOT_ATTEMPTED
        else:
            answer.error_code = result


def _changes(
    request: AlterPartitionRequest, version: int, names: Mapping[bytes, str]
) -> dict[TopicPartition, IsrChange]:
    return {
        TopicPartition(name, partition.partition_index): _change(request.broker_id, partition, version)
        for topic in request.topics
        if (name := _name(topic, version, names)) is not None
        for partition in topic.partitions
    }


def _change(leader: int, partition: PartitionData, version: int) -> IsrChange:
    epochs: dict[int, int] = {}
    isr = tuple(partition.new_isr)
    if version >= _FIRST_VERSION_WITH_EPOCHS:
        epochs = {state.broker_id: state.broker_epoch for state in partition.new_isr_with_epochs}
        isr = tuple(state.broker_id for state in partition.new_isr_with_epochs)
    return IsrChange(
        leader,
        partition.leader_epoch,
        partition.partition_epoch,
        isr,
        partition.leader_recovery_state == 1,
        epochs,
    )


def _name(topic: TopicData, version: int, names: Mapping[bytes, str]) -> str | None:
    return names.get(topic.topic_id) if version >= _FIRST_VERSION_BY_ID else topic.topic_name
