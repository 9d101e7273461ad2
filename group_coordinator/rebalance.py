"""The rebalance of a group: which members it waits for, when it has ended, and what ends it early.

``prepare_rebalance`` calls all members back, ``complete_join`` closes the round: dynamic members that did not come are
dropped, a protocol is voted for, and all waiting members get the new generation. ``complete_sync`` writes the assignments of the
leader. Three timers bound it, by name: ``session`` of a member (or of a pending one), ``join`` for the round, ``sync`` for
members that got their generation and never asked for their assignment.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..replication.coordinator_log import Moment, as_seen_by_clients
from ..wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ..wire.messages.sync_group import SyncGroupResponse
from .conversion import begin_sessions, end_sessions
from .group import Group, GroupState, InitialRebalance, Member
from .records import group_metadata
from .shard import Shard
from .timeline import EventKind
from .timers import TimerName

logger = logging.getLogger(__name__)

SHORTEST_NEXT_ROUND_MS = 1000
"""A rebalance timeout of 0 must not make rounds follow each other without a pause."""


def session_timer(group: Group, member_id: str) -> TimerName:
    """Name of the timer that ends a member's session."""
    return ("session", group.group_id, member_id)


def join_timer(group: Group) -> TimerName:
    """Name of the timer that ends the round of joining."""
    return ("join", group.group_id)


def sync_timer(group: Group) -> TimerName:
    """Name of the timer that ends the wait for SyncGroup."""
    return ("sync", group.group_id)


def restart_session(shard: Shard, group: Group, member: Member, now: Moment, timeout_ms: int | None = None) -> None:
    """The member was heard: its session begins again."""
    timeout = member.session_timeout_ms if timeout_ms is None else timeout_ms
    shard.timers.set(session_timer(group, member.member_id), now.monotonic_ms + timeout)


def answer_join(shard: Shard, group: Group, member: Member, response: JoinGroupResponse) -> None:
    """Give the member its answer to JoinGroup, if it waits for one."""
    waiter, member.join_waiter = member.join_waiter, None
    if waiter is not None:
        waiter.give(response, shard.depends_on(group.group_id))


def answer_sync(shard: Shard, group: Group, member: Member, response: SyncGroupResponse) -> bool:
    """Give the member its answer to SyncGroup; returns whether it waited for one."""
    waiter, member.sync_waiter = member.sync_waiter, None
    if waiter is None:
        return False
    waiter.give(response, shard.depends_on(group.group_id))
    return True


def joined(group: Group, member: Member) -> JoinGroupResponse:
    """What the member is told about the current generation; the leader is told of all members."""
    members = [
        JoinGroupResponseMember(
            member_id=other.member_id,
            group_instance_id=other.group_instance_id,
            metadata=other.metadata(group.protocol_name),
        )
        for other in (group.members.values() if group.leader_id == member.member_id else ())
    ]
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=members,
    )


