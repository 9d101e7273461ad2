"""What is deleted: groups by request, offsets that are too old, offsets of topics that are gone.

Retention counts from the moment the group became Empty. Where there is no group protocol it counts from the commit, as it
does while a Stable group of consumers no longer subscribes to the topic. A commit that named its own expiry (OffsetCommit
versions 2 to 4) expires then. No offset expires while a group is rebalancing, or where its subscription cannot be read. A group
without members is deleted with its last offset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import Moment
from ..wire.messages.consumer_offsets import OffsetCommitValue
from ..wire.messages.delete_groups import DeletableGroupResult
from .group import CommittedOffset, Group, GroupState
from .records import CoordinatorRecord, group_tombstone, offset_tombstone
from .shard import Shard

TOMBSTONES_PER_BATCH = 1000
"""Deletions need not be atomic, and a batch has to stay below message.max.bytes."""


def delete_group(shard: Shard, group_id: str, now: Moment) -> DeletableGroupResult:
    """DeleteGroups of one group. KafkaError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.state is not GroupState.EMPTY:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
    partitions = {(topic, partition) for topic, partition, _ in group.committed_partitions()}
    for commits in shard.transactional.values():
        partitions |= {(topic, partition) for of_group, topic, partition in commits if of_group == group_id}
    records: list[CoordinatorRecord] = [offset_tombstone(group_id, *pair) for pair in sorted(partitions)]
    _write(shard, [*records, group_tombstone(group_id)], now)
    return DeletableGroupResult(group_id=group_id)


def delete_topics(shard: Shard, topics: Collection[str], now: Moment) -> None:
    """Remove all offsets of topics that no longer exist."""
    records: list[CoordinatorRecord] = []
    for group in shard.groups.values():
        for topic in topics:
            records += [
                offset_tombstone(group.group_id, topic, partition) for partition in group.offsets.get(topic, ())
            ]
    for commits in shard.transactional.values():
        records += [offset_tombstone(*key) for key in commits if key[1] in topics]
    _write(shard, records, now)


def expire_group(shard: Shard, group: Group, now: Moment) -> None:
    """Remove what is too old, and the group itself when nothing of it is left."""
    retention_ms = shard.settings.offsets_retention_minutes * 60_000
    base = _retention_base(group)
    expired: list[CoordinatorRecord] = []
    left = False
    for topic, partition, committed in group.committed_partitions():
        if (
            base is not None
            and not group.is_subscribed_to(topic)
            and _is_expired(committed, base, now.wall_ms, retention_ms)
            and not shard.is_unstable(group.group_id, topic, partition)
        ):
            expired.append(offset_tombstone(group.group_id, topic, partition))
        else:
            left = True
    is_empty = group.state is GroupState.EMPTY and not group.pending_members
    if not left and is_empty and not shard.has_open_transaction(group.group_id):
        expired.append(group_tombstone(group.group_id))
    _write(shard, expired, now)


def _retention_base(group: Group) -> Callable[[OffsetCommitValue], int] | None:
    """From when the retention of a commit counts; None when the group expires nothing."""
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since = group.state_timestamp_ms
            return lambda value: since if since != -1 else value.commit_timestamp
        if group.state is not GroupState.STABLE or group.subscribed_topics is None:
            return None
    return lambda value: value.commit_timestamp


def _is_expired(
    committed: CommittedOffset, base: Callable[[OffsetCommitValue], int], now_ms: int, retention_ms: int
) -> bool:
    if committed.value.expire_timestamp != -1:
        return now_ms >= committed.value.expire_timestamp
    return now_ms - base(committed.value) >= retention_ms


def _write(shard: Shard, records: Sequence[CoordinatorRecord], now: Moment) -> None:
    for start in range(0, len(records), TOMBSTONES_PER_BATCH):
        shard.write(records[start : start + TOMBSTONES_PER_BATCH], now)
