"""Rules of consumer groups (KIP-848), each broken on purpose: the simulation must detect it.

A breakage disables one rule of the product by replacing a function. ``test_group_simulation`` runs seeds with each until one
detects it, and so does ``make simulate GROUP=1 BREAK=takes_owned_partitions SEEDS=300``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import (
    classic_members,
    consumer_commits,
    consumer_group_records,
    consumer_membership,
    current_assignment,
    expression_refreshes,
    heartbeat_request,
    target_assignments,
    upgrade,
)
from ottla.group_coordinator.consumer_group import ConsumerGroup
from ottla.group_coordinator.consumer_group_member import AssignedPartitions, ConsumerGroupMember
from ottla.group_coordinator.target_assignments import TargetAssignments
from ottla.group_coordinator.topics import TopicSizes
from ottla.replication.coordinator_shards import CoordinatorShards

GroupBreakage = Callable[[pytest.MonkeyPatch], None]


def _nothing(*arguments: object, **fields: object) -> None:
    pass


async def _at_once(*arguments: object) -> None:
    pass


# --- the step of a member ---------------------------------------------------------------------------------------------


def takes_owned_partitions(patch: pytest.MonkeyPatch) -> None:
    """A partition with an owner is given to another member."""
    patch.setattr(current_assignment, "_free", lambda member, topic_id, partitions, _: list(partitions))


def pending_partitions_are_free(patch: pytest.MonkeyPatch) -> None:
    """A partition that a client has yet to give up has no owner."""
    patch.setattr(ConsumerGroupMember, "held", lambda self: iter(self.assigned))


def revocation_is_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """A partition counts as given up without the client's word."""
    patch.setattr(current_assignment, "_still_has", lambda *_: False)


