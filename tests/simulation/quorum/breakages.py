"""Rules of the KRaft controller, and of brokers on it, each broken on purpose: the simulation must detect it.

A breakage disables one rule of the product, by replacing a function (``rules`` says which, and where).
``test_quorum_broken_rules`` has a scenario for each, and ``make simulate CLUSTER=1 QUORUM=1 BREAK=responses_before_commit`` runs
seeds with one until a checker catches it. The breakages of replication are in ``cluster/breakages``.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.partitions import NO_BROKER_EPOCH, NO_LEADER
from ottla.controller.quorum.active import broker_states
from ottla.controller.quorum.active.context import OperationContext
from ottla.controller.quorum.active.partition_changes import ElectedLeader
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.raft.effects import LeaderChanged
from ottla.wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

from . import rules

Breakage = Callable[[pytest.MonkeyPatch], None]

_OF_TRANSACTIONS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


# --- the active controller and its log --------------------------------------------------------------------------------


def responses_before_commit(patch: pytest.MonkeyPatch) -> None:
    """An operation is responded to when its records are appended."""
    run = rules.OPERATION.function

    def respond_at_once(self: Any, *arguments: Any) -> None:
        run(self, *arguments)
        claim = self._claim
        while claim is not None and claim.waiting:
            claim.waiting.popleft().respond()

    rules.OPERATION.replace(patch, respond_at_once)


def uncommitted_state_stays(patch: pytest.MonkeyPatch) -> None:
    """A controller that loses the leadership keeps what it had applied."""
    renounce = rules.RENOUNCE.function

    def keep(self: Any) -> None:
        latest = self._latest
        renounce(self)
        self._committed = self._latest = latest

    rules.RENOUNCE.replace(patch, keep)


def lost_operations_succeed(patch: pytest.MonkeyPatch) -> None:
    """Who waits for a controller that loses the leadership is told of success."""
    renounce = rules.RENOUNCE.function

    def succeed(self: Any) -> None:
        while self._claim.waiting:
            self._claim.waiting.popleft().respond()
        renounce(self)

    rules.RENOUNCE.replace(patch, succeed)


def operations_see_the_committed(patch: pytest.MonkeyPatch) -> None:
    """An operation goes by the last committed state, although others before it have changed that."""
    run = rules.OPERATION.function

    def run_on_committed(self: Any, operation: Any, *others: Any) -> None:
        run(self, lambda context: operation(OperationContext(self.committed_state, context.settings)), *others)

    rules.OPERATION.replace(patch, run_on_committed)


def claim_before_applied(patch: pytest.MonkeyPatch) -> None:
    """A controller is active when it is elected, before it has applied what its log has of earlier leaders."""

    def notify_at_once(self: Any) -> None:
        news = (self.epoch, self.leader_id)
        if news != self._notified:
            self._notified = news
            self.quorum.emit(LeaderChanged(*news))

    rules.LEADER_NOTICE.replace(patch, notify_at_once)


def transactions_stay_open(patch: pytest.MonkeyPatch) -> None:
    """A new controller does not end the metadata transaction that the one before has left."""
    activate = rules.ACTIVATION.function

    def activate_only(context: OperationContext, bootstrap: Any) -> Any:
        state = dataclasses.replace(context.state, transaction=None)
        return activate(OperationContext(state, context.settings), bootstrap)

    rules.ACTIVATION.replace(patch, activate_only)


def controllers_apply_in_part(patch: pytest.MonkeyPatch) -> None:
    """A controller applies the records of a metadata transaction as they come."""
    apply = rules.APPLIED_BATCH.function

    def apply_each(self: Any, records: Any, position: Any) -> Any:
        return apply(self, [record for record in records if not isinstance(record, _OF_TRANSACTIONS)], position)

    rules.APPLIED_BATCH.replace(patch, apply_each)


# --- brokers, as the controller knows them ----------------------------------------------------------------------------


def sessions_end_with_the_controller(patch: pytest.MonkeyPatch) -> None:
    """A new controller knows only of the brokers that it hears of (KAFKA-18138)."""

    def begin(self: Any, brokers: Any, now_ms: int, own_id: int) -> None:
        for broker_id, broker in brokers.items():
            self.register(broker_id, is_fenced=broker.is_fenced)

    rules.FIRST_SESSIONS.replace(patch, begin)


def fencing_elects_nobody(patch: pytest.MonkeyPatch) -> None:
    """A broker is fenced, and its partitions stay as they are."""

    def fence(context: OperationContext, broker_id: int) -> Any:
        return [broker_states.registration_change(context, broker_id, fenced=1)]

    rules.FENCE.replace(patch, fence)


def brokers_expire_together(patch: pytest.MonkeyPatch) -> None:
    """Brokers whose sessions are over at once are fenced by one operation, each as if the others went on (KAFKA-13173)."""
    fence_one = rules.STALE_BROKER.function

    def fence_all(context: OperationContext, heartbeats: Any, now_ms: int) -> ControllerResult[bool]:
        records: list[Any] = []
        has_more = True
        while has_more:
            result = fence_one(context, heartbeats, now_ms)
            records += result.records
            has_more = result.response
        return ControllerResult(records, response=False, is_atomic=False)

    rules.STALE_BROKER.replace(patch, fence_all)


def unfenced_at_once(patch: pytest.MonkeyPatch) -> None:
    """A broker counts as caught up, whatever it has applied of the metadata log."""
    process = rules.HEARTBEAT.function

    def process_as_caught_up(context: OperationContext, request: Any, heartbeats: Any) -> Any:
        request = copy.copy(request)
        registered = context.state.registration_offsets.get(request.broker_id, -1)
        request.current_metadata_offset = max(request.current_metadata_offset, registered)
        return process(context, request, heartbeats)

    rules.HEARTBEAT.replace(patch, process_as_caught_up)


def let_go_before_others_know(patch: pytest.MonkeyPatch) -> None:
    """A broker that leads nothing any more may stop, whether the others have heard of that or not."""
    rules.LOWEST_OFFSET.replace(patch, lambda self: None)


def a_new_life_stays_in_sync(patch: pytest.MonkeyPatch) -> None:
    """A broker may register again while its former life counts as alive, and keeps its partitions then."""
    rules.IDENTITY.replace(patch, lambda *arguments: None)
    rules.PREVIOUS_LIFE.replace(patch, lambda context, broker_id, was_clean: [])


def eligible_after_an_unclean_stop(patch: pytest.MonkeyPatch) -> None:
    """A broker that registers again counts as one that was stopped cleanly (KIP-966)."""
    end_previous_life = rules.PREVIOUS_LIFE.function
    rules.PREVIOUS_LIFE.replace(
        patch, lambda context, broker_id, was_clean: end_previous_life(context, broker_id, was_clean=True)
    )


# --- partitions, as the controller decides on them --------------------------------------------------------------------


def members_of_an_earlier_life(patch: pytest.MonkeyPatch) -> None:
    """A replica joins the in-sync replicas, although its broker has registered again since it caught up (KAFKA-14617)."""
    is_eligible = rules.MEMBER.function

    def of_any_life(context: OperationContext, member: Any) -> bool:
        member = copy.copy(member)
        member.broker_epoch = NO_BROKER_EPOCH
        return bool(is_eligible(context, member))

    rules.MEMBER.replace(patch, of_any_life)


def fenced_members(patch: pytest.MonkeyPatch) -> None:
    """A broker that is fenced or shuts down may join the in-sync replicas (KAFKA-13916)."""

    def is_known(context: OperationContext, member: Any) -> bool:
        broker = context.broker(member.broker_id)
        return broker is not None and member.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)

    rules.MEMBER.replace(patch, is_known)


def stale_proposals(patch: pytest.MonkeyPatch) -> None:
    """A leader's proposal counts whatever has become of the partition since (KAFKA-14154)."""
    why_not = rules.PROPOSAL.function

    def of_any_epoch(context: OperationContext, broker_id: int, topic: Any, data: Any, members: Any) -> Any:
        partition = topic.partitions.get(data.partition_index)
        if partition is not None:
            data = copy.copy(data)
            data.partition_epoch = max(data.partition_epoch, partition.partition_epoch)
            data.leader_epoch = max(data.leader_epoch, partition.leader_epoch)
        return why_not(context, broker_id, topic, data, members)

    rules.PROPOSAL.replace(patch, of_any_epoch)


