"""Rules of replication, the controller and coordinators, each broken on purpose: the simulation must detect it.

A breakage disables one rule of the product, by replacing a function (``rules`` says which, and where).
``test_broken_rules`` has a scenario for each, and ``make simulate CLUSTER=1 BREAK=no_epoch_truncation SEEDS=500`` runs seeds
with one until a checker catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from ottla.base.partitions import NO_BROKER_EPOCH
from ottla.controller.zookeeper.active import leadership
from ottla.controller.zookeeper.active.controller_term import ControllerTerm
from ottla.controller.zookeeper.active.known_brokers import KnownBrokers
from ottla.controller.zookeeper.active.topic_deletions import TopicDeletionManager
from ottla.controller.zookeeper.state import partition_states
from ottla.controller.zookeeper.state.context import PartitionState
from ottla.controller.zookeeper.state.loading import load_brokers
from ottla.metadata.types import LeaderState
from ottla.replication import follower
from ottla.replication.fetch_watches import FetchWatches
from ottla.replication.isr import CommittedPartitionState, PendingExpand
from ottla.replication.leader import FollowerProgress, LeaderRole
from ottla.wire.records import RecordBatch

from . import rules

Breakage = Callable[[pytest.MonkeyPatch], None]

_ANY_EPOCH = 1 << 31


def watermark_past_the_isr(patch: pytest.MonkeyPatch) -> None:
    """The leader treats all its records as committed, whatever its followers have."""
    rules.COMMITTED_END.replace(patch, lambda self, own_end, log_end, clock: own_end)


def no_epoch_truncation(patch: pytest.MonkeyPatch) -> None:
    """A follower does not send the last epoch of its log, so no leader can tell it what to truncate."""

    def position_of(partition: Any) -> follower.Position:
        return follower.position_of(partition)._replace(last_fetched_epoch=-1)

    rules.FETCH_POSITION.replace(patch, position_of)


def join_below_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """A follower joins the in-sync replicas by its first fetch."""

    def expansion(self: LeaderRole, joining: Any, high_watermark: int) -> PendingExpand | None:
        state = self.isr
        if isinstance(state, CommittedPartitionState) and joining.broker_id not in state.isr:
            return PendingExpand(state.isr, joining.broker_id, joining.broker_epoch)
        return None

    rules.EXPANSION.replace(patch, expansion)


def no_broker_epoch_check(patch: pytest.MonkeyPatch) -> None:
    """Requests for, or from, an earlier life of a broker are accepted."""
    find = rules.FOLLOWER_OF_EPOCH.function

    def follower(self: LeaderRole, broker_id: int, broker_epoch: int, current_leader_epoch: int) -> FollowerProgress:
        return find(self, broker_id, NO_BROKER_EPOCH, current_leader_epoch)

    rules.REQUESTS_OF_BROKER_EPOCH.replace(patch, lambda requests, broker_epoch: None)
    rules.FOLLOWER_OF_EPOCH.replace(patch, follower)
    rules.KNOWN_LEADER.replace(patch, lambda self, request: request.broker_id in self._context.brokers)
    rules.EPOCH_TO_JOIN.replace(patch, lambda change, replica: NO_BROKER_EPOCH)


def unfenced_controller_write(patch: pytest.MonkeyPatch) -> None:
    """A controller writes without checking that it is still the controller."""

    async def multi(store: Any, context: Any, operations: Any) -> Any:
        results: list[Any] = []
        for transaction in partition_states.transactions(operations):
            results += await store.multi(transaction)
        return results

    rules.FENCED_WRITE.replace(patch, multi)


def append_beyond_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """A follower accepts batches of a leader epoch that it does not know (KAFKA-18723)."""
    judged = rules.APPENDED_EPOCHS.function

    def any_epoch(records: Any, fetch_epoch: int) -> list[RecordBatch]:
        return judged(records, _ANY_EPOCH)

    rules.APPENDED_EPOCHS.replace(patch, any_epoch)


def deletion_forgets_the_dead(patch: pytest.MonkeyPatch) -> None:
    """A topic counts as deleted when all live brokers have deleted it."""
    replicas_of = rules.REPLICAS_TO_DELETE.function

    def alive(self: TopicDeletionManager, name: str) -> set[Any]:
        return {replica for replica in replicas_of(self, name) if replica[0] in self._context.brokers}

    rules.REPLICAS_TO_DELETE.replace(patch, alive)


def bounced_leader_goes_on(patch: pytest.MonkeyPatch) -> None:
    """A broker that has registered again is treated as if it had not been away."""
    failed = rules.FAILED_BROKERS.function

    async def brokers_failed(self: ControllerTerm, gone: Collection[int]) -> None:
        registered = await load_brokers(self._store)
        await failed(self, [broker_id for broker_id in gone if broker_id not in registered])

    def failed_over_state(state: Any, alive: Any, stayed: Any, controller_epoch: int) -> Any:
        gone = {replica for replica in (*state.isr, state.leader) if replica not in alive}
        return leadership.state_without(state, gone, controller_epoch)

    rules.FAILED_BROKERS.replace(patch, brokers_failed)
    rules.FAILED_OVER_STATE.replace(patch, failed_over_state)


def move_without_waiting(patch: pytest.MonkeyPatch) -> None:
    """A move is completed even if the added replicas have not caught up."""

    def finished_state(partition: Any, eligible: Any, controller_epoch: int) -> Any:
        state, target = partition.state, partition.assignment.target
        if state is None:
            return None
        return LeaderState(target[0], state.leader_epoch + 1, target, controller_epoch)

    rules.FINISHED_MOVE.replace(patch, finished_state)


def removed_replicas_stay(patch: pytest.MonkeyPatch) -> None:
    """A broker is not told to delete a replica that was moved elsewhere."""
    tell = rules.TOLD_OF_MOVE.function
    rules.TOLD_OF_MOVE.replace(patch, lambda self, keys, removed: tell(self, keys, {}))
    rules.REMOVED_REPLICAS.replace(patch, lambda self, delta, image: None)


def a_write_hides_a_bounce(patch: pytest.MonkeyPatch) -> None:
    """A new controller only looks at when a partition's state was written, not at what the previous one had seen by then."""

    def stayed(self: KnownBrokers, partition: PartitionState) -> set[int]:
        brokers = self._context.brokers
        return {b for b, broker in brokers.items() if broker.epoch < partition.modified_zxid}

    rules.STAYED_BROKERS.replace(patch, stayed)


