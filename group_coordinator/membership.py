"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on one shard.

Requests to a consumer group go to ``classic_members``, but for JoinGroup, whose target assignment may take long.

Joins and syncs return a ``Waiter`` whose answer may come much later; the rest answers at once. A client that waits and gives
up (its connection is gone) is reported by ``abandon_join`` / ``abandon_sync``, so that others do not wait for it in turn.

Rules that are easy to miss:

* From version 4 a new dynamic member is sent back with MEMBER_ID_REQUIRED and an id to join with (KIP-394). Until it does
  it is *pending*: a round of joining waits for it, for one session timeout.
* A static member (KIP-345) that comes with no member id takes over from the one that had its instance id. While the group
  is Stable and the vote for the protocol stays the same that is no reason to rebalance: it gets the current generation,
  under its new id. A leader is told to skip the assignment (version 9, KIP-814); one that uses an older version is told that
  the leader is the id it had before, so that it sends no assignment either.
* A known member that joins again without having changed anything gets the current generation, unless it leads: leaders
  join again to force a rebalance, for instance when they see new partitions.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from . import classic_members
from .classic_group import ClassicGroup
from .client import MEMBER_ID_REQUIRED_FROM, Client
from .conversion import check_room, make_room
from .live_group import ClassicGroupMember, GroupState, LiveGroup, Protocols
from .rebalance import (
    complete_sync,
    joined,
    maybe_complete_join,
    member_has_synced,
    members_changed,
    note_event,
    prepare_rebalance,
    remove_member,
    respond_to_join,
    respond_to_sync,
    restart_session,
    session_timer,
    synced,
)
from .records import group_metadata
from .shard import GroupCoordinatorShard
from .timeline import EventKind
from .waiter import Waiter

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""A new member has no session yet; if it went away while it waits, it is dropped after this long."""

SKIP_ASSIGNMENT_FROM = 9

JoinWaiter = Waiter[JoinGroupResponse]
SyncWaiter = Waiter[SyncGroupResponse]


def join(shard: GroupCoordinatorShard, request: JoinGroupRequest, client: Client, now: CoordinatorTime) -> JoinWaiter:
    """JoinGroup to a classic group, or one that makes it."""
    protocols = [(protocol.name, protocol.metadata) for protocol in request.protocols]
    group = shard.classic_group(request.group_id)
    if group is None:
        try:
            check_room(shard, request.group_id)
            if request.member_id:
                return _refuse_join(shard, request, ErrorCode.UNKNOWN_MEMBER_ID)
            if not request.protocol_type or not protocols:
                return _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            group = make_room(shard, request.group_id, now)
        except KafkaError as error:
            return _refuse_join(shard, request, error.code, member_id="")
    if not _has_room(shard, group, request.member_id):
        remove_member(shard, group, request.member_id)
        maybe_complete_join(shard, group, now)
        return _refuse_join(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="")
    if not group.live.supports(request.protocol_type, protocols):
        return _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.member_id:
        return _join_new(shard, group, request, protocols, client, now)
    if request.member_id in group.live.pending_members and request.group_instance_id is None:
        return _add(shard, group, request, protocols, client, now, request.member_id)
    try:
        member = group.live.validate_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        return _refuse_join(shard, request, error.code)
    return _rejoin(shard, group, member, request, protocols, now)


def _refuse_join(
    shard: GroupCoordinatorShard, request: JoinGroupRequest, code: ErrorCode, *, member_id: str | None = None
) -> JoinWaiter:
    response = JoinGroupResponse(error_code=code, member_id=request.member_id if member_id is None else member_id)
    return Waiter.answered(response, shard.depends_on(request.group_id))


def _has_room(shard: GroupCoordinatorShard, group: ClassicGroup, member_id: str) -> bool:
    live, limit = group.live, shard.settings.group_max_size
    if live.state is GroupState.EMPTY:
        return True
    member = live.members.get(member_id)
    if live.state is GroupState.PREPARING_REBALANCE:
        # The first to rejoin stay: the group may be too large already, when the limit was lowered.
        return (member is not None and member.join_waiter is not None) or live.num_awaiting_join_response < limit
    return member is not None or len(live.members) < limit


def _join_new(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    client: Client,
    now: CoordinatorTime,
) -> JoinWaiter:
    instance_id = request.group_instance_id
    member_id = shard.new_member_id(client.client_id if instance_id is None else instance_id)
    if instance_id in group.live.static_members:
        return _take_over(shard, group, request, protocols, client, now, member_id)
    if instance_id is not None or client.version < MEMBER_ID_REQUIRED_FROM:
        return _add(shard, group, request, protocols, client, now, member_id)
    group.live.expect(member_id)
    shard.timers.set(session_timer(group, member_id), now.monotonic_ms + request.session_timeout_ms)
    return _refuse_join(shard, request, ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def _new_member(request: JoinGroupRequest, protocols: Protocols, client: Client, member_id: str) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
    )


def _add(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    client: Client,
    now: CoordinatorTime,
    member_id: str,
) -> JoinWaiter:
    member = _new_member(request, protocols, client, member_id)
    waiter = group.live.join(member, request.protocol_type)
    note_event(shard, group, EventKind.JOINED, now, member, request.reason)
    restart_session(shard, group, member, now, NEW_MEMBER_JOIN_TIMEOUT_MS)
    members_changed(shard, group, now, _why(f"{member_id} joined", request))
    return waiter


def _why(what: str, request: JoinGroupRequest) -> str:
    """What happened, and the reason that the client gave for it (KIP-800)."""
    return f"{what} ({request.reason})" if request.reason else what


def _wait_to_join(shard: GroupCoordinatorShard, group: ClassicGroup, member: ClassicGroupMember) -> JoinWaiter:
    response = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
    respond_to_join(shard, group, member, response)
    return group.live.join_again(member)


def _rejoin(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    member: ClassicGroupMember,
    request: JoinGroupRequest,
    protocols: Protocols,
    now: CoordinatorTime,
) -> JoinWaiter:
    live, unchanged = group.live, member.protocols == protocols
    follows = live.leader_id != member.member_id
    # The same response once more, in case the first was lost. A leader that joins a stable group again calls for a rebalance.
    if unchanged and (live.state is GroupState.COMPLETING_REBALANCE or (live.state is GroupState.STABLE and follows)):
        return Waiter.answered(joined(live.generation, member.member_id), shard.depends_on(group.group_id))
    member.offer(protocols, _rebalance_timeout_ms(request), request.session_timeout_ms)
    waiter = _wait_to_join(shard, group, member)
    members_changed(shard, group, now, _why(f"{member.member_id} joined again", request))
    return waiter


def _take_over(
    shard: GroupCoordinatorShard,
    group: ClassicGroup,
    request: JoinGroupRequest,
    protocols: Protocols,
    client: Client,
    now: CoordinatorTime,
    member_id: str,
) -> JoinWaiter:
    live, leader_before = group.live, group.live.leader_id
    old = live.members[live.static_members[request.group_instance_id or ""]]
    member = _new_member(request, protocols, client, member_id)
    generation = live.hand_over(old, member, now.wall_ms)
    # Durable before soft: if the log refuses, the old process still has its place, and nothing has changed.
    if generation is not None:
        try:
            shard.write([group_metadata(group.group_id, generation)], now)
        except KafkaError as error:
            response = JoinGroupResponse(error_code=as_seen_by_clients(error).code)
            return Waiter.answered(response, shard.depends_on(group.group_id))
    live.replace(old, member)
    shard.timers.cancel(session_timer(group, old.member_id))
    fenced = ErrorCode.FENCED_INSTANCE_ID
    respond_to_join(shard, group, old, JoinGroupResponse(error_code=fenced, member_id=old.member_id))
    respond_to_sync(shard, group, old, SyncGroupResponse(error_code=fenced))
    note_event(shard, group, EventKind.TOOK_OVER, now, member, f"from {old.member_id}, as {old.group_instance_id}")
    restart_session(shard, group, member, now)
    if generation is not None:
        live.settle(group.generation)
        response = _resumed(group, member_id, client, leader_before)
        return Waiter.answered(response, shard.depends_on(group.group_id))
    waiter = _wait_to_join(shard, group, member)
    # In CompletingRebalance the leader may be assigning partitions to the old id, so all members start over.
    members_changed(shard, group, now, f"{member_id} took over from {old.member_id}")
    return waiter


def _resumed(group: ClassicGroup, member_id: str, client: Client, leader_before: str | None) -> JoinGroupResponse:
    """The answer to a member that took over without a rebalance: it does not assign anything."""
    response = joined(group.generation, member_id)
    if client.version >= SKIP_ASSIGNMENT_FROM:
        response.skip_assignment = group.generation.leader_id == member_id
    else:
        response.leader = leader_before or ""
        response.members = []
    return response


def sync(shard: GroupCoordinatorShard, request: SyncGroupRequest, now: CoordinatorTime) -> SyncWaiter:
    """SyncGroup."""
    group = shard.classic_group(request.group_id)
    consumer_group = shard.consumer_group(request.group_id)
    try:
        if consumer_group is not None:
            response = classic_members.sync(shard, consumer_group, request, now)
            return Waiter.answered(response, shard.depends_on(request.group_id))
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = _validate_sync(group.live, request)
    except KafkaError as error:
        return Waiter.answered(SyncGroupResponse(error_code=error.code), shard.depends_on(request.group_id))
    member_has_synced(shard, group, member)
    if group.live.state is GroupState.STABLE:
        return Waiter.answered(synced(group, member.member_id), shard.depends_on(group.group_id))
    respond_to_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    # The leader waits as well, before ``complete_sync`` gives every member that waits its assignment.
    waiter = member.wait_to_sync()
    if group.live.leader_id == member.member_id:
        complete_sync(shard, group, {a.member_id: a.assignment for a in request.assignments}, now)
    return waiter


def _validate_sync(live: LiveGroup, request: SyncGroupRequest) -> ClassicGroupMember:
    member = live.validate_member(request.member_id, request.group_instance_id)
    live.validate_generation(request.generation_id)
    for asked, known in (
        (request.protocol_type, live.protocol_type),
        (request.protocol_name, live.generation.protocol_name),
    ):
        if asked is not None and known is not None and asked != known:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group uses {known}")
    if live.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def heartbeat(shard: GroupCoordinatorShard, request: HeartbeatRequest, now: CoordinatorTime) -> HeartbeatResponse:
    """Heartbeat. KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    consumer_group = shard.consumer_group(request.group_id)
    if consumer_group is not None:
        return classic_members.heartbeat(shard, consumer_group, request, now)
    group = shard.classic_group(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    live = group.live
    member = live.validate_member(request.member_id, request.group_instance_id)
    live.validate_generation(request.generation_id)
    restart_session(shard, group, member, now)
    if live.state is GroupState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave(shard: GroupCoordinatorShard, request: LeaveGroupRequest, now: CoordinatorTime) -> LeaveGroupResponse:
    """LeaveGroup of ``request.members``; versions 0-2 put their one member there first."""
    consumer_group = shard.consumer_group(request.group_id)
    if consumer_group is not None:
        return classic_members.leave(shard, consumer_group, request, now)
    group = shard.classic_group(request.group_id)
    responses = []
    left = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            if group is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            left.append(_leave(shard, group, identity, now))
        except KafkaError as error:
            code = error.code
        responses.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    if group is not None and left:
        if group.live.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare_rebalance(shard, group, now, f"{', '.join(left)} left")
        else:
            maybe_complete_join(shard, group, now)
    return LeaveGroupResponse(members=responses)


def _leave(shard: GroupCoordinatorShard, group: ClassicGroup, identity: MemberIdentity, now: CoordinatorTime) -> str:
    member_id = identity.member_id
    if not member_id and identity.group_instance_id is not None:
        # An administrator removes a static member, whose member id only it knows itself.
        member_id = group.live.static_members.get(identity.group_instance_id, "")
    if member_id not in group.live.pending_members:
        member = group.live.validate_member(member_id, identity.group_instance_id)
        note_event(shard, group, EventKind.LEFT, now, member, identity.reason)
    remove_member(shard, group, member_id)
    return member_id


def abandon_join(
    shard: GroupCoordinatorShard, group_id: str, waiter: JoinWaiter, client: Client, now: CoordinatorTime
) -> None:
    """The connection that waited is gone. The member may come back on another one, if it knows its id."""
    group = shard.classic_group(group_id)
    members = () if group is None else group.live.members.values()
    member = next((member for member in members if member.join_waiter is waiter), None)
    if group is None or member is None:
        return
    was_new = member.is_new
    member.abandon_join()
    # Before KIP-394 a new member learned its id from the lost response alone, so it can only come back as another one.
    if was_new and client.version < MEMBER_ID_REQUIRED_FROM:
        note_event(shard, group, EventKind.GONE, now, member)
        remove_member(shard, group, member.member_id)
        members_changed(shard, group, now, f"{member.member_id} went away while it joined")
    else:
        restart_session(shard, group, member, now)


def abandon_sync(shard: GroupCoordinatorShard, group_id: str, waiter: SyncWaiter, now: CoordinatorTime) -> None:
    """The connection that waited is gone; the member stays until its session ends."""
    group = shard.classic_group(group_id)
    members = () if group is None else group.live.members.values()
    member = next((member for member in members if member.sync_waiter is waiter), None)
    if group is not None and member is not None:
        member.abandon_sync()
        restart_session(shard, group, member, now)
