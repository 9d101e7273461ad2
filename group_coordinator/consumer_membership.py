"""Heartbeats of consumer groups (KIP-848): how a member joins, stays, moves towards its target assignment and leaves.

A heartbeat is worked through in three parts, and nothing changes before its records are written:

1. ``begin_heartbeat`` finds the member, takes over what the client says of itself, and raises the group's epoch if topics of
   the group have changed by that.
2. If the target assignment is of an older epoch and the last one is old enough, the next one is made (``target_assignment``).
3. ``complete_heartbeat`` moves the member a step towards its target (``current_assignment``), writes, and responds.

Where the target takes long to make, the records of part 1 are written first, and part 3 goes on with the group as it is then.

A leave, the end of a session and of the time for giving partitions up are all ``remove_members``. The rules and their order are
those of Kafka's GroupMetadataManager (``consumerGroupHeartbeat``, ``consumerGroupLeave``).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime
from ..wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from .assignors.assignor import MemberPartitions, Steps, finished
from .classic_group import ClassicGroup
from .consumer_group import ConsumerGroup
from .consumer_group_member import LEFT_STATIC_EPOCH, AssignedPartitions, ConsumerGroupMember, MemberState
from .consumer_group_records import ConsumerGroupChange
from .consumer_group_writes import write_change
from .consumer_timers import cancel_timers, limit_revocation, restart_session
from .current_assignment import OwnedPartitions, reconciled
from .downgrade import downgrade, is_downgrade_due
from .expression_refresh import expression_update
from .heartbeat_request import JOIN_EPOCH, MemberReport
from .records import CoordinatorRecord, group_tombstone
from .shard import GroupCoordinatorShard
from .target_assignment import TargetInput, changed_parts
from .timeline import EventKind
from .timers import TimerName
from .upgrade import complete_upgrade, upgrade_records

logger = logging.getLogger(__name__)

T = TypeVar("T")

_WORK_OF_A_RECORD = 20
"""In subscriptions or partitions that an assignor looks at."""


@dataclasses.dataclass(slots=True)
class Heartbeat:
    """A heartbeat, or a JoinGroup of a member with the classic protocol, on its way."""

    report: MemberReport
    group: ConsumerGroup
    before: ConsumerGroupMember
    """The member as it was known, with its new id where it takes over."""
    updated: ConsumerGroupMember
    """With what the client says of itself."""
    change: ConsumerGroupChange
    first_records: list[CoordinatorRecord] = dataclasses.field(default_factory=list)
    """Those that end a classic group of this id."""
    replaced: str | None = None
    """Id of the static member that the member takes over from."""
    has_subscription_changed: bool = False
    has_new_expression: bool = False
    """Whether its regular expression is one that nobody has had, which has to be checked first."""
    checked_topics: int | None = None
    """The version of the topics with which the group's metadata hash was compared, where it was."""
    is_written: bool = False
    """Whether the records of the first part are written, so that the rest goes by the group as it is then."""
    target_ms: float | None = None
    """How long the target assignment in its change took to make."""

    @property
    def group_id(self) -> str:
        return self.report.group_id

    @property
    def group_epoch(self) -> int:
        """The epoch of the group after this heartbeat."""
        return self.group.epoch if self.change.epoch is None else self.change.epoch[0]


# --- the member -------------------------------------------------------------------------------------------------------


def begin_heartbeat(
    shard: GroupCoordinatorShard, report: MemberReport, member_epoch: int, now: CoordinatorTime
) -> Heartbeat:
    """Find the member and take over what it says. Raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, and why it is
    fenced: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
    """
    first_records: list[CoordinatorRecord] = []
    group = _group_to_join(shard, report, member_epoch, first_records)
    check_size(shard, group, report.member_id)
    change = ConsumerGroupChange(report.group_id)
    if report.instance_id is None:
        before, replaced = _dynamic_member(group, report, member_epoch), None
    else:
        before, replaced = _static_member(group, report, member_epoch, change)
    heartbeat = Heartbeat(report, group, before, with_report(before, report), change, first_records, replaced)
    take_over_report(shard, heartbeat)
    return heartbeat


def check_size(shard: GroupCoordinatorShard, group: ConsumerGroup, member_id: str) -> None:
    """KafkaError GROUP_MAX_SIZE_REACHED where there is no place for a new member."""
    most = shard.context.settings.max_size
    if group.member_count >= most and member_id not in group.members.newest():
        why = f"The consumer group has reached its maximum capacity of {most} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)


