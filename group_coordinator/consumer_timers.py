"""The timers of a consumer group's members: the session, and the times for giving partitions up, joining and syncing.

A member is removed when one of them is due (``consumer_membership.expire``).
"""

from __future__ import annotations

from ..replication.coordinator_log import CoordinatorTime
from .consumer_group_member import ConsumerGroupMember, MemberState
from .shard import GroupCoordinatorShard
from .timers import TimerName


def session_timer(group_id: str, member_id: str) -> TimerName:
    """Name of the timer that ends a member's session."""
    return ("session", group_id, member_id)


def revocation_timer(group_id: str, member_id: str) -> TimerName:
    """Name of the timer that ends a member's time for giving partitions up."""
    return ("revocation", group_id, member_id)


def member_join_timer(group_id: str, member_id: str) -> TimerName:
    """Name of the timer that ends the time of a classic member for joining again."""
    return ("member-join", group_id, member_id)


def member_sync_timer(group_id: str, member_id: str) -> TimerName:
    """Name of the timer that ends the time of a classic member for asking for its assignment."""
    return ("member-sync", group_id, member_id)


def restart_session(
    shard: GroupCoordinatorShard, member: ConsumerGroupMember, group_id: str, now: CoordinatorTime
) -> None:
    """The member was heard: its session begins again."""
    if member.classic is None:
        timeout_ms = shard.context.times(group_id).session_timeout_ms
    else:
        timeout_ms = member.classic.session_timeout_ms
    shard.timers.set(session_timer(group_id, member.member_id), now.monotonic_ms + timeout_ms)


def limit_revocation(
    shard: GroupCoordinatorShard, member: ConsumerGroupMember, group_id: str, now: CoordinatorTime
) -> None:
    """A member with partitions to give up has its rebalance timeout for it. One with the classic protocol has other timers."""
    timer = revocation_timer(group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        shard.timers.set(timer, now.monotonic_ms + member.rebalance_timeout_ms)
    else:
        shard.timers.cancel(timer)


def cancel_timers(shard: GroupCoordinatorShard, group_id: str, member_id: str) -> None:
    """The member is gone."""
    for timer in (session_timer, revocation_timer, member_join_timer, member_sync_timer):
        shard.timers.cancel(timer(group_id, member_id))
