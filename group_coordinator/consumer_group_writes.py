"""The write of a change of a consumer group (KIP-848), and the events that people see of it in the timeline.

The events are the difference between the group before and after the write, so none is noted where the log refuses. A rebalance of
a consumer group lasts from a change until every member has its part of the newest target assignment; when it began is soft state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.wording import counted, listed
from ..replication.coordinator_log import CoordinatorTime
from .assignors.registry import assignor_of_group
from .consumer_group import ConsumerGroup, ConsumerGroupState
from .consumer_group_member import ConsumerGroupMember
from .consumer_group_records import ConsumerGroupChange
from .records import CoordinatorRecord
from .shard import GroupCoordinatorShard
from .timeline import EventKind

_MOST_NAMES = 3


def write_change(
    shard: GroupCoordinatorShard,
    change: ConsumerGroupChange,
    now: CoordinatorTime,
    *,
    first_records: Sequence[CoordinatorRecord] = (),
    removal: tuple[EventKind, str] = (EventKind.LEFT, ""),
    target_ms: float | None = None,
) -> None:
    """Write ``first_records`` and a change as one batch, and note what it makes of the group. Raises KafkaError.

    ``removal`` says why members go, and ``target_ms`` how long the target assignment took to make.
    """
    group_id = change.group_id
    before = shard.consumer_group(group_id) or ConsumerGroup(group_id)
    records = [*first_records, *change.records()]
    if not records:
        return
    shard.write(records, now)
    after = shard.consumer_group(group_id)
    if after is None:
        return

    def note(kind: EventKind, detail: str = "", member: ConsumerGroupMember | None = None, took: bool = False) -> None:
        began_ms = shard.rebalances_began.get(group_id)
        took_ms = round(now.monotonic_ms - began_ms) if took and began_ms is not None else None
        shard.timeline.note(group_id, after.epoch, kind, now, member, detail, took_ms)

    for kind, detail, member in _of_members(before, after, change, removal):
        note(kind, detail, member)
    state = after.state
    if state in (ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING) or change.target_epoch is not None:
        shard.rebalances_began.setdefault(group_id, now.monotonic_ms)
    if change.epoch is not None:
        note(EventKind.EPOCH, _why(before, after, change))
    if change.target_epoch is not None:
        note(EventKind.TARGET, _made(shard, after, target_ms), took=True)
    if state is ConsumerGroupState.STABLE and before.state is not state:
        note(EventKind.SETTLED, took=True)
    elif state is ConsumerGroupState.EMPTY and before.state is not state:
        note(EventKind.EMPTIED)
    if state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
        shard.rebalances_began.pop(group_id, None)


def _of_members(
    before: ConsumerGroup, after: ConsumerGroup, change: ConsumerGroupChange, removal: tuple[EventKind, str]
) -> Iterator[tuple[EventKind, str, ConsumerGroupMember]]:
    """Members that go, take over or join."""
    had, has = before.members.newest(), after.members.newest()
    places = {}
    for member_id in change.removed:
        gone = had.get(member_id)
        if gone is None:
            continue
        successor = None if gone.instance_id is None else after.member_of_instance(gone.instance_id)
        if successor is None:
            yield *removal, gone
        else:
            places[successor.member_id] = f"from {member_id}, as {gone.instance_id}"
    for member_id in dict.fromkeys(member.member_id for member in change.subscriptions):
        if member_id in places:
            yield EventKind.TOOK_OVER, places[member_id], has[member_id]
        elif member_id not in had:
            yield EventKind.JOINED, _read_by(has[member_id]), has[member_id]


def _read_by(member: ConsumerGroupMember) -> str:
    """What a member reads, in words."""
    read = [*sorted(member.topic_names)[:_MOST_NAMES], *(["…"] if len(member.topic_names) > _MOST_NAMES else [])]
    if member.expression:
        read.append(f"the regular expression {member.expression}")
    return f"reads {', '.join(read)}" if read else "reads no topics"


def _why(before: ConsumerGroup, after: ConsumerGroup, change: ConsumerGroupChange) -> str:
    """Why the group has another epoch."""
    had, has = before.members.newest(), after.members.newest()
    subscriptions = {member.member_id: member for member in change.subscriptions}
    gone = [name for name in change.removed if name in had]
    come = [name for name in subscriptions if name not in had]
    changed = [
        name
        for name, member in subscriptions.items()
        if name in had and (member.topic_names, member.expression) != (had[name].topic_names, had[name].expression)
    ]
    if gone and not come:
        return (
            f"{listed(gone, _MOST_NAMES)} {'is' if len(gone) == 1 else 'are'} gone, {counted(len(has), 'member')} left"
        )
    if come:
        return f"{listed(come, _MOST_NAMES)} joined, {counted(len(has), 'member')} now"
    if changed:
        return f"{listed(changed, _MOST_NAMES)} reads other topics"
    if any(resolved is not None for resolved in change.expressions.values()):
        return "regular expressions match other topics, or these have changed"
    return "topics of the group were created, deleted or got partitions"


def _made(shard: GroupCoordinatorShard, group: ConsumerGroup, target_ms: float | None) -> str:
    """Which assignor made the target, for how many members, and in which time."""
    assignor = assignor_of_group(group.preferred_assignor, shard.context.settings.assignors)
    took = "" if target_ms is None else f", in {target_ms:.1f} ms"
    return f"{assignor.name}, for {counted(group.member_count, 'member')}{took}"