def _group_to_join(
    shard: GroupCoordinatorShard, report: MemberReport, member_epoch: int, first_records: list[CoordinatorRecord]
) -> ConsumerGroup:
    """The group of a heartbeat. One that joins makes it, of a classic group if there is one: its members stay."""
    group_id = report.group_id
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if member_epoch != JOIN_EPOCH and group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if member_epoch == JOIN_EPOCH and (group is None or isinstance(group, ClassicGroup)):
        if group is not None:
            first_records += [group_tombstone(group_id)] if group.is_empty else upgrade_records(shard, group)
        made = ConsumerGroup(group_id)
        for record in first_records:
            made = made.with_record(record.key, record.value)
        return made
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _dynamic_member(group: ConsumerGroup, report: MemberReport, member_epoch: int) -> ConsumerGroupMember:
    member = group.members.newest().get(report.member_id)
    if member is None:
        if member_epoch != JOIN_EPOCH:
            raise unknown_member(group, report.member_id)
        return ConsumerGroupMember(report.member_id)
    _check_epoch(member, member_epoch, report.owned)
    return member


def _static_member(
    group: ConsumerGroup, report: MemberReport, member_epoch: int, change: ConsumerGroupChange
) -> tuple[ConsumerGroupMember, str | None]:
    """The member, and the id of the one that it takes over from."""
    instance_id, member_id = report.instance_id, report.member_id
    assert instance_id is not None
    holder = group.member_of_instance(instance_id)
    if member_epoch != JOIN_EPOCH:
        member = static_holder(group, instance_id, member_id)
        _check_epoch(member, member_epoch, report.owned)
        return member, None
    if holder is None:
        return group.members.newest().get(member_id) or ConsumerGroupMember(member_id), None
    if holder.classic is None and holder.epoch != LEFT_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is owned "
            f"by {holder.member_id} member.",
        )
    return take_over(group, holder, member_id, change), holder.member_id


def take_over(
    group: ConsumerGroup, holder: ConsumerGroupMember, member_id: str, change: ConsumerGroupChange
) -> ConsumerGroupMember:
    """A static member has come back with a new id: it has all that the old one had, and the group stays as it is."""
    member = holder.taken_over_by(member_id)
    change.removed.append(holder.member_id)
    change.subscriptions.append(member)
    change.targets[member_id] = group.target.of(holder.member_id)
    change.assignments.append(member)
    return member


