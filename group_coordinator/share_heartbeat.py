"""Heartbeats of share groups (KIP-932): how a member joins, stays, learns its partitions and leaves.

A heartbeat is worked through in three parts, as that of a consumer group is (``consumer_membership``): ``begin_heartbeat``, the
target assignment where it is due, ``complete_heartbeat``. Nothing changes before its records are written. A member gives nothing
up, so the last part takes it to the newest target at once.

A member's topics may have partitions of which the share coordinator keeps no state yet (``share_states``). The heartbeat notes
them as initializing, and whoever sent it asks the share coordinator. Once it has begun, the next heartbeat raises the group's
epoch.

The rules and their order are those of Kafka's GroupMetadataManager (``shareGroupHeartbeat``, ``shareGroupLeave``).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime
from ..wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from .assignors.assignor import MemberPartitions, Steps, finished
from .client import Client
from .consumer_timers import session_timer
from .heartbeat_request import JOIN_EPOCH, LEAVE_EPOCH
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember
from .share_group_records import ShareGroupChange
from .share_group_writes import write_share_change
from .share_state_partitions import NamedPartitions
from .share_states import has_unassigned, uninitialized
from .share_target import ShareTargetInput
from .target_assignment import changed_parts
from .timeline import EventKind
from .timers import TimerName

logger = logging.getLogger(__name__)

_RETRY_MS = 500
"""Before a removal that could not be written is tried again, as in Kafka (CoordinatorTimerImpl)."""


@dataclasses.dataclass(slots=True)
class ShareHeartbeat:
    """A heartbeat on its way."""

    request: ShareGroupHeartbeatRequest
    group: ShareGroup
    before: ShareGroupMember
    """The member as it was known."""
    updated: ShareGroupMember
    """With what the client says of itself."""
    change: ShareGroupChange
    has_other_epoch: bool = False
    """Whether this heartbeat raises the group's epoch."""
    checked_topics: int | None = None
    """The version of the topics with which the group's metadata hash was compared, where it was."""
    is_written: bool = False
    """Whether the records of the first part are written, so that the rest goes by the group as it is then."""
    target_ms: float | None = None
    """How long the target assignment in its change took to make."""
    to_initialize: Mapping[bytes, NamedPartitions] = dataclasses.field(default_factory=dict)
    """Partitions that the share coordinator is to be asked for once the heartbeat is written."""

    @property
    def group_id(self) -> str:
        return self.group.group_id

    @property
    def group_epoch(self) -> int:
        """The epoch of the group after this heartbeat."""
        return self.group.epoch if self.change.epoch is None else self.change.epoch[0]


# --- the member -------------------------------------------------------------------------------------------------------


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """KafkaError INVALID_REQUEST. The order is that of Kafka's ``throwIfShareGroupHeartbeatRequestIsInvalid``."""
    _refuse_if(request.member_id == "", "MemberId can't be empty.")
    _refuse_if(request.group_id == "", "GroupId can't be empty.")
    _refuse_if(request.rack_id == "", "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _refuse_if(not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request.")
    _refuse_if(request.member_epoch < LEAVE_EPOCH, "MemberEpoch is invalid.")


def _refuse_if(is_wrong: bool, why: str) -> None:
    if is_wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)


def begin_heartbeat(
    shard: GroupCoordinatorShard, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareHeartbeat:
    """Find the member and take over what it says. Raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, and why it is
    fenced: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    """
    group = _group_of(shard, request.group_id, may_join=request.member_epoch == JOIN_EPOCH)
    member_id = request.member_id
    most = shard.context.share_settings.max_size
    before = group.members.newest().get(member_id)
    if group.member_count >= most and before is None:
        why = f"The share group has reached its maximum capacity of {most} members."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)
    if before is None:
        if request.member_epoch != JOIN_EPOCH:
            raise _unknown_member(group, member_id)
        before = ShareGroupMember(member_id)
    _check_epoch(before, request.member_epoch)
    heartbeat = ShareHeartbeat(
        request, group, before, _with_report(before, request, client), ShareGroupChange(group.group_id)
    )
    _take_over_report(shard, heartbeat)
    return heartbeat


def _group_of(shard: GroupCoordinatorShard, group_id: str, *, may_join: bool) -> ShareGroup:
    """A share group. A member that joins makes it where there is no group of this id."""
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if may_join:
        return ShareGroup(group_id)
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")


def _unknown_member(group: ShareGroup, member_id: str) -> KafkaError:
    why = f"Member {member_id} is not a member of group {group.group_id}."
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)


