"""Members with the classic protocol in a consumer group (KIP-848): their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The coordinator assigns the partitions, so nobody leads, and no request waits for other members. This is how such a member sees
a rebalance:

==================================  ================================================================================
request                             meaning
==================================  ================================================================================
Heartbeat: REBALANCE_IN_PROGRESS    there is a new target, there are partitions to give up, or those to get are free
JoinGroup                           the subscription names what it still owns; it takes the next step to the target
SyncGroup                           its partitions as of that step; assignments that it sends count for nothing
==================================  ================================================================================

Its epoch is the generation that it knows, and the first assignor that it offers is "the protocol". Its timers:

===============  ===================================  =========================================================
timer            set by                               ended by
===============  ===================================  =========================================================
session          JoinGroup, SyncGroup, Heartbeat      leaving; the time is its own session timeout
member-join      the first REBALANCE_IN_PROGRESS      JoinGroup
member-sync      JoinGroup                            SyncGroup
===============  ===================================  =========================================================

The member is removed when one of them is due; the latter two run for its rebalance timeout.

Source: Kafka's GroupMetadataManager (``classicGroupJoinToConsumerGroup`` and its like). A member that has changed to the consumer
protocol meanwhile is not removed for what it owed as a classic one.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError, ProtocolError
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .client import MEMBER_ID_REQUIRED_FROM, Client
from .consumer_group import NOBODY, ConsumerGroup
from .consumer_group_member import ClassicSupport, ConsumerGroupMember, MemberState
from .consumer_group_records import ConsumerGroupChange
from .consumer_membership import (
    Heartbeat,
    check_size,
    remove_members,
    static_holder,
    step,
    take_over,
    take_over_report,
    take_step,
    unknown_member,
    with_report,
)
from .consumer_timers import member_join_timer, member_sync_timer, restart_session, revocation_timer
from .downgrade import downgrade_with_replaced, is_downgrade_due
from .embedded_protocol import partitions_by_id, read_subscription, write_assignment
from .generation import CONSUMER_PROTOCOL_TYPE
from .heartbeat_request import MemberReport
from .shard import GroupCoordinatorShard
from .timeline import EventKind


def group_to_join(shard: GroupCoordinatorShard, group_id: str) -> ConsumerGroup | None:
    """The consumer group that a classic member is to join; None where JoinGroup is to a classic group, or makes one."""
    group = shard.consumer_group(group_id)
    return None if group is None or group.is_empty else group


# --- JoinGroup --------------------------------------------------------------------------------------------------------


def begin_join(
    shard: GroupCoordinatorShard, group: ConsumerGroup, request: JoinGroupRequest, client: Client, now: CoordinatorTime
) -> Heartbeat | JoinGroupResponse:
    """Find the member and take over what it says; the response where that is all. ``complete_join`` follows otherwise.

    Raises KafkaError: INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, and
    UNKNOWN_SERVER_ERROR where its subscription cannot be read, as in Kafka.
    """
    group_id, instance_id = group.group_id, request.group_instance_id
    if not shard.context.settings.allows_classic_members:
        why = f"Cannot join the consumer group {group_id} with the classic protocol because the group migration is disabled."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
    member_id = request.member_id or shard.new_consumer_id()
    check_size(shard, group, member_id)
    if not _supports(group, request):
        why = f"Member {member_id}'s protocols are not supported."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
    if not request.member_id and instance_id is None and client.version >= MEMBER_ID_REQUIRED_FROM:
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    change = ConsumerGroupChange(group_id)
    holder = None if instance_id is None else group.member_of_instance(instance_id)
    replaced = None
    if holder is not None and not request.member_id:
        before, replaced = take_over(group, holder, member_id, change), holder.member_id
    elif instance_id is not None and request.member_id:
        before = static_holder(group, instance_id, member_id)
    else:
        before = group.members.newest().get(member_id) or ConsumerGroupMember(member_id)
    report = _report(shard, request, member_id, client)
    if report.owned and before == ConsumerGroupMember(member_id):
        # It was removed, and others may have its partitions. Kafka takes it in, and it reads them until SyncGroup.
        raise unknown_member(group, member_id)
    joining = Heartbeat(report, group, before, with_report(before, report), change, replaced=replaced)
    take_over_report(shard, joining)
    if holder is not None and holder.classic is None and is_downgrade_due(shard, group, [holder], joining.updated):
        return _downgrade(shard, joining, holder, now)
    return joining


def complete_join(shard: GroupCoordinatorShard, joining: Heartbeat, now: CoordinatorTime) -> JoinGroupResponse:
    """Take the member's step, write everything, and respond. Raises KafkaError."""
    member = take_step(shard, joining, now)
    group_id, member_id = joining.report.group_id, member.member_id
    shard.timers.cancel(member_join_timer(group_id, member_id))
    shard.timers.cancel(revocation_timer(group_id, member_id))
    shard.timers.set(member_sync_timer(group_id, member_id), now.monotonic_ms + member.rebalance_timeout_ms)
    return _joined(member)