def static_holder(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """The static member of an instance id. KafkaError UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where it has another id."""
    holder = group.member_of_instance(instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        why = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, why)
    return holder


def unknown_member(group: ConsumerGroup, member_id: str) -> KafkaError:
    """The refusal of a member that the group does not have."""
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")


def _check_epoch(member: ConsumerGroupMember, epoch: int, owned: OwnedPartitions | None) -> None:
    """KafkaError FENCED_MEMBER_EPOCH unless the client is where the member is, or has missed the last response."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    # A client that did not get the response with its new epoch has got nothing of the new assignment: it has no more than before.
    if epoch < member.epoch and epoch == member.previous_epoch and _is_part_of(owned, member.assigned):
        return
    size = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_part_of(owned: OwnedPartitions | None, assigned: AssignedPartitions) -> bool:
    return owned is not None and all(numbers <= assigned.of(topic_id).keys() for topic_id, numbers in owned.items())


# --- its subscription -------------------------------------------------------------------------------------------------


def with_report(member: ConsumerGroupMember, report: MemberReport) -> ConsumerGroupMember:
    """The member with what a request says of it; the same object if that is nothing new."""
    known = member.has_subscription, member.client_id, member.client_host, member.classic
    if report.says_nothing and known == (True, report.client.client_id, report.client.host, report.classic):
        return member

    def said(new: T | None, known: T) -> T:
        return known if new is None else new

    return dataclasses.replace(
        member,
        has_subscription=True,
        instance_id=said(report.instance_id, member.instance_id),
        rack_id=said(report.rack_id, member.rack_id),
        client_id=report.client.client_id,
        client_host=report.client.host,
        topic_names=said(report.topic_names, member.topic_names),
        expression=said(report.expression, member.expression),
        rebalance_timeout_ms=said(report.rebalance_timeout_ms, member.rebalance_timeout_ms),
        server_assignor=said(report.server_assignor, member.server_assignor),
        classic=report.classic,
    )


def take_over_report(shard: GroupCoordinatorShard, heartbeat: Heartbeat) -> None:
    """Note what is new of the member, and raise the group's epoch if that changes which topics are assigned."""
    group, before, updated, change = heartbeat.group, heartbeat.before, heartbeat.updated, heartbeat.change
    if updated is not before and updated != before:
        change.subscriptions.append(updated)
    # A heartbeat with nothing new has the very same names, of which there may be many.
    have_names_changed = updated.topic_names is not before.topic_names and updated.topic_names != before.topic_names
    expression = expression_update(group, before.expression, updated.expression)
    if expression.removed is not None:
        change.expressions[expression.removed] = None
    heartbeat.has_new_expression = expression.is_new
    heartbeat.has_subscription_changed = have_names_changed or before.expression != updated.expression
    topics = shard.context.topics
    is_raised = have_names_changed or expression.bumps_epoch
    if not is_raised and shard.checked_topics.get(group.group_id) == topics.version:
        return
    known = group.members.newest()
    old = known.get(heartbeat.replaced or updated.member_id)
    metadata_hash = topics.hash_of(topics_after(group, [] if old is None else [old], [updated]))
    heartbeat.checked_topics = topics.version
    if is_raised or metadata_hash != group.metadata_hash:
        raise_epoch(group, change, metadata_hash)


def topics_after(
    group: ConsumerGroup, gone: Collection[ConsumerGroupMember], come: Collection[ConsumerGroupMember]
) -> set[str]:
    """The topics that the members read once some have gone and others have come, or are as they are now."""
    topics = _after(group.topic_subscribers.newest(), (member.topic_names for member in gone))
    expressions = _after(group.expression_subscribers.newest(), ((member.expression,) for member in gone))
    for member in come:
        topics |= member.topic_names
        expressions.add(member.expression)
    resolved = group.expressions.newest()
    return topics.union(*(resolved[expression].topics for expression in expressions if expression in resolved))


def _after(counts: Mapping[str, int], gone: Iterable[Iterable[str]]) -> set[str]:
    """Those that are left of counted names once some have gone."""
    lost = Counter(itertools.chain.from_iterable(gone))
    return counts.keys() - {name for name, count in lost.items() if counts.get(name, 0) <= count}


def raise_epoch(group: ConsumerGroup, change: ConsumerGroupChange, metadata_hash: int) -> None:
    """The next target assignment is another one: the group gets the next epoch."""
    change.epoch = group.epoch + 1, metadata_hash
    change.drops_partition_metadata = group.has_partition_metadata
    logger.debug("Group %s: epoch %d", group.group_id, group.epoch + 1)


# --- the target -------------------------------------------------------------------------------------------------------


def is_target_due(shard: GroupCoordinatorShard, heartbeat: Heartbeat, now: CoordinatorTime) -> bool:
    """Whether the target assignment is of an older epoch than the group, and the last one was made long enough ago."""
    return is_due(shard, heartbeat.group, heartbeat.group_epoch, now)


def is_due(shard: GroupCoordinatorShard, group: ConsumerGroup, epoch: int, now: CoordinatorTime) -> bool:
    """Whether a group at ``epoch`` is to have a new target assignment now."""
    return group.target.is_due(epoch, shard.context.times(group.group_id).assignment_interval_ms, now.wall_ms)


def target_size(shard: GroupCoordinatorShard, heartbeat: Heartbeat) -> int:
    """A measure of the work that a new target is: members, each with a record, and the subscriptions and partitions of all."""
    topics = shard.context.topics
    read = topics_after(heartbeat.group, (), (heartbeat.updated,))
    partitions = sum(size.partition_count for name in read if (size := topics.find(name)) is not None)
    return (heartbeat.group.member_count + 1) * (_WORK_OF_A_RECORD + len(read)) + partitions


def make_target(shard: GroupCoordinatorShard, heartbeat: Heartbeat, now: CoordinatorTime) -> None:
    """Add the next target assignment to the change of a heartbeat."""
    change = heartbeat.change
    source = TargetInput(
        heartbeat.group, shard.context.topics, shard.context.settings.assignors, heartbeat.updated, heartbeat.replaced
    )
    target = finished(source.target())
    change.targets |= finished(changed_parts(source.before, target))
    change.target_epoch = heartbeat.group_epoch, now.wall_ms


# --- the step towards it ----------------------------------------------------------------------------------------------


def write_first_part(shard: GroupCoordinatorShard, heartbeat: Heartbeat, now: CoordinatorTime) -> None:
    """Write what is known before the target is made. Raises KafkaError."""
    _write(shard, heartbeat, now)
    restart_session(shard, heartbeat.updated, heartbeat.report.group_id, now)
    heartbeat.is_written = True


def complete_heartbeat(
    shard: GroupCoordinatorShard, heartbeat: Heartbeat, member_epoch: int, now: CoordinatorTime
) -> ConsumerGroupHeartbeatResponse:
    """Take the member's step, write everything, and respond. Raises KafkaError."""
    report, before = heartbeat.report, heartbeat.before
    moved = take_step(shard, heartbeat, now)
    response = ConsumerGroupHeartbeatResponse(
        member_id=moved.member_id,
        member_epoch=moved.epoch,
        heartbeat_interval_ms=shard.context.times(report.group_id).heartbeat_interval_ms,
    )
    if member_epoch == JOIN_EPOCH or report.is_full or moved.assigned != before.assigned:
        response.assignment = _assignment(moved)
    return response


def take_step(shard: GroupCoordinatorShard, heartbeat: Heartbeat, now: CoordinatorTime) -> ConsumerGroupMember:
    """Take the member's step, and write everything. Returns the member as it is now. Raises KafkaError."""
    report = heartbeat.report
    if heartbeat.is_written:
        go_on(shard, heartbeat)
    moved = step(shard, heartbeat)
    if moved is not heartbeat.updated:
        heartbeat.change.assignments.append(moved)
    _write(shard, heartbeat, now)
    restart_session(shard, moved, report.group_id, now)
    if moved is not heartbeat.updated:
        limit_revocation(shard, moved, report.group_id, now)
    return moved


def go_on(shard: GroupCoordinatorShard, heartbeat: Heartbeat) -> None:
    """Take up a heartbeat whose first part is written. KafkaError UNKNOWN_MEMBER_ID when the member has been removed since."""
    report = heartbeat.report
    group = shard.consumer_group(report.group_id)
    member = None if group is None else group.members.newest().get(report.member_id)
    if group is None or member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {report.member_id} is no longer in the group.")
    heartbeat.group, heartbeat.updated, heartbeat.replaced = group, member, None
    heartbeat.first_records, heartbeat.change = [], ConsumerGroupChange(report.group_id)


def step(shard: GroupCoordinatorShard, heartbeat: Heartbeat) -> ConsumerGroupMember:
    """The member after its step; the same object if it stays. Raises KafkaError FENCED_MEMBER_EPOCH."""
    group, change, updated = heartbeat.group, heartbeat.change, heartbeat.updated
    target_epoch = group.target.epoch if change.target_epoch is None else change.target_epoch[0]
    if not heartbeat.has_subscription_changed and updated.is_settled_at(target_epoch):
        return updated
    target = change.targets.get(updated.member_id)
    return reconciled(
        updated,
        target_epoch,
        group.target.of(updated.member_id) if target is None else target,
        shard.context.topics.ids_of(group.topics_of(updated)),
        group.owner_epoch,
        heartbeat.report.owned,
        has_subscription_changed=heartbeat.has_subscription_changed,
    )


def _write(shard: GroupCoordinatorShard, heartbeat: Heartbeat, now: CoordinatorTime) -> None:
    """Write the change of a heartbeat, and then do all that follows from it. KafkaError, and nothing has changed."""
    group_id = heartbeat.report.group_id
    classic_group = shard.classic_group(group_id)
    write_change(shard, heartbeat.change, now, first_records=heartbeat.first_records, target_ms=heartbeat.target_ms)
    if classic_group is not None:
        complete_upgrade(shard, classic_group, now)
    if heartbeat.replaced is not None:
        cancel_timers(shard, group_id, heartbeat.replaced)
    # The group's metadata hash is that of the topics as they are: only a change of them is looked at again.
    if heartbeat.checked_topics is not None:
        shard.checked_topics[group_id] = heartbeat.checked_topics


def _assignment(member: ConsumerGroupMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.epochs.items()
        ]
    )