def _check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """The epoch before is one whose response may have been lost. KafkaError FENCED_MEMBER_EPOCH."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch > member.epoch or epoch != member.previous_epoch:
        size = "greater" if epoch > member.epoch else "smaller"
        other = "" if epoch > member.epoch else f", and it does not match the previous one ({member.previous_epoch})"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
            f"({member.epoch}){other}. The member must abandon all its partitions and rejoin.",
        )


def _with_report(member: ShareGroupMember, request: ShareGroupHeartbeatRequest, client: Client) -> ShareGroupMember:
    """The member with what a request says of it; the same object if that is nothing new."""
    names = request.subscribed_topic_names
    is_known = (member.has_subscription, member.client_id, member.client_host) == (True, client.client_id, client.host)
    if is_known and names is None and request.rack_id is None:
        return member
    return dataclasses.replace(
        member,
        has_subscription=True,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        topic_names=member.topic_names if names is None else frozenset(names),
    )


def _take_over_report(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat) -> None:
    """Note what is new of the member, and raise the group's epoch if that changes which partitions are assigned."""
    group, before, updated, change = heartbeat.group, heartbeat.before, heartbeat.updated, heartbeat.change
    if updated is not before and updated != before:
        change.subscriptions.append(updated)
    is_raised = updated.topic_names is not before.topic_names and updated.topic_names != before.topic_names
    if not is_raised and group.target.epoch >= group.epoch:
        is_raised = has_unassigned(shard, group)
    topics = shard.context.topics
    if not is_raised and shard.checked_topics.get(group.group_id) == topics.version:
        return
    metadata_hash = topics.hash_of(topics_after(group, before, updated))
    heartbeat.checked_topics = topics.version
    if is_raised or metadata_hash != group.metadata_hash:
        heartbeat.has_other_epoch = True
        change.epoch = group.epoch + 1, metadata_hash


def topics_after(group: ShareGroup, before: ShareGroupMember | None, after: ShareGroupMember | None) -> set[str]:
    """The topics that the members read once one of them is as it is ``after``; None for one that is not there."""
    counts = group.topic_subscribers.newest()
    topics = set(counts)
    if before is not None:
        topics -= {name for name in before.topic_names if counts.get(name) == 1}
    return topics if after is None else topics | after.topic_names


# --- the target -------------------------------------------------------------------------------------------------------


def is_target_due(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat, now: CoordinatorTime) -> bool:
    """Whether the target assignment is of an older epoch than the group, and the last one was made long enough ago."""
    return is_due(shard, heartbeat.group, heartbeat.group_epoch, now)


def is_due(shard: GroupCoordinatorShard, group: ShareGroup, epoch: int, now: CoordinatorTime) -> bool:
    """Whether a group at ``epoch`` is to have a new target assignment now."""
    return group.target.is_due(epoch, shard.context.share_times(group.group_id).assignment_interval_ms, now.wall_ms)


def target_size(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat) -> int:
    """A measure of the work that a new target is: members, and the subscriptions and partitions of all."""
    topics = shard.context.topics
    read = topics_after(heartbeat.group, None, heartbeat.updated)
    partitions = sum(size.partition_count for name in read if (size := topics.find(name)) is not None)
    return (heartbeat.group.member_count + 1) * (1 + len(read)) + partitions


def make_target(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat, now: CoordinatorTime) -> None:
    """Add the next target assignment to the change of a heartbeat."""
    change = heartbeat.change
    source = ShareTargetInput(heartbeat.group, shard.context.topics, heartbeat.updated)
    change.targets |= finished(changed_parts(source.before, finished(source.target())))
    change.target_epoch = heartbeat.group_epoch, now.wall_ms


def target_steps(shard: GroupCoordinatorShard, group: ShareGroup) -> Steps[dict[str, MemberPartitions]]:
    """The parts of the next target assignment that are new, for the members as they are."""
    source = ShareTargetInput(group, shard.context.topics)
    target = yield from source.target()
    return (yield from changed_parts(source.before, target))


def find_group(shard: GroupCoordinatorShard, group_id: str) -> ShareGroup | None:
    """The share group of this id."""
    return shard.share_group(group_id)


def write_target(
    shard: GroupCoordinatorShard,
    group_id: str,
    parts: Mapping[str, MemberPartitions],
    epoch: tuple[int, int] | None,
    now: CoordinatorTime,
    target_ms: float,
) -> None:
    """Write parts of a target by member id, or its epoch and wall time in ms, which makes them valid. Raises KafkaError."""
    change = ShareGroupChange(group_id, targets=dict(parts), target_epoch=epoch)
    write_share_change(shard, change, now, target_ms=target_ms)


# --- the member's partitions ------------------------------------------------------------------------------------------


def write_first_part(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat, now: CoordinatorTime) -> None:
    """Write what is known before the target is made. Raises KafkaError."""
    _write(shard, heartbeat, now)
    _restart_session(shard, heartbeat.group_id, heartbeat.updated.member_id, now)
    heartbeat.is_written = True


def complete_heartbeat(
    shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat, now: CoordinatorTime
) -> ShareGroupHeartbeatResponse:
    """Take the member to the target, note what is to be initialized, write everything, and respond. Raises KafkaError."""
    request, before = heartbeat.request, heartbeat.before
    if heartbeat.is_written:
        _go_on(shard, heartbeat)
    moved = _moved(shard, heartbeat)
    if moved is not heartbeat.updated:
        heartbeat.change.assignments.append(moved)
    _begin_initialization(shard, heartbeat)
    _write(shard, heartbeat, now)
    _restart_session(shard, heartbeat.group_id, moved.member_id, now)
    response = ShareGroupHeartbeatResponse(
        member_id=moved.member_id,
        member_epoch=moved.epoch,
        heartbeat_interval_ms=shard.context.share_times(heartbeat.group_id).heartbeat_interval_ms,
    )
    # A member that joins says which topics it reads, and so does one that is not sure of the last response.
    is_full = request.subscribed_topic_names is not None
    if is_full or moved.assigned != before.assigned:
        response.assignment = _assignment(moved)
    return response