def eligible_for_ever(patch: pytest.MonkeyPatch) -> None:
    """An eligible leader replica stays one while the in-sync replicas commit more without it (KIP-966)."""

    def eligible(partition: Any, isr: Any, unclean_shutdown: Any, rules: Any) -> Any:
        if not rules.has_elr:
            return partition.elr
        return tuple(sorted({*partition.elr, *partition.isr} - set(isr) - set(unclean_shutdown)))

    rules.ELIGIBLE.replace(patch, eligible)


def the_last_leader_is_good_enough(patch: pytest.MonkeyPatch) -> None:
    """The last known leader is elected although eligible replicas may come back (KIP-966)."""
    elect = rules.ELECTION.function

    def elect_last(partition: Any, replicas: Any, isr: Any, elr: Any, goal: Any, rules: Any) -> ElectedLeader:
        elected: ElectedLeader = elect(partition, replicas, isr, elr, goal, rules)
        last = partition.last_known_elr
        if elected.leader == NO_LEADER and rules.has_elr and not isr and last and rules.may_lead(last[0]):
            return ElectedLeader(last[0], is_unclean=True)
        return elected

    rules.ELECTION.replace(patch, elect_last)


# --- brokers ----------------------------------------------------------------------------------------------------------


def metadata_beyond_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """A broker applies the records of the metadata log when it has them, committed or not."""
    commit = rules.COMMIT.function

    def commit_all(self: Any, offset: int) -> None:
        commit(self, offset if self.identity.may_vote else self.log.end_offset)

    rules.COMMIT.replace(patch, commit_all)