# --- leaving ----------------------------------------------------------------------------------------------------------


def leave(
    shard: GroupCoordinatorShard, request: ConsumerGroupHeartbeatRequest, now: CoordinatorTime
) -> ConsumerGroupHeartbeatResponse:
    """The member leaves; a static one with epoch -2 is expected back. Raises KafkaError."""
    group_id, member_id = request.group_id, request.member_id
    group = shard.consumer_group(group_id)
    if group is None:
        what = "Consumer group {} not found." if group_id not in shard.groups else "Group {} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what.format(group_id))
    response = ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        member = group.members.newest().get(member_id)
        if member is None:
            raise unknown_member(group, member_id)
    else:
        member = static_holder(group, request.instance_id, member_id)
    if request.instance_id is not None and request.member_epoch == LEFT_STATIC_EPOCH:
        write_change(shard, ConsumerGroupChange(group_id, assignments=[member.left_static()]), now)
        shard.timeline.note(
            group_id, group.epoch, EventKind.LEFT, now, member, "a static member, which is expected back"
        )
    else:
        remove_members(shard, group, [member], now)
    return response


def remove_members(
    shard: GroupCoordinatorShard,
    group: ConsumerGroup,
    members: Collection[ConsumerGroupMember],
    now: CoordinatorTime,
    why: tuple[EventKind, str] = (EventKind.LEFT, ""),
) -> None:
    """Remove members, so that the others get their partitions. ``why`` is for people. Raises KafkaError.

    Where they all have the classic protocol, the group becomes a classic one.
    """
    if is_downgrade_due(shard, group, members):
        downgrade(shard, group, members, why, now)
        return
    change = ConsumerGroupChange(group.group_id, removed=[member.member_id for member in members])
    users: dict[str, int] = {}
    for member in members:
        users[member.expression] = users.get(member.expression, 0) + 1
    subscribers = group.expression_subscribers.newest()
    change.expressions = {each: None for each, count in users.items() if each and subscribers.get(each) == count}
    raise_epoch(group, change, shard.context.topics.hash_of(topics_after(group, members, ())))
    write_change(shard, change, now, removal=why)
    for member in members:
        cancel_timers(shard, group.group_id, member.member_id)


