"""Partition reassignments by the controller: moves of replicas between brokers (KIP-455).

A move is stored in the topic's node: the replicas wanted, after them those to be removed, and which are being added and
removed. So the next controller can go on with it. Its steps (KafkaController ``onPartitionReassignment``):

1. The topic's node is written, the leader epoch raised, and all replicas are told; those added begin to fetch.
2. When every replica wanted is in sync, as the leader asks for by AlterPartition, one of them leads (the present leader if
   that is one of them), and no other is in sync any more.
3. The replicas left and every broker are told; those removed are to delete their logs.
4. The topic's node has the replicas wanted, and no others.

When a controller dies between two steps, the next one sees by the in-sync replicas whether step 2 is to be done, and repeats
the steps after it. A request that cancels or replaces a move removes at once the replicas that are not wanted any more. Kafka
raises the leader epoch once for each replica that leaves the in-sync ones, Ottla once for all of them.

Another difference from Kafka: a move never removes the last in-sync replica. When all that were in sync are gone but one that
was to be added, Kafka's ZooKeeper mode lets the move be cancelled, and the records are lost; its KRaft mode refuses, in the
words used here (ReplicationControlManager ``cancelPartitionReassignment``).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import NO_LEADER, TopicPartition
from ....metadata.rules.election import isr_without
from ....metadata.types import LeaderState, ReplicaAssignment, TopicAssignment
from ..nodes import znodes
from ..state.context import ControllerContext, PartitionState
from ..state.loading import load_assignments
from ..state.partition_states import fenced_multi
from ..store.cluster_store import BadVersionError, ClusterStore, ConnectionLossError, NoNodeError, Set, Stat
from .partition_state_machine import PartitionStateMachine

logger = logging.getLogger(__name__)


# --- the rules --------------------------------------------------------------------------------------------------------


def check_target(
    assignment: ReplicaAssignment, target: Sequence[int], live: Collection[int], *, factor_may_change: bool
) -> None:
    """Refuse invalid replicas. Raises KafkaError with the codes and words of KafkaController ``validateReplicas``.

    Since Kafka 4.1 a client can ask that the number of replicas stays (KIP-860).
    """
    if not target:
        raise _invalid("Empty replica list specified in partition reassignment.")
    if len(set(target)) < len(target):
        raise _invalid(f"Duplicate replica ids in partition reassignment replica list: {list(target)}")
    if min(target) < 0:
        raise _invalid(f"Invalid broker id in replica list: {list(target)}")
    added = list(assignment.moved_to(target).adding)
    if not set(added) <= set(live):
        raise _invalid(
            f"Replica assignment has brokers that are not alive. Replica list: {added}, live broker list: {sorted(live)}"
        )
    before = len(assignment.target)
    if before and len(target) != before and not factor_may_change:
        why = f"The replication factor is changed from {before} to {len(target)}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, why)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def finished_state(partition: PartitionState, eligible: Collection[int], controller_epoch: int) -> LeaderState | None:
    """Led by a replica that is wanted, with only wanted ones in sync; None while that is not possible.

    All that are wanted have to be in sync, and one of them able to lead; if no move is under way neither is required.
    """
    state, target = partition.state, partition.assignment.target
    if state is None:
        return None
    if partition.assignment.is_moving and not set(target) <= set(state.isr):
        return None
    isr = isr_without(state.isr, set(state.isr).difference(target))
    leader = _leader_among(isr, target, state.leader, eligible)
    if partition.assignment.is_moving and leader == NO_LEADER:
        return None
    return state._replace(
        leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr, controller_epoch=controller_epoch
    )


def begun_state(partition: PartitionState, eligible: Collection[int], controller_epoch: int) -> LeaderState | None:
    """Under a new leader epoch, so that replicas take note; brokers without a replica now neither lead nor are in sync."""
    state, replicas = partition.state, partition.assignment.replicas
    if state is None:
        return None
    isr = isr_without(state.isr, set(state.isr).difference(replicas))
    leader = state.leader
    if leader not in (NO_LEADER, *replicas):
        leader = _leader_among(isr, replicas, leader, eligible)
    return state._replace(
        leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr, controller_epoch=controller_epoch
    )


def _leader_among(isr: Collection[int], replicas: Sequence[int], leader: int, eligible: Collection[int]) -> int:
    """The leader if it can go on, else the first replica that can lead; NO_LEADER if there is none."""
    if leader in isr and leader in eligible:
        return leader
    return next((replica for replica in replicas if replica in isr and replica in eligible), NO_LEADER)


# --- the moves --------------------------------------------------------------------------------------------------------


class Reassignments:
    """Moves replicas for the controller; its methods are called one at a time. Async methods raise StoreError."""

    def __init__(self, store: ClusterStore, context: ControllerContext, leaders: PartitionStateMachine) -> None:
        self._store = store
        self._context = context
        self._leaders = leaders
        self._ready: set[TopicPartition] = set()

    def under_way(self) -> list[tuple[TopicPartition, ReplicaAssignment]]:
        """The partitions whose replicas are being moved."""
        return [(key, found.assignment) for key, found in self._context.partitions() if found.assignment.is_moving]

    @property
    def is_any_ready(self) -> bool:
        """Whether ``finish`` has something to do."""
        return bool(self._ready)

    def note_in_sync(self, keys: Iterable[TopicPartition]) -> None:
        """Other replicas are in sync in these partitions, so their moves may be able to end."""
        self._ready.update(key for key in keys if self._context.partition(key).assignment.is_moving)

    async def finish(self) -> None:
        """End those moves that ``note_in_sync`` was told of and that can end."""
        ready, self._ready = self._ready, set()
        found = {key: partition for key in ready if (partition := self._context.find(key)) is not None}
        await self._advance([key for key, partition in found.items() if self._finished(key, partition) is not None])

    async def resume(self, started: Collection[int] | None = None) -> None:
        """Go on with all moves that there are, or those to brokers that were ``started``."""
        context = self._context
        moving = [
            (key, partition.assignment)
            for key, partition in context.undeleted_partitions()
            if partition.assignment.is_moving
        ]
        await self._advance(
            [key for key, moved in moving if started is None or not set(moved.target).isdisjoint(started)]
        )

    async def alter(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin moves to the replicas wanted, None to cancel one: the outcome by partition, None where it has begun."""
        results: dict[TopicPartition, KafkaError | None] = {}
        begun: dict[TopicPartition, ReplicaAssignment] = {}
        for key, target in wanted.items():
            try:
                planned = self._plan(key, target, factor_may_change=factor_may_change)
            except KafkaError as error:
                results[key] = error
                continue
            results[key] = None
            if planned != self._context.partition(key).assignment:
                begun[key] = planned
        for topic, numbers in self._context.by_topic(begun).items():
            keys = [TopicPartition(topic, number) for number in numbers]
            if not await self._begin(topic, {key: begun[key] for key in keys}):
                results.update((key, _unknown()) for key in keys)
        return results

    def _plan(self, key: TopicPartition, target: Sequence[int] | None, *, factor_may_change: bool) -> ReplicaAssignment:
        context = self._context
        partition = None if key.topic in context.deleting_later else context.find(key)
        assignment = ReplicaAssignment(()) if partition is None else partition.assignment
        if target is not None:
            live = context.brokers.keys() - context.shutting_down
            check_target(assignment, target, live, factor_may_change=factor_may_change)
        elif not assignment.is_moving:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        if partition is None:
            raise _unknown()
        planned = assignment.moved_to(assignment.origin if target is None else target)
        if partition.state is not None and set(planned.replicas).isdisjoint(partition.state.isr):
            raise _invalid(
                f"Unable to revert partition assignment for {key.topic}:{key.partition} because it would require an unclean "
                "leader election."
            )
        return planned

    async def _begin(self, topic: str, planned: Mapping[TopicPartition, ReplicaAssignment]) -> bool:
        """Step 1 for partitions of one topic; False if it does not exist any more."""
        context = self._context
        before = {key: context.partition(key).assignment for key in planned}
        if not await self._write(topic, {key.partition: assignment for key, assignment in planned.items()}):
            return False
        for key, assignment in planned.items():
            logger.info("%s: replicas %s, were %s", key, _named(assignment), _named(before[key]))
        unwanted = {
            key: [replica for replica in before[key].replicas if replica not in assignment.replicas]
            for key, assignment in planned.items()
        }
        await self._advance(list(planned), {key: replicas for key, replicas in unwanted.items() if replicas})
        return True

    async def _advance(
        self, keys: Collection[TopicPartition], unwanted: Mapping[TopicPartition, Sequence[int]] | None = None
    ) -> None:
        """Steps 2 to 4 where they can be done, else the rest of step 1. ``unwanted``: replicas that are none already."""
        if not keys:
            return
        context = self._context
        over: dict[TopicPartition, bool] = {key: not context.partition(key).assignment.is_moving for key in keys}

        def decide(key: TopicPartition, partition: PartitionState) -> LeaderState | None:
            finished = self._finished(key, partition)
            if partition.state is not None:
                over[key] = finished is not None
            return finished or begun_state(partition, context.eligible(key), context.epoch)

        await self._leaders.change(keys, decide)
        removed = {key: list(replicas) for key, replicas in (unwanted or {}).items()}
        written: dict[str, dict[int, ReplicaAssignment]] = {}
        for key in keys:
            partition = context.partition(key)
            if over[key] and partition.assignment.is_moving:
                removed.setdefault(key, []).extend(partition.assignment.removing)
                partition.assignment = ReplicaAssignment(partition.assignment.target)
                written.setdefault(key.topic, {})[key.partition] = partition.assignment
                logger.info("%s: has been moved to %s", key, _named(partition.assignment))
        self._leaders.send_reassignment(keys, removed)
        for topic, assignments in written.items():
            await self._write(topic, assignments)

    def _finished(self, key: TopicPartition, partition: PartitionState) -> LeaderState | None:
        return finished_state(partition, self._context.eligible(key), self._context.epoch)

    async def _write(self, name: str, changed: Mapping[int, ReplicaAssignment]) -> bool:
        """Store where replicas are, in a topic's node and the context; False if that topic does not exist any more.

        Partitions that another writer has added meanwhile stay, and are found by the watch.
        """
        topic = self._context.topics[name]
        partitions = {**topic.assignment().partitions, **changed}
        while True:
            data = znodes.encode_topic(TopicAssignment(topic.topic_id, dict(sorted(partitions.items()))))
            try:
                (result,) = await fenced_multi(
                    self._store, self._context, [Set(znodes.topic_path(name), data, topic.version)]
                )
            except NoNodeError:
                return False
            except (BadVersionError, ConnectionLossError):
                stored = (await load_assignments(self._store, [name])).get(name)
                if stored is None or stored.topic_id != topic.topic_id:
                    return False
                topic.version = stored.version
                partitions = {**stored.assignment().partitions, **partitions}
                continue
            assert isinstance(result, Stat)
            topic.version = result.version
            for number, assignment in changed.items():
                topic.partitions[number].assignment = assignment
            return True


def _unknown() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


def _named(assignment: ReplicaAssignment) -> str:
    text = ", ".join(map(str, assignment.replicas))
    if assignment.adding:
        text += f" (adding {', '.join(map(str, assignment.adding))})"
    if assignment.removing:
        text += f" (removing {', '.join(map(str, assignment.removing))})"
    return text
