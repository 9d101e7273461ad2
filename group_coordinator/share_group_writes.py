"""The write of a change of a share group (KIP-932), and the events that people see of it in the timeline.

The events are the difference between the group before and after the write, so none is noted where the log refuses. A rebalance of
a share group lasts from a change until the next target assignment is made; when it began is soft state.
"""

from __future__ import annotations

from ..base.wording import counted, listed
from ..replication.coordinator_log import CoordinatorTime
from .shard import GroupCoordinatorShard
from .share_group import ASSIGNOR, ShareGroup
from .share_group_member import ShareGroupMember
from .share_group_records import ShareGroupChange
from .timeline import EventKind

_MOST_NAMES = 3


def write_share_change(
    shard: GroupCoordinatorShard,
    change: ShareGroupChange,
    now: CoordinatorTime,
    *,
    removal: tuple[EventKind, str] = (EventKind.LEFT, ""),
    target_ms: float | None = None,
) -> None:
    """Write a change as one batch, and note what it makes of the group. Raises KafkaError.

    ``removal`` says why members go, and ``target_ms`` how long the target assignment took to make.
    """
    group_id = change.group_id
    before = shard.share_group(group_id) or ShareGroup(group_id)
    had = dict(before.members) if change.removed else before.members.newest()
    joined = [member for member in change.subscriptions if member.member_id not in had]
    gone = [had[member_id] for member_id in change.removed if member_id in had]
    records = change.records()
    if not records:
        return
    shard.write(records, now)
    after = shard.share_group(group_id)
    if after is None:
        return

    def note(
        kind: EventKind, detail: str = "", member: ShareGroupMember | None = None, took_ms: int | None = None
    ) -> None:
        shard.timeline.note(group_id, after.epoch, kind, now, member, detail, took_ms)

    for member in gone:
        note(*removal, member)
    for member in joined:
        note(EventKind.JOINED, f"reads {listed(sorted(member.topic_names), _MOST_NAMES)}", member)
    if change.epoch is not None:
        shard.rebalances_began.setdefault(group_id, now.monotonic_ms)
        note(EventKind.SHARE_EPOCH, _why(after, change, joined, gone))
    if change.target_epoch is not None:
        began_ms = shard.rebalances_began.pop(group_id, now.monotonic_ms)
        took = "" if target_ms is None else f", in {target_ms:.1f} ms"
        detail = f"{ASSIGNOR}, for {counted(after.member_count, 'member')}{took}"
        note(EventKind.TARGET, detail, took_ms=round(now.monotonic_ms - began_ms))
    if after.is_empty and gone:
        shard.rebalances_began.pop(group_id, None)
        note(EventKind.EMPTIED)


def _why(
    group: ShareGroup, change: ShareGroupChange, joined: list[ShareGroupMember], gone: list[ShareGroupMember]
) -> str:
    """Why the group has another epoch."""
    if gone:
        names = listed([member.member_id for member in gone], _MOST_NAMES)
        return f"{names} {'is' if len(gone) == 1 else 'are'} gone, {counted(group.member_count, 'member')} left"
    if joined:
        names = listed([member.member_id for member in joined], _MOST_NAMES)
        return f"{names} joined, {counted(group.member_count, 'member')} now"
    if change.subscriptions:
        return f"{listed([member.member_id for member in change.subscriptions], _MOST_NAMES)} reads other topics"
    return "partitions wait for members, or topics of the group were created or deleted"
