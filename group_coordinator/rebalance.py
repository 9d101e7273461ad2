"""The rebalance of a group: the members it waits for, its completion, and its timeouts.

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
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ..wire.messages.sync_group import SyncGroupResponse
from .classic_group import ClassicGroup
from .generation import Generation
from .live_group import ClassicGroupMember, GroupState
from .records import group_metadata
from .shard import GroupCoordinatorShard
from .timeline import EventKind, NotedMember
from .timers import TimerName

logger = logging.getLogger(__name__)

SHORTEST_NEXT_ROUND_MS = 1000
"""A rebalance timeout of 0 must not make rounds follow each other without a pause."""


def session_timer(group: ClassicGroup, member_id: str) -> TimerName:
    """Name of the timer that ends a member's session."""
    return ("session", group.group_id, member_id)


def join_timer(group: ClassicGroup) -> TimerName:
    """Name of the timer that ends the round of joining."""
    return ("join", group.group_id)


def sync_timer(group: ClassicGroup) -> TimerName:
    """Name of the timer that ends the wait for SyncGroup."""
    return ("sync", group.group_id)


def restart_session(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    member: ClassicGroupMember,
    now: CoordinatorTime,
    timeout_ms: int | None = None,
) -> None:
    """The member was heard: its session begins again."""
    timeout = member.session_timeout_ms if timeout_ms is None else timeout_ms
    shard.timers.set(session_timer(group, member.member_id), now.monotonic_ms + timeout)


def respond_to_join(
    shard: GroupCoordinatorShard, group: ClassicGroup, member: ClassicGroupMember, response: JoinGroupResponse
) -> None:
    """Give the member its response to JoinGroup, if it waits for one."""
    member.respond_to_join(response, shard.depends_on(group.group_id))


def respond_to_sync(
    shard: GroupCoordinatorShard, group: ClassicGroup, member: ClassicGroupMember, response: SyncGroupResponse
) -> bool:
    """Give the member its response to SyncGroup; returns whether it waited for one."""
    return member.respond_to_sync(response, shard.depends_on(group.group_id))


def joined(generation: Generation, member_id: str) -> JoinGroupResponse:
    """What a member is told about its generation; the leader is told of all members."""
    members = [
        JoinGroupResponseMember(
            member_id=other.member_id, group_instance_id=other.group_instance_id, metadata=other.subscription
        )
        for other in (generation.members.values() if generation.leader_id == member_id else ())
    ]
    return JoinGroupResponse(
        generation_id=generation.generation_id,
        protocol_type=generation.protocol_type,
        protocol_name=generation.protocol_name,
        leader=generation.leader_id or "",
        member_id=member_id,
        members=members,
    )


def synced(group: ClassicGroup, member_id: str) -> SyncGroupResponse:
    """A member's assignment in the durable generation."""
    return SyncGroupResponse(
        protocol_type=group.generation.protocol_type,
        protocol_name=group.generation.protocol_name,
        assignment=group.assignment_of(member_id),
    )


def note_event(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    kind: EventKind,
    now: CoordinatorTime,
    member: NotedMember | None = None,
    detail: str | None = None,
) -> None:
    """Something happened to a group, or to one of its members, that people see in its timeline."""
    took, began_ms = None, group.live.rebalance_began_ms
    if kind in (EventKind.GENERATION, EventKind.ASSIGNED) and began_ms is not None:
        took = round(now.monotonic_ms - began_ms)
    shard.timeline.note(group.group_id, group.epoch, kind, now, member, detail, took)


