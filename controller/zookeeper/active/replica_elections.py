"""Preferred and unclean leader elections, requested by an administrator or started by a timer.

The rules are those of KafkaController (processReplicaLeaderElection, checkAndTriggerAutoLeaderRebalance), KIP-460.
"""

from __future__ import annotations

import functools
import logging
from collections import defaultdict
from collections.abc import Iterable

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import NO_LEADER, TopicPartition
from ....base.wording import counted
from ....metadata.rules.election import ElectionType, elect_preferred
from ....metadata.types import LeaderState
from ..state.context import ControllerContext, PartitionState
from .leadership import elected_state
from .partition_state_machine import PartitionStateMachine

logger = logging.getLogger(__name__)


_NOT_AVAILABLE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


class ReplicaElections:
    """For the controller's term; both methods raise StoreError."""

    def __init__(self, context: ControllerContext, leaders: PartitionStateMachine) -> None:
        self._context = context
        self._leaders = leaders

    async def elect(
        self, kind: ElectionType, keys: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """The outcome by partition, None where another replica leads now; ``keys`` None means all partitions there are."""
        asked = [key for key, _ in self._context.partitions()] if keys is None else list(keys)
        results: dict[TopicPartition, KafkaError | None] = {key: self._refusal(kind, key) for key in asked}
        electable = [key for key, refusal in results.items() if refusal is None]
        changed = await self._leaders.change(electable, functools.partial(_elect, self._context, kind))
        self._leaders.tell(changed)
        for key in electable:
            if key not in changed or self._is_needed(kind, key):
                results[key] = KafkaError(_NOT_AVAILABLE[kind], f"No leader could be elected for {key}.")
        return results

    def _refusal(self, kind: ElectionType, key: TopicPartition) -> KafkaError | None:
        if key.topic in self._context.deleting:
            return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
        if self._context.find(key) is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        return None if self._is_needed(kind, key) else KafkaError(ErrorCode.ELECTION_NOT_NEEDED)

    def _is_needed(self, kind: ElectionType, key: TopicPartition) -> bool:
        context, partition = self._context, self._context.partition(key)
        leader = NO_LEADER if partition.state is None else partition.state.leader
        if kind is ElectionType.PREFERRED:
            return leader != partition.assignment.replicas[0]
        return leader not in context.brokers or leader in context.shutting_down

    async def balance(self, percentage: int) -> None:
        """Let preferred replicas lead again, for brokers where others lead more than ``percentage`` of what they should lead.

        Not while replicas are being moved, as in Kafka: the end of a move elects leaders, too.
        """
        if any(partition.assignment.is_moving for _, partition in self._context.undeleted_partitions()):
            return
        changed = await self._leaders.change(
            self._imbalanced(percentage), functools.partial(_elect, self._context, ElectionType.PREFERRED)
        )
        if changed:
            logger.info("%s led by the preferred replica again", counted(len(changed), "partition"))
            self._leaders.tell(changed)

    def _imbalanced(self, percentage: int) -> list[TopicPartition]:
        """Partitions not led by their preferred replica, of those brokers for which they are more than ``percentage`` of all."""
        preferred: dict[int, int] = defaultdict(int)
        elsewhere: dict[int, list[TopicPartition]] = defaultdict(list)
        for key, partition in self._context.undeleted_partitions():
            broker_id = partition.assignment.replicas[0]
            preferred[broker_id] += 1
            if partition.state is not None and partition.state.leader != broker_id:
                elsewhere[broker_id].append(key)
        return [
            key
            for broker_id, keys in elsewhere.items()
            if len(keys) * 100 > percentage * preferred[broker_id]
            for key in keys
        ]


def _elect(
    context: ControllerContext, kind: ElectionType, key: TopicPartition, partition: PartitionState
) -> LeaderState | None:
    state, eligible = partition.state, context.eligible(key)
    if kind is ElectionType.UNCLEAN or state is None:
        return elected_state(partition, eligible, eligible, context.epoch, unclean_allowed=kind is ElectionType.UNCLEAN)
    elected = elect_preferred(partition.assignment.replicas, state.isr, eligible)
    if elected is None or elected.leader == state.leader:
        return None
    return state._replace(leader=elected.leader, leader_epoch=state.leader_epoch + 1, controller_epoch=context.epoch)