def _supports(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Whether all classic members offer one of these protocols; without classic members, any will do."""
    offered = group.classic_protocols.newest()
    return request.protocol_type == CONSUMER_PROTOCOL_TYPE and any(
        offered.get(protocol.name, 0) == group.classic_member_count for protocol in request.protocols
    )


def _report(shard: GroupCoordinatorShard, request: JoinGroupRequest, member_id: str, client: Client) -> MemberReport:
    """The content of JoinGroup. All protocols of a consumer have the same subscription, so the first one is read."""
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)
    try:
        subscription = read_subscription(protocols[0][1])
    except ProtocolError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription of {member_id}: {error}") from error
    timeout_ms = request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms
    return MemberReport(
        group_id=request.group_id,
        member_id=member_id,
        client=client,
        instance_id=request.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=timeout_ms,
        topic_names=frozenset(subscription.topics),
        expression="",
        server_assignor=None,
        owned=partitions_by_id(subscription.owned_partitions, shard.context.topics),
        classic=ClassicSupport(request.session_timeout_ms, protocols),
    )


def _downgrade(
    shard: GroupCoordinatorShard, joining: Heartbeat, holder: ConsumerGroupMember, now: CoordinatorTime
) -> JoinGroupResponse:
    """The group becomes a classic one: the only member of the consumer protocol has come back as this one."""
    group, member, reason = joining.group, joining.updated, None
    if group.target.epoch < joining.group_epoch:
        reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
    else:
        member = step(shard, joining)
        if member is not joining.updated:
            joining.change.assignments.append(member)
    downgrade_with_replaced(shard, group, holder, member, joining.change, reason, now)
    return _joined(member)


def _joined(member: ConsumerGroupMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=_classic(member).protocols[0][0],
        member_id=member.member_id,
    )


# --- SyncGroup, Heartbeat ---------------------------------------------------------------------------------------------


def sync(
    shard: GroupCoordinatorShard, group: ConsumerGroup, request: SyncGroupRequest, now: CoordinatorTime
) -> SyncGroupResponse:
    """SyncGroup. KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, and
    REBALANCE_IN_PROGRESS where there is a new target.
    """
    member = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    classic = _classic(member)
    name, metadata = classic.protocols[0]
    for asked, known in ((request.protocol_type, CONSUMER_PROTOCOL_TYPE), (request.protocol_name, name)):
        if asked is not None and asked != known:
            why = f"Member {member.member_id} asks for {asked}, and had {known} when it joined."
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
    # One that has partitions to give up has joined already. It joins again when it has done so.
    if member.epoch < group.target.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(shard, group, member, now)
        why = f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin to catch up."
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, why)
    shard.timers.cancel(member_sync_timer(group.group_id, member.member_id))
    restart_session(shard, member, group.group_id, now)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(member.assigned.epochs, shard.context.topics, metadata),
    )


def heartbeat(
    shard: GroupCoordinatorShard, group: ConsumerGroup, request: HeartbeatRequest, now: CoordinatorTime
) -> HeartbeatResponse:
    """Heartbeat. KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    member = _member(group, request.member_id, request.group_instance_id, request.generation_id)
    restart_session(shard, member, group.group_id, now)
    if not _has_to_join(group, member):
        return HeartbeatResponse()
    _expect_join(shard, group, member, now)
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def _has_to_join(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether the member can take a step, for which it has to join again."""
    if member.epoch < group.target.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        group.owner_epoch(topic_id, partition) != NOBODY
        for topic_id, partitions in group.target.of(member.member_id).items()
        for partition in partitions - member.assigned.of(topic_id).keys()
    )


def _expect_join(
    shard: GroupCoordinatorShard, group: ConsumerGroup, member: ConsumerGroupMember, now: CoordinatorTime
) -> None:
    timer = member_join_timer(group.group_id, member.member_id)
    if timer not in shard.timers:
        shard.timers.set(timer, now.monotonic_ms + member.rebalance_timeout_ms)


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> ConsumerGroupMember:
    """The classic member of this name. KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or ILLEGAL_GENERATION."""
    member = _member_of_name(group, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    if member.epoch != generation_id:
        why = f"The request generation id {generation_id} is not equal to the member epoch {member.epoch} of member {member_id}."
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, why)
    return member


def _member_of_name(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    if instance_id is not None:
        return static_holder(group, instance_id, member_id)
    member = group.members.newest().get(member_id)
    if member is None:
        raise unknown_member(group, member_id)
    return member


def _classic(member: ConsumerGroupMember) -> ClassicSupport:
    assert member.classic is not None
    return member.classic


# --- LeaveGroup -------------------------------------------------------------------------------------------------------


def leave(
    shard: GroupCoordinatorShard, group: ConsumerGroup, request: LeaveGroupRequest, now: CoordinatorTime
) -> LeaveGroupResponse:
    """LeaveGroup of ``request.members``, whatever protocol they have: an administrator removes members by it.

    KafkaError, and all stay, when the log refuses.
    """
    responses: list[MemberResponse] = []
    left: dict[str, ConsumerGroupMember] = {}
    for identity in request.members:
        response = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            member = _leaving(group, identity)
            left[member.member_id] = member
        except KafkaError as error:
            response.error_code = error.code
        responses.append(response)
    if left:
        try:
            why = EventKind.LEFT, request.members[0].reason or ""
            remove_members(shard, group, list(left.values()), now, why)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
    return LeaveGroupResponse(members=responses)


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
    instance_id = identity.group_instance_id
    if instance_id is not None and not identity.member_id:
        # An administrator removes a static member, whose member id only it knows itself.
        holder = group.member_of_instance(instance_id)
        if holder is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        return holder
    return _member_of_name(group, identity.member_id, instance_id)