def remove_member(shard: GroupCoordinatorShard, group: ClassicGroup, member_id: str) -> None:
    """Drop a member, also a pending one; a client that waits in its name is told that it is unknown."""
    shard.timers.cancel(session_timer(group, member_id))
    member = group.live.remove(member_id)
    if member is not None:
        respond_to_join(shard, group, member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        respond_to_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def members_changed(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime, reason: str) -> None:
    """Members came, went or changed what they offer: call for a rebalance, or see whether the one going on is done."""
    if group.live.state is GroupState.PREPARING_REBALANCE:
        if not group.live.members:
            group.live.set_rebalance_reason(reason)
        maybe_complete_join(shard, group, now)
    else:
        prepare_rebalance(shard, group, now, reason)


def prepare_rebalance(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime, reason: str) -> None:
    """Call every member back to join."""
    live = group.live
    logger.debug("Group %s: rebalance after generation %d: %s", group.group_id, live.generation.generation_id, reason)
    note_event(shard, group, EventKind.REBALANCE, now, detail=reason)
    for member in live.members.values():
        if respond_to_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)):
            restart_session(shard, group, member, now)  # as in ``complete_sync``
    shard.timers.cancel(sync_timer(group))
    delay_ms = shard.settings.group_initial_rebalance_delay_ms
    before = live.state  # ``prepare`` replaces it, and only an empty group waits for its first members
    live.prepare(reason, now.monotonic_ms)
    _log_state(group, before)
    is_initial = before is GroupState.EMPTY
    if is_initial and delay_ms > 0:
        live.delay(delay_ms)
        shard.timers.set(join_timer(group), now.monotonic_ms + delay_ms)
    elif is_initial or live.has_all_members_joined:
        complete_join(shard, group, now)
    else:
        shard.timers.set(join_timer(group), now.monotonic_ms + live.rebalance_timeout_ms)