def _go_on(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat) -> None:
    """Take up a heartbeat whose first part is written. KafkaError UNKNOWN_MEMBER_ID when the member has been removed since."""
    group = shard.share_group(heartbeat.group_id)
    member = None if group is None else group.members.newest().get(heartbeat.updated.member_id)
    if group is None or member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {heartbeat.updated.member_id} is no longer in the group."
        )
    heartbeat.group, heartbeat.updated, heartbeat.change = group, member, ShareGroupChange(heartbeat.group_id)


def _moved(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat) -> ShareGroupMember:
    """The member at the newest target; the same object if it is there.

    Topics that the member no longer reads count as not in the target, which may be older than the member's subscription.
    """
    group, change, updated = heartbeat.group, heartbeat.change, heartbeat.updated
    target_epoch = group.target.epoch if change.target_epoch is None else change.target_epoch[0]
    if updated.epoch == target_epoch and not heartbeat.has_other_epoch:
        return updated
    target = change.targets.get(updated.member_id)
    if target is None:
        target = group.target.of(updated.member_id)
    read = shard.context.topics.ids_of(updated.topic_names)
    assigned = {topic_id: frozenset(partitions) for topic_id, partitions in target.items() if topic_id in read}
    if updated.epoch == target_epoch and updated.assigned == assigned:
        return updated
    return updated.moved(target_epoch, assigned)


def _begin_initialization(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat) -> None:
    group = heartbeat.group
    wanted = uninitialized(shard, group, topics_after(group, heartbeat.before, heartbeat.updated))
    if wanted:
        heartbeat.to_initialize = wanted
        heartbeat.change.states = group.states.with_initializing(wanted)


def _write(shard: GroupCoordinatorShard, heartbeat: ShareHeartbeat, now: CoordinatorTime) -> None:
    """Write the change of a heartbeat, and then do all that follows from it. KafkaError, and nothing has changed."""
    write_share_change(shard, heartbeat.change, now, target_ms=heartbeat.target_ms)
    if heartbeat.checked_topics is not None:
        shard.checked_topics[heartbeat.group_id] = heartbeat.checked_topics


def _assignment(member: ShareGroupMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )


# --- leaving ----------------------------------------------------------------------------------------------------------


def leave(
    shard: GroupCoordinatorShard, request: ShareGroupHeartbeatRequest, now: CoordinatorTime
) -> ShareGroupHeartbeatResponse:
    """The member leaves. Raises KafkaError GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID."""
    group = _group_of(shard, request.group_id, may_join=False)
    member = group.members.newest().get(request.member_id)
    if member is None:
        raise _unknown_member(group, request.member_id)
    _remove(shard, group, member, now, (EventKind.LEFT, ""))
    return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def _remove(
    shard: GroupCoordinatorShard,
    group: ShareGroup,
    member: ShareGroupMember,
    now: CoordinatorTime,
    why: tuple[EventKind, str],
) -> None:
    """Remove a member, so that others get its partitions. ``why`` is for people. Raises KafkaError."""
    metadata_hash = shard.context.topics.hash_of(topics_after(group, member, None))
    change = ShareGroupChange(group.group_id, removed=[member.member_id], epoch=(group.epoch + 1, metadata_hash))
    write_share_change(shard, change, now, removal=why)
    shard.timers.cancel(session_timer(group.group_id, member.member_id))


# --- the session ------------------------------------------------------------------------------------------------------


def _restart_session(shard: GroupCoordinatorShard, group_id: str, member_id: str, now: CoordinatorTime) -> None:
    timeout_ms = shard.context.share_times(group_id).session_timeout_ms
    shard.timers.set(session_timer(group_id, member_id), now.monotonic_ms + timeout_ms)


def resume(shard: GroupCoordinatorShard, group: ShareGroup, now: CoordinatorTime) -> None:
    """The group has been loaded: nobody is late because this broker was away."""
    for member_id in group.members.newest():
        _restart_session(shard, group.group_id, member_id, now)


def expire(shard: GroupCoordinatorShard, group: ShareGroup, name: TimerName, now: CoordinatorTime) -> None:
    """The session of a member has ended: the member is removed."""
    _, group_id, member_id = name
    member = group.members.newest().get(member_id)
    if member is None:
        return
    why = "it sent no heartbeat within its session timeout"
    logger.info("Group %s: member %s is removed: %s", group_id, member_id, why)
    try:
        _remove(shard, group, member, now, (EventKind.SESSION_ENDED, why))
    except KafkaError as error:
        logger.warning("Group %s: could not remove member %s: %s", group_id, member_id, error)
        shard.timers.set(name, now.monotonic_ms + _RETRY_MS)
