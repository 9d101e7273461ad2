"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on one shard.

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

import dataclasses

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import Moment, as_seen_by_clients
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .conversion import make_room
from .group import Group, GroupState, Member, Protocols
from .rebalance import (
    answer_join,
    answer_sync,
    complete_sync,
    joined,
    maybe_complete_join,
    member_has_synced,
    members_changed,
    prepare_rebalance,
    remove_member,
    restart_session,
    session_timer,
    synced,
)
from .records import group_metadata
from .shard import Shard
from .timeline import EventKind
from .waiter import Waiter

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""A new member has no session yet; if it went away while it waits, it is dropped after this long."""

MEMBER_ID_REQUIRED_FROM = 4
SKIP_ASSIGNMENT_FROM = 9


@dataclasses.dataclass(slots=True, frozen=True)
class Client:
    """The client that sent a request, and the version of the API that it uses."""

    client_id: str
    host: str
    version: int


JoinWaiter = Waiter[JoinGroupResponse]
SyncWaiter = Waiter[SyncGroupResponse]


def join(shard: Shard, request: JoinGroupRequest, client: Client, now: Moment) -> JoinWaiter:
    """JoinGroup."""
    protocols = [(protocol.name, protocol.metadata) for protocol in request.protocols]
    if request.group_id in shard.modern:
        try:
            make_room(shard, request.group_id, now)
        except KafkaError as error:
            return _refuse_join(shard, request, error.code, member_id="")
    group = shard.groups.get(request.group_id)
    if group is None:
        if request.member_id:
            return _refuse_join(shard, request, ErrorCode.UNKNOWN_MEMBER_ID)
        if not request.protocol_type or not protocols:
            return _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group = shard.add_group(request.group_id, now.wall_ms)
    if not _has_room(shard, group, request.member_id):
        remove_member(shard, group, request.member_id)
        maybe_complete_join(shard, group, now)
        return _refuse_join(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="")
    if not group.supports(request.protocol_type, protocols):
        return _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.member_id:
        return _join_new(shard, group, request, protocols, client, now)
    if request.member_id in group.pending_members and request.group_instance_id is None:
        return _add(shard, group, request, protocols, client, now, request.member_id)
    try:
        member = group.validate_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        return _refuse_join(shard, request, error.code)
    return _rejoin(shard, group, member, request, protocols, now)


def _refuse_join(
    shard: Shard, request: JoinGroupRequest, code: ErrorCode, *, member_id: str | None = None
) -> JoinWaiter:
    response = JoinGroupResponse(error_code=code, member_id=request.member_id if member_id is None else member_id)
    return Waiter.answered(response, shard.depends_on(request.group_id))


def _has_room(shard: Shard, group: Group, member_id: str) -> bool:
    limit = shard.settings.group_max_size
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        # The first to rejoin stay: the group may be too large already, when the limit was lowered.
        return (member is not None and member.join_waiter is not None) or group.awaiting_join < limit
    return member is not None or len(group.members) < limit


def _join_new(
    shard: Shard, group: Group, request: JoinGroupRequest, protocols: Protocols, client: Client, now: Moment
) -> JoinWaiter:
    instance_id = request.group_instance_id
    member_id = shard.new_member_id(client.client_id if instance_id is None else instance_id)
    if instance_id in group.static_members:
        return _take_over(shard, group, request, protocols, client, now, member_id)
    if instance_id is not None or client.version < MEMBER_ID_REQUIRED_FROM:
        return _add(shard, group, request, protocols, client, now, member_id)
    group.pending_members.add(member_id)
    shard.timers.set(session_timer(group, member_id), now.monotonic_ms + request.session_timeout_ms)
    return _refuse_join(shard, request, ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def _add(
    shard: Shard,
    group: Group,
    request: JoinGroupRequest,
    protocols: Protocols,
    client: Client,
    now: Moment,
    member_id: str,
) -> JoinWaiter:
    waiter: JoinWaiter = Waiter()
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
        is_new=True,
        join_waiter=waiter,
    )
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.initial_rebalance is not None:
        group.initial_rebalance.member_added = True
    group.add(member)
    group.last_to_join = member_id
    shard.timeline.note(group, EventKind.JOINED, now, member, request.reason)
    restart_session(shard, group, member, now, NEW_MEMBER_JOIN_TIMEOUT_MS)
    members_changed(shard, group, now, _why(f"{member_id} joined", request))
    return waiter


def _why(what: str, request: JoinGroupRequest) -> str:
    """What happened, and the reason that the client gave for it (KIP-800)."""
    return f"{what} ({request.reason})" if request.reason else what


def _wait_to_join(shard: Shard, group: Group, member: Member) -> JoinWaiter:
    group.last_to_join = member.member_id
    answer_join(
        shard, group, member, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
    )
    member.join_waiter = Waiter()
    return member.join_waiter


def _rejoin(
    shard: Shard, group: Group, member: Member, request: JoinGroupRequest, protocols: Protocols, now: Moment
) -> JoinWaiter:
    unchanged = member.protocols == protocols
    follows = group.leader_id != member.member_id
    if group.state is GroupState.COMPLETING_REBALANCE and unchanged:
        return Waiter.answered(joined(group, member), shard.depends_on(group.group_id))
    if group.state is GroupState.STABLE and unchanged and follows:
        return Waiter.answered(joined(group, member), shard.depends_on(group.group_id))
    _update(member, request, protocols)
    waiter = _wait_to_join(shard, group, member)
    members_changed(shard, group, now, _why(f"{member.member_id} joined again", request))
    return waiter


def _update(member: Member, request: JoinGroupRequest, protocols: Protocols) -> None:
    member.protocols = protocols
    member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    member.session_timeout_ms = request.session_timeout_ms


def _take_over(
    shard: Shard,
    group: Group,
    request: JoinGroupRequest,
    protocols: Protocols,
    client: Client,
    now: Moment,
    member_id: str,
) -> JoinWaiter:
    assert request.group_instance_id is not None
    leader_before = group.leader_id
    old, member = group.replace_static(request.group_instance_id, member_id)
    shard.timers.cancel(session_timer(group, old.member_id))
    answer_join(shard, group, old, JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old.member_id))
    answer_sync(shard, group, old, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    _update(member, request, protocols)
    member.client_id, member.client_host = client.client_id, client.host
    shard.timeline.note(group, EventKind.TOOK_OVER, now, member, f"from {old.member_id}, as {old.group_instance_id}")
    restart_session(shard, group, member, now)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        return _take_over_quietly(shard, group, member, client, now, leader_before)
    waiter = _wait_to_join(shard, group, member)
    # In CompletingRebalance the leader may be assigning partitions to the old id, so all members start over.
    members_changed(shard, group, now, f"{member_id} took over from {old.member_id}")
    return waiter


def _take_over_quietly(
    shard: Shard, group: Group, member: Member, client: Client, now: Moment, leader_before: str | None
) -> JoinWaiter:
    assignments = {other.member_id: other.assignment for other in group.members.values()}
    try:
        shard.write([group_metadata(group, assignments, now.wall_ms)], now)
    except KafkaError as error:
        response = JoinGroupResponse(error_code=as_seen_by_clients(error).code)
        return Waiter.answered(response, shard.depends_on(group.group_id))
    response = joined(group, member)
    if client.version >= SKIP_ASSIGNMENT_FROM:
        response.skip_assignment = group.leader_id == member.member_id
    else:
        response.leader = leader_before or ""
        response.members = []
    return Waiter.answered(response, shard.depends_on(group.group_id))


def sync(shard: Shard, request: SyncGroupRequest, now: Moment) -> SyncWaiter:
    """SyncGroup."""
    group = shard.groups.get(request.group_id)
    try:
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = _validate_sync(group, request)
    except KafkaError as error:
        return Waiter.answered(SyncGroupResponse(error_code=error.code), shard.depends_on(request.group_id))
    member_has_synced(shard, group, member)
    if group.state is GroupState.STABLE:
        return Waiter.answered(synced(group, member), shard.depends_on(group.group_id))
    answer_sync(shard, group, member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    waiter = member.sync_waiter = Waiter()
    if group.leader_id == member.member_id:
        complete_sync(shard, group, {a.member_id: a.assignment for a in request.assignments}, now)
    return waiter


def _validate_sync(group: Group, request: SyncGroupRequest) -> Member:
    member = group.validate_member(request.member_id, request.group_instance_id)
    group.validate_generation(request.generation_id)
    for asked, known in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if asked is not None and known is not None and asked != known:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the group uses {known}")
    if group.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def heartbeat(shard: Shard, request: HeartbeatRequest, now: Moment) -> HeartbeatResponse:
    """Heartbeat. KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    group = shard.groups.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(request.member_id, request.group_instance_id)
    group.validate_generation(request.generation_id)
    restart_session(shard, group, member, now)
    if group.state is GroupState.PREPARING_REBALANCE:
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave(shard: Shard, request: LeaveGroupRequest, now: Moment) -> LeaveGroupResponse:
    """LeaveGroup of ``request.members``; versions 0-2 put their one member there first."""
    group = shard.groups.get(request.group_id)
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
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare_rebalance(shard, group, now, f"{', '.join(left)} left")
        else:
            maybe_complete_join(shard, group, now)
    return LeaveGroupResponse(members=responses)