def maybe_complete_join(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    """Close the round if no member is missing. The first round of a group runs its time, unless all have gone."""
    live = group.live
    if live.state is not GroupState.PREPARING_REBALANCE or not live.has_all_members_joined:
        return
    if live.initial_rebalance is None or not live.members:
        complete_join(shard, group, now)


def complete_join(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    """Close the round of joining and begin the next generation with those who came."""
    live = group.live
    live.end_delay()
    shard.timers.cancel(join_timer(group))
    for member in [member for member in live.members.values() if member.join_waiter is None]:
        if member.group_instance_id is None:
            logger.info("Group %s: member %s did not rejoin", group.group_id, member.member_id)
            note_event(shard, group, EventKind.NOT_REJOINED, now, member)
            remove_member(shard, group, member.member_id)
    if not live.members:
        _become_empty(shard, group, now)
    elif live.elect_leader():
        _begin_generation(shard, group, now)
    else:
        # Only static members are left and none has come; their sessions, or the next round, will tell.
        round_ms = max(live.rebalance_timeout_ms, SHORTEST_NEXT_ROUND_MS)
        shard.timers.set(join_timer(group), now.monotonic_ms + round_ms)


def _begin_generation(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    # Soft alone: without its assignments the generation is of no use to another coordinator, so no record is written.
    live, before = group.live, group.live.state
    live.begin_generation(now.wall_ms)
    _log_state(group, before)
    generation, members = live.generation, counted(len(live.members), "member")
    logger.info(
        "Group %s: generation %d has %s: %s",
        group.group_id,
        generation.generation_id,
        members,
        live.rebalance_reason,
    )
    last = live.members.get(live.last_to_join or "")
    note_event(
        shard,
        group,
        EventKind.GENERATION,
        now,
        last,
        f"{members}, {generation.protocol_name}; the last to join is named",
    )
    for member in live.members.values():
        respond_to_join(shard, group, member, joined(generation, member.member_id))
        restart_session(shard, group, member, now)
    shard.timers.set(sync_timer(group), now.monotonic_ms + live.rebalance_timeout_ms)


def _become_empty(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    # Soft before durable: that nobody is left is a fact, whether or not it can be written.
    live, before = group.live, group.live.state
    live.become_empty(now.wall_ms)
    _log_state(group, before)
    reason, generation_id = live.rebalance_reason, live.generation.generation_id
    logger.info("Group %s: generation %d is empty: %s", group.group_id, generation_id, reason)
    note_event(shard, group, EventKind.EMPTIED, now, detail=reason)
    try:
        shard.write([group_metadata(group.group_id, live.generation)], now)
    except KafkaError as error:
        # The last generation stays the durable one; its members would have to be expired once more.
        logger.warning("Group %s: could not write that it is empty: %s", group.group_id, error)


def complete_sync(
    shard: GroupCoordinatorShard, group: ClassicGroup, assignments: Mapping[str, bytes], now: CoordinatorTime
) -> None:
    """The leader's assignments are here: write them and tell every member that waits."""
    live = group.live
    # Durable before soft: ``write`` replays the record into ``group.generation``. If the log refuses, no member has seen an
    # assignment, the durable generation is still the one before, and all join again.
    try:
        shard.write([group_metadata(group.group_id, live.generation.assigned(assignments, now.wall_ms))], now)
    except KafkaError as error:
        code = as_seen_by_clients(error).code
        logger.warning("Group %s: could not write its assignments: %s", group.group_id, error)
        for member in live.members.values():
            if respond_to_sync(shard, group, member, SyncGroupResponse(error_code=code)):
                restart_session(shard, group, member, now)
        prepare_rebalance(shard, group, now, "its assignments could not be written")
        return
    live.settle(group.generation)
    logger.debug("Group %s: generation %d is %s", group.group_id, live.generation.generation_id, live.state.value)
    note_event(shard, group, EventKind.ASSIGNED, now)
    for member in live.members.values():
        # A session that ended while the member waited was ignored, so each one begins again here.
        if respond_to_sync(shard, group, member, synced(group, member.member_id)):
            restart_session(shard, group, member, now)


def member_has_synced(shard: GroupCoordinatorShard, group: ClassicGroup, member: ClassicGroupMember) -> None:
    """The member asked for its assignment."""
    if group.live.remove_pending_sync_member(member.member_id):
        shard.timers.cancel(sync_timer(group))


def resume(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    """The group is served from now on: every member gets a fresh session, and one above group.max.size is cut down."""
    group.resume()
    members = group.live.members
    for member in members.values():
        restart_session(shard, group, member, now)
    if group.was_downgraded:
        prepare_rebalance(shard, group, now, "it was a consumer group, whose downgrade calls for a rebalance")
    elif len(members) > shard.settings.group_max_size:
        prepare_rebalance(shard, group, now, f"{counted(len(members), 'member')} when group.max.size allows fewer")


def release(shard: GroupCoordinatorShard, group: ClassicGroup, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
    """The group is not served here any more, or not as a classic one: clients that wait are told to ask again."""
    for member in group.live.members.values():
        respond_to_join(shard, group, member, JoinGroupResponse(error_code=code, member_id=member.member_id))
        respond_to_sync(shard, group, member, SyncGroupResponse(error_code=code))


def expire(shard: GroupCoordinatorShard, group: ClassicGroup, name: TimerName, now: CoordinatorTime) -> None:
    """A timer of the group is due."""
    if name[0] == "session":
        _expire_session(shard, group, name[2], now)
    elif name[0] == "join":
        _expire_join(shard, group, now)
    elif name[0] == "sync":
        _expire_sync(shard, group, now)


def _expire_session(shard: GroupCoordinatorShard, group: ClassicGroup, member_id: str, now: CoordinatorTime) -> None:
    member = group.live.members.get(member_id)
    if member is None:
        if member_id in group.live.pending_members:
            group.live.remove(member_id)
            maybe_complete_join(shard, group, now)
        return
    # A member that waits for the coordinator is not silent. A new one may be gone unseen, so it is not spared.
    if not member.is_new and (member.join_waiter is not None or member.sync_waiter is not None):
        return
    silent_for = f"it sent no heartbeat within {member.session_timeout_ms} ms"
    note_event(shard, group, EventKind.SESSION_ENDED, now, member, silent_for)
    remove_member(shard, group, member_id)
    members_changed(shard, group, now, f"the session of {member_id} ended")


def _expire_join(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    live = group.live
    if live.state is not GroupState.PREPARING_REBALANCE:
        return
    most_ms = shard.settings.group_initial_rebalance_delay_ms
    delay_ms = None if live.initial_rebalance is None else live.initial_rebalance.extend(most_ms)
    if delay_ms is None:
        complete_join(shard, group, now)
    else:
        shard.timers.set(join_timer(group), now.monotonic_ms + delay_ms)


def _expire_sync(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    live = group.live
    if live.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not live.pending_sync_members:
        return
    late = sorted(live.pending_sync_members)
    for member_id in late:
        note_event(shard, group, EventKind.NOT_SYNCED, now, live.members.get(member_id))
        remove_member(shard, group, member_id)
    prepare_rebalance(shard, group, now, f"{', '.join(late)} did not ask for an assignment")


def _log_state(group: ClassicGroup, before: GroupState) -> None:
    logger.debug("Group %s: %s after %s", group.group_id, group.live.state.value, before.value)
