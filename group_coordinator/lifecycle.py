"""The begin and end of a shard's service, and its timers, which go to the rules of each group's protocol."""

from __future__ import annotations

from ..replication.coordinator_log import CoordinatorTime
from . import consumer_membership, rebalance, share_heartbeat
from .classic_group import ClassicGroup
from .consumer_group import ConsumerGroup
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .timers import TimerName


def resume(shard: GroupCoordinatorShard, now: CoordinatorTime) -> None:
    """The shard has been loaded: every member gets a fresh session."""
    for group in list(shard.groups.values()):
        if isinstance(group, ClassicGroup):
            rebalance.resume(shard, group, now)
        elif isinstance(group, ConsumerGroup):
            consumer_membership.resume(shard, group, now)
        elif isinstance(group, ShareGroup):
            share_heartbeat.resume(shard, group, now)


def release(shard: GroupCoordinatorShard) -> None:
    """The shard has moved: clients that wait are sent to look for the new coordinator."""
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            rebalance.release(shard, group)


def expire(shard: GroupCoordinatorShard, name: TimerName, now: CoordinatorTime) -> None:
    """A timer is due. One of a group that has become another kind since is of nobody."""
    group = shard.groups.get(name[1])
    if isinstance(group, ClassicGroup):
        rebalance.expire(shard, group, name, now)
    elif isinstance(group, ConsumerGroup) and len(name) == _OF_A_MEMBER:
        consumer_membership.expire(shard, group, name, now)
    elif isinstance(group, ShareGroup) and len(name) == _OF_A_MEMBER:
        share_heartbeat.expire(shard, group, name, now)


_OF_A_MEMBER = 3
"""Parts of the name of a timer that is a member's: the kind, the group, the member."""