def brokers_apply_in_part(patch: pytest.MonkeyPatch) -> None:
    """A broker applies the records of a metadata transaction as they come."""

    def take(self: Any, record: Any) -> None:
        if not isinstance(record, _OF_TRANSACTIONS):
            self._replay.replay(record)

    rules.TAKEN_RECORD.replace(patch, take)


def shrunk_when_asked(patch: pytest.MonkeyPatch) -> None:
    """A leader commits without the replicas that it asks to have removed from the in-sync ones."""
    rules.MEMBERS_UNTIL_SHRUNK.replace(patch, property(lambda self: self.proposed))


def expanded_when_answered(patch: pytest.MonkeyPatch) -> None:
    """A leader commits without the replica that it asks to have added, although that may be in sync already."""
    rules.MEMBERS_PROPOSED.replace(patch, rules.MEMBERS_UNTIL_EXPANDED.function)
    rules.MEMBERS_UNTIL_EXPANDED.replace(patch, property(lambda self: self.isr))


BREAKAGES: dict[str, Breakage] = {
    breakage.__name__: breakage
    for breakage in (
        responses_before_commit,
        uncommitted_state_stays,
        lost_operations_succeed,
        operations_see_the_committed,
        claim_before_applied,
        transactions_stay_open,
        controllers_apply_in_part,
        sessions_end_with_the_controller,
        fencing_elects_nobody,
        brokers_expire_together,
        unfenced_at_once,
        let_go_before_others_know,
        a_new_life_stays_in_sync,
        eligible_after_an_unclean_stop,
        members_of_an_earlier_life,
        fenced_members,
        stale_proposals,
        eligible_for_ever,
        the_last_leader_is_good_enough,
        metadata_beyond_the_watermark,
        brokers_apply_in_part,
        shrunk_when_asked,
        expanded_when_answered,
    )
}