# --- the end of a session ---------------------------------------------------------------------------------------------


def resume(shard: GroupCoordinatorShard, group: ConsumerGroup, now: CoordinatorTime) -> None:
    """The group has been loaded: nobody is late because this broker was away."""
    for member in group.members.newest().values():
        restart_session(shard, member, group.group_id, now)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            limit_revocation(shard, member, group.group_id, now)


_RETRY_MS = 500
"""Before a removal that could not be written is tried again, as in Kafka (CoordinatorTimerImpl)."""
_REASONS: Mapping[str, tuple[EventKind, str]] = {
    "session": (EventKind.SESSION_ENDED, "it sent no heartbeat within its session timeout"),
    "revocation": (EventKind.NOT_REVOKED, "it did not give up its partitions within its rebalance timeout"),
    "member-join": (EventKind.NOT_REJOINED, "it did not join again within its rebalance timeout"),
    "member-sync": (EventKind.NOT_SYNCED, "it did not ask for its assignment within its rebalance timeout"),
}


def expire(shard: GroupCoordinatorShard, group: ConsumerGroup, name: TimerName, now: CoordinatorTime) -> None:
    """A timer of a member is due: the member is removed."""
    kind, group_id, member_id = name
    member = group.members.newest().get(member_id)
    if member is None:
        return
    # A static member that has left keeps its place until its session ends, whatever it had to give up.
    if kind == "revocation" and member.epoch == LEFT_STATIC_EPOCH:
        return
    if kind in ("member-join", "member-sync") and member.classic is None:
        return
    logger.info("Group %s: member %s is removed: %s", group_id, member_id, _REASONS[kind][1])
    try:
        remove_members(shard, group, [member], now, _REASONS[kind])
    except KafkaError as error:
        logger.warning("Group %s: could not remove member %s: %s", group_id, member_id, error)
        shard.timers.set(name, now.monotonic_ms + _RETRY_MS)


def target_steps(
    shard: GroupCoordinatorShard, group: ConsumerGroup
) -> Steps[dict[str, Mapping[bytes, frozenset[int]]]]:
    """The parts of the next target assignment that are new, for the members as they are."""
    source = TargetInput(group, shard.context.topics, shard.context.settings.assignors)
    target = yield from source.target()
    return (yield from changed_parts(source.before, target))


def find_group(shard: GroupCoordinatorShard, group_id: str) -> ConsumerGroup | None:
    """The consumer group of this id."""
    return shard.consumer_group(group_id)


def write_target(
    shard: GroupCoordinatorShard,
    group_id: str,
    parts: Mapping[str, MemberPartitions],
    epoch: tuple[int, int] | None,
    now: CoordinatorTime,
    target_ms: float,
) -> None:
    """Write parts of a target by member id, or its epoch and wall time in ms, which makes them valid. Raises KafkaError."""
    change = ConsumerGroupChange(group_id, targets=dict(parts), target_epoch=epoch)
    write_change(shard, change, now, target_ms=target_ms)