def synced(group: Group, member: Member) -> SyncGroupResponse:
    """The member's assignment in the current generation."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def remove_member(shard: Shard, group: Group, member_id: str) -> None:
    """Drop a member, also a pending one; a client that waits in its name is told that it is unknown."""
    shard.timers.cancel(session_timer(group, member_id))
    member = group.remove(member_id)
    if member is not None:
        answer_join(shard, group, member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        answer_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def members_changed(shard: Shard, group: Group, now: Moment, reason: str) -> None:
    """Members came, went or changed what they offer: call for a rebalance, or see whether the one going on is done."""
    if group.state is GroupState.PREPARING_REBALANCE:
        if not group.members:
            group.rebalance_reason = reason
        maybe_complete_join(shard, group, now)
    else:
        prepare_rebalance(shard, group, now, reason)


def prepare_rebalance(shard: Shard, group: Group, now: Moment, reason: str) -> None:
    """Call every member back to join."""
    logger.debug("Group %s: rebalance after generation %d: %s", group.group_id, group.generation_id, reason)
    group.rebalance_reason = reason
    group.rebalance_began_ms = now.monotonic_ms
    shard.timeline.note(group, EventKind.REBALANCE, now, detail=reason)
    for member in group.members.values():
        if answer_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)):
            restart_session(shard, group, member, now)
    group.pending_sync.clear()
    shard.timers.cancel(sync_timer(group))
    delay_ms = shard.settings.group_initial_rebalance_delay_ms
    is_initial = group.state is GroupState.EMPTY
    _enter(group, GroupState.PREPARING_REBALANCE, now)
    if is_initial and delay_ms > 0:
        group.initial_rebalance = InitialRebalance(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        shard.timers.set(join_timer(group), now.monotonic_ms + delay_ms)
    elif is_initial or group.all_joined:
        complete_join(shard, group, now)
    else:
        shard.timers.set(join_timer(group), now.monotonic_ms + group.rebalance_timeout_ms)


def maybe_complete_join(shard: Shard, group: Group, now: Moment) -> None:
    """Close the round if no member is missing. The first round of a group runs its time, unless all have gone."""
    if group.state is not GroupState.PREPARING_REBALANCE or not group.all_joined:
        return
    if group.initial_rebalance is None or not group.members:
        complete_join(shard, group, now)


def complete_join(shard: Shard, group: Group, now: Moment) -> None:
    """Close the round of joining and begin the next generation with those who came."""
    group.initial_rebalance = None
    shard.timers.cancel(join_timer(group))
    for member in [member for member in group.members.values() if member.join_waiter is None]:
        if member.group_instance_id is None:
            logger.info("Group %s: member %s did not rejoin", group.group_id, member.member_id)
            shard.timeline.note(group, EventKind.NOT_REJOINED, now, member)
            remove_member(shard, group, member.member_id)
    if not group.members:
        _become_empty(shard, group, now)
    elif _elect_leader(group):
        _begin_generation(shard, group, now)
    else:
        # Only static members are left and none has come; their sessions, or the next round, will tell.
        round_ms = max(group.rebalance_timeout_ms, SHORTEST_NEXT_ROUND_MS)
        shard.timers.set(join_timer(group), now.monotonic_ms + round_ms)


def _elect_leader(group: Group) -> bool:
    leader = None if group.leader_id is None else group.members.get(group.leader_id)
    if leader is not None and leader.join_waiter is not None:
        return True
    joined_member = next((member for member in group.members.values() if member.join_waiter is not None), None)
    if joined_member is not None:
        group.leader_id = joined_member.member_id
    return joined_member is not None


def _begin_generation(shard: Shard, group: Group, now: Moment) -> None:
    group.generation_id += 1
    group.protocol_name = group.select_protocol()
    group.subscribed_topics = group.compute_subscribed_topics()
    _enter(group, GroupState.COMPLETING_REBALANCE, now)
    members = counted(len(group.members), "member")
    logger.info(
        "Group %s: generation %d has %s: %s", group.group_id, group.generation_id, members, group.rebalance_reason
    )
    last = group.members.get(group.last_to_join or "")
    shard.timeline.note(
        group, EventKind.GENERATION, now, last, f"{members}; {group.protocol_name}; the last to join is named"
    )
    group.pending_sync = set(group.members)
    for member in group.members.values():
        member.is_new = False
        answer_join(shard, group, member, joined(group, member))
        restart_session(shard, group, member, now)
    shard.timers.set(sync_timer(group), now.monotonic_ms + group.rebalance_timeout_ms)


def _become_empty(shard: Shard, group: Group, now: Moment) -> None:
    group.generation_id += 1
    group.protocol_name = None
    group.leader_id = None
    group.subscribed_topics = group.compute_subscribed_topics()
    _enter(group, GroupState.EMPTY, now)
    logger.info("Group %s: generation %d is empty: %s", group.group_id, group.generation_id, group.rebalance_reason)
    shard.timeline.note(group, EventKind.EMPTIED, now, detail=group.rebalance_reason)
    try:
        shard.write([group_metadata(group, {}, now.wall_ms)], now)
    except KafkaError as error:
        # The last generation stays the durable one; its members would have to be expired once more.
        logger.warning("Group %s: could not write that it is empty: %s", group.group_id, error)


def complete_sync(shard: Shard, group: Group, assignments: Mapping[str, bytes], now: Moment) -> None:
    """The leader's assignments are here: write them and tell every member that waits."""
    try:
        shard.write([group_metadata(group, assignments, now.wall_ms)], now)
    except KafkaError as error:
        code = as_seen_by_clients(error).code
        logger.warning("Group %s: could not write its assignments: %s", group.group_id, error)
        for member in group.members.values():
            if answer_sync(shard, group, member, SyncGroupResponse(error_code=code)):
                restart_session(shard, group, member, now)
        prepare_rebalance(shard, group, now, "its assignments could not be written")
        return
    logger.debug("Group %s: generation %d is %s", group.group_id, group.generation_id, group.state.value)
    shard.timeline.note(group, EventKind.ASSIGNED, now)
    for member in group.members.values():
        # A session that ended while the member waited was ignored, so each one begins again here.
        if answer_sync(shard, group, member, synced(group, member)):
            restart_session(shard, group, member, now)