def no_list_means_nothing(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat without a list of partitions means that all are given up."""
    ask = current_assignment._still_has
    patch.setattr(
        current_assignment, "_still_has", lambda owned, partitions: owned is not None and ask(owned, partitions)
    )


def kept_partitions_get_new_epochs(patch: pytest.MonkeyPatch) -> None:
    """A partition that a member keeps has the epoch of its last step."""
    moved = ConsumerGroupMember.moved

    def at_new_epoch(self: ConsumerGroupMember, epoch: int, state: Any, assigned: Any, *pending: Any) -> Any:
        return moved(self, epoch, state, assigned.at_epoch(epoch), *pending)

    patch.setattr(ConsumerGroupMember, "moved", at_new_epoch)


def unread_topics_stay(patch: pytest.MonkeyPatch) -> None:
    """A member takes partitions of an old target, of topics that it does not read any more."""
    reconciled = current_assignment.reconciled

    def with_all(
        member: Any, epoch: int, target: Mapping[bytes, Any], subscribed: Any, *others: Any, **fields: Any
    ) -> Any:
        return reconciled(member, epoch, target, subscribed | target.keys(), *others, **fields)

    patch.setattr(consumer_membership, "reconciled", with_all)


def no_limit_for_revocation(patch: pytest.MonkeyPatch) -> None:
    """A member may give its partitions up whenever it likes."""
    patch.setattr(consumer_membership, "limit_revocation", _nothing)


# --- who is a member --------------------------------------------------------------------------------------------------


def leave_keeps_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """The group's epoch is not raised when a member leaves."""
    raise_epoch = consumer_membership.raise_epoch

    def unless_it_leaves(group: ConsumerGroup, change: Any, metadata_hash: int) -> None:
        raise_epoch(group, change, metadata_hash)
        if change.removed and not change.subscriptions:
            change.epoch = group.epoch, metadata_hash

    patch.setattr(consumer_membership, "raise_epoch", unless_it_leaves)


def previous_epoch_with_any_partitions(patch: pytest.MonkeyPatch) -> None:
    """A client at its previous epoch may have more than its member."""
    patch.setattr(consumer_membership, "_is_part_of", lambda *_: True)


def previous_epoch_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """A client that has missed a response is fenced, although it has done nothing wrong."""
    patch.setattr(consumer_membership, "_is_part_of", lambda *_: False)


def unknown_members_come_in(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat of a member that the group does not have makes it one."""
    dynamic_member = consumer_membership._dynamic_member

    def anybody(group: ConsumerGroup, report: Any, member_epoch: int) -> ConsumerGroupMember:
        is_known = report.member_id in group.members.newest()
        return dynamic_member(group, report, member_epoch if is_known else heartbeat_request.JOIN_EPOCH)

    patch.setattr(consumer_membership, "_dynamic_member", anybody)


def epoch_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A client with another epoch than its member goes on."""
    patch.setattr(consumer_membership, "_check_epoch", _nothing)


def takeover_leaves_the_old_member(patch: pytest.MonkeyPatch) -> None:
    """The records of a static member stay when another process takes over from it."""
    take_over = consumer_membership.take_over

    def without_removal(group: Any, holder: Any, member_id: str, change: Any) -> ConsumerGroupMember:
        member = take_over(group, holder, member_id, change)
        change.removed.clear()
        return member

    patch.setattr(consumer_membership, "take_over", without_removal)


def removal_keeps_the_assignment(patch: pytest.MonkeyPatch) -> None:
    """The record of a member's assignment stays when the member goes."""
    removal = consumer_group_records._removal
    patch.setattr(consumer_group_records, "_removal", lambda *names: removal(*names)[1:])


def removal_keeps_the_target(patch: pytest.MonkeyPatch) -> None:
    """The record of a member's part of the target stays when the member goes."""
    removal = consumer_group_records._removal

    def without_target(*names: str) -> list[Any]:
        current, _, subscription = removal(*names)
        return [current, subscription]

    patch.setattr(consumer_group_records, "_removal", without_target)


# --- members with the classic protocol --------------------------------------------------------------------------------


def classic_members_have_nothing(patch: pytest.MonkeyPatch) -> None:
    """The partitions that a classic member still has, as its subscription says, are not looked at."""
    patch.setattr(classic_members, "partitions_by_id", lambda *_: {})


def upgrade_forgets_the_assignments(patch: pytest.MonkeyPatch) -> None:
    """The partitions that the leader of a classic group has assigned are free after the upgrade."""
    patch.setattr(upgrade, "_assigned", lambda *_: {})


# --- time -------------------------------------------------------------------------------------------------------------


def no_sessions_after_a_load(patch: pytest.MonkeyPatch) -> None:
    """The sessions of a group's members do not begin again when it is loaded."""
    patch.setattr(consumer_membership, "resume", _nothing)


def heartbeats_renew_no_session(patch: pytest.MonkeyPatch) -> None:
    """A session ends a while after the member has joined, whatever is heard of it."""
    restart = consumer_membership.restart_session

    def only_once(shard: Any, member: Any, group_id: str, now: Any) -> None:
        if ("session", group_id, member.member_id) not in shard.timers:
            restart(shard, member, group_id, now)

    patch.setattr(consumer_membership, "restart_session", only_once)


def targets_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    """The time between two targets is not kept."""
    patch.setattr(consumer_membership, "is_due", lambda shard, group, epoch, now: group.target.epoch < epoch)


# --- targets ----------------------------------------------------------------------------------------------------------


def large_target_is_valid_at_once(patch: pytest.MonkeyPatch) -> None:
    """The epoch of a large target is written before the parts of its members."""
    batches = target_assignments._batches

    def epoch_first(*arguments: Any) -> Iterator[Any]:
        *parts, epoch = batches(*arguments)
        return iter([epoch, *parts])

    patch.setattr(target_assignments, "_batches", epoch_first)


def large_target_of_an_older_epoch(patch: pytest.MonkeyPatch) -> None:
    """A large target is written to its end, although the group has another epoch since it was begun."""
    served = TargetAssignments._served
    begun: dict[int, Any] = {}

    def as_it_was(self: TargetAssignments, shard: Any, group_id: str, rules: Any) -> ConsumerGroup | None:
        group: ConsumerGroup | None = served(self, shard, group_id, rules)
        known = begun.get(id(shard))
        if known is None or group is None or known.target.epoch != group.target.epoch:
            begun[id(shard)] = known = group
        return known

    patch.setattr(TargetAssignments, "_served", as_it_was)


def heartbeats_do_not_wait_for_the_target(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat is handled while a large target of its group is being made."""
    patch.setattr(TargetAssignments, "wait_written", _at_once)


def lost_responses_are_not_repeated(patch: pytest.MonkeyPatch) -> None:
    """A client that says all gets its assignment only if that has just changed."""
    patch.setattr(heartbeat_request.MemberReport, "is_full", property(lambda self: False))


# --- topics -----------------------------------------------------------------------------------------------------------


def changes_of_topics_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A group whose topics were looked at once is not compared with them again."""
    update = TopicSizes.update

    def unnoticed(self: TopicSizes, *arguments: Any) -> None:
        before = self.version
        update(self, *arguments)
        self.version = before or self.version

    patch.setattr(TopicSizes, "update", unnoticed)


def new_topics_match_no_expression(patch: pytest.MonkeyPatch) -> None:
    """The topics of an expression that is known are not looked up when a topic is made."""
    due = expression_refreshes.is_refresh_due

    def only_at_first(group: Any, expressions: Any, now_ms: int, version: int, interval_ms: int) -> bool:
        return due(group, expressions, now_ms, -1, interval_ms)

    patch.setattr(expression_refreshes, "is_refresh_due", only_at_first)


def expression_keeps_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """The group's epoch is not raised when an expression stands for other topics."""
    resolved_change = expression_refreshes.resolved_change

    def without_epoch(*arguments: Any) -> Any:
        change = resolved_change(*arguments)
        change.epoch = None
        return change

    patch.setattr(expression_refreshes, "resolved_change", without_epoch)


# --- the log ----------------------------------------------------------------------------------------------------------


def responses_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """A response is sent before the records that it depends on are committed."""
    patch.setattr(CoordinatorShards, "committed", _at_once)


def a_moved_shard_writes_on(patch: pytest.MonkeyPatch) -> None:
    """A shard that has moved away while a large target was made goes on, also where its broker leads the partition again."""
    patch.setattr(TargetAssignments, "_served", lambda self, shard, group_id, rules: rules.find_group(shard, group_id))


def replay_loses_assignment_epochs(patch: pytest.MonkeyPatch) -> None:
    """The epochs of a member's partitions are not read from its record."""
    from_record = AssignedPartitions.from_record.__func__  # type: ignore[attr-defined]

    def without_epochs(cls: Any, topics: Any, member_epoch: int) -> AssignedPartitions:
        return from_record(cls, topics, member_epoch).at_epoch(max(member_epoch, 0))  # type: ignore[no-any-return]

    patch.setattr(AssignedPartitions, "from_record", classmethod(without_epochs))


def old_epochs_commit_anything(patch: pytest.MonkeyPatch) -> None:
    """A commit with an old epoch is accepted for every partition."""
    patch.setattr(consumer_commits, "_judge_by_epoch", lambda *_: consumer_commits.accept_all)


def old_epochs_commit_nothing(patch: pytest.MonkeyPatch) -> None:
    """A commit with an old epoch is refused, although the member has had the partition since then (KIP-1251)."""

    def of_present_epoch(member: ConsumerGroupMember, epoch: int, refusal: ErrorCode) -> Any:
        if epoch != member.epoch:
            raise KafkaError(refusal)
        return consumer_commits.accept_all

    patch.setattr(consumer_commits, "_judge_by_epoch", of_present_epoch)


BREAKAGES: dict[str, GroupBreakage] = {
    name: value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not name.startswith("_")
}
"""By name."""