def news_forgets_a_partition(patch: pytest.MonkeyPatch) -> None:
    """A follower's session is told of what is appended only while a fetch of it waits."""
    tell = rules.TOLD_OF_APPENDS.function

    def notify_followers(self: FetchWatches, appended: int) -> None:
        if any(fetch.is_waiting for fetch in self.followers):
            tell(self, appended)

    rules.TOLD_OF_APPENDS.replace(patch, notify_followers)


def coordinators_believe_themselves(patch: pytest.MonkeyPatch) -> None:
    """A coordinator believes its own state once it is committed, even if there is another coordinator by now."""

    async def be_certain(
        self: Any, shard: Any, transactional_id: str, flush: Any, timeout_ms: int | None = None
    ) -> None:
        await self._shards.committed(shard, shard.depends_on(transactional_id), flush, timeout_ms)

    rules.CERTAIN_COORDINATOR.replace(patch, be_certain)


BREAKAGES: dict[str, Breakage] = {
    breakage.__name__: breakage
    for breakage in (
        watermark_past_the_isr,
        no_epoch_truncation,
        join_below_the_watermark,
        no_broker_epoch_check,
        unfenced_controller_write,
        append_beyond_the_epoch,
        deletion_forgets_the_dead,
        bounced_leader_goes_on,
        move_without_waiting,
        removed_replicas_stay,
        a_write_hides_a_bounce,
        news_forgets_a_partition,
        coordinators_believe_themselves,
    )
}