def member_has_synced(shard: Shard, group: Group, member: Member) -> None:
    """The member asked for its assignment."""
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        shard.timers.cancel(sync_timer(group))


def resume(shard: Shard, now: Moment) -> None:
    """The shard has been loaded: every member gets a fresh session, and groups above group.max.size are cut down."""
    begin_sessions(shard, now)
    for group in list(shard.groups.values()):
        for member in group.members.values():
            restart_session(shard, group, member, now)
        if len(group.members) > shard.settings.group_max_size:
            prepare_rebalance(
                shard, group, now, f"{counted(len(group.members), 'member')} when group.max.size allows fewer"
            )


def release(shard: Shard) -> None:
    """The shard has moved: clients that wait are sent to look for the new coordinator."""
    for group in shard.groups.values():
        for member in group.members.values():
            answer_join(
                shard,
                group,
                member,
                JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id),
            )
            answer_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def expire(shard: Shard, name: TimerName, now: Moment) -> None:
    """A timer is due."""
    if name[0] == "modern":
        end_sessions(shard, name[1], now)
        return
    group = shard.groups.get(name[1])
    if group is None:
        return
    if name[0] == "session":
        _expire_session(shard, group, name[2], now)
    elif name[0] == "join":
        _expire_join(shard, group, now)
    else:
        _expire_sync(shard, group, now)


def _expire_session(shard: Shard, group: Group, member_id: str, now: Moment) -> None:
    member = group.members.get(member_id)
    if member is None:
        if member_id in group.pending_members:
            group.pending_members.discard(member_id)
            maybe_complete_join(shard, group, now)
        return
    # A member that waits for the coordinator is not silent. A new one may be gone unseen, so it is not spared.
    if not member.is_new and (member.join_waiter is not None or member.sync_waiter is not None):
        return
    silent_for = f"nothing was heard of it for {member.session_timeout_ms} ms"
    shard.timeline.note(group, EventKind.SESSION_ENDED, now, member, silent_for)
    remove_member(shard, group, member_id)
    members_changed(shard, group, now, f"the session of {member_id} ended")


def _expire_join(shard: Shard, group: Group, now: Moment) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    initial = group.initial_rebalance
    if initial is not None and initial.member_added and initial.remaining_ms > 0:
        initial.member_added = False
        delay_ms = min(shard.settings.group_initial_rebalance_delay_ms, initial.remaining_ms)
        initial.remaining_ms = max(initial.remaining_ms - initial.delay_ms, 0)
        initial.delay_ms = delay_ms
        shard.timers.set(join_timer(group), now.monotonic_ms + delay_ms)
        return
    complete_join(shard, group, now)


def _expire_sync(shard: Shard, group: Group, now: Moment) -> None:
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    late = sorted(group.pending_sync)
    for member_id in late:
        shard.timeline.note(group, EventKind.NOT_SYNCED, now, group.members.get(member_id))
        remove_member(shard, group, member_id)
    prepare_rebalance(shard, group, now, f"{', '.join(late)} did not ask for an assignment")


def _enter(group: Group, state: GroupState, now: Moment) -> None:
    logger.debug("Group %s: %s after %s", group.group_id, state.value, group.state.value)
    group.state = state
    group.state_timestamp_ms = now.wall_ms