def _leave(shard: Shard, group: Group, identity: MemberIdentity, now: Moment) -> str:
    member_id = identity.member_id
    if not member_id and identity.group_instance_id is not None:
        # An administrator removes a static member, whose member id only it knows itself.
        member_id = group.static_members.get(identity.group_instance_id, "")
    if member_id not in group.pending_members:
        member = group.validate_member(member_id, identity.group_instance_id)
        shard.timeline.note(group, EventKind.LEFT, now, member, identity.reason)
    remove_member(shard, group, member_id)
    return member_id


def abandon_join(shard: Shard, group_id: str, waiter: JoinWaiter, client: Client, now: Moment) -> None:
    """The connection that waited is gone. The member may come back on another one, if it knows its id."""
    group = shard.groups.get(group_id)
    member = None if group is None else next((m for m in group.members.values() if m.join_waiter is waiter), None)
    if group is None or member is None:
        return
    member.join_waiter = None
    if member.is_new and client.version < MEMBER_ID_REQUIRED_FROM:
        shard.timeline.note(group, EventKind.GONE, now, member)
        remove_member(shard, group, member.member_id)
        members_changed(shard, group, now, f"{member.member_id} went away while it joined")
        return
    member.is_new = False
    restart_session(shard, group, member, now)


def abandon_sync(shard: Shard, group_id: str, waiter: SyncWaiter, now: Moment) -> None:
    """The connection that waited is gone; the member stays until its session ends."""
    group = shard.groups.get(group_id)
    member = None if group is None else next((m for m in group.members.values() if m.sync_waiter is waiter), None)
    if group is not None and member is not None:
        member.sync_waiter = None
        restart_session(shard, group, member, now)
