"""Deletion of groups on request, and of offsets that have expired or whose topic is gone.

Retention counts from the moment the group became Empty. Where there is no group protocol it counts from the commit, as it
does while a Stable group of consumers no longer subscribes to the topic. A commit that named its own expiry (OffsetCommit
versions 2 to 4) expires then. No offset expires while a classic group is rebalancing, or where its subscription cannot be read.
In a consumer group (KIP-848) it counts from the commit of a topic that nobody reads. A group without members is deleted with its
last offset.

A share group stays until it is deleted, and what the share coordinator keeps of it. So do the offsets of a Streams group: its
members are not served here, so its use cannot be known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime
from ..wire.messages.consumer_offsets import OffsetCommitValue
from ..wire.messages.delete_groups import DeletableGroupResult
from .classic_group import ClassicGroup
from .committed_offsets import CommittedOffset, each_commit
from .consumer_group import ConsumerGroup
from .conversion import removal, write_all
from .group import Group
from .live_group import GroupState
from .records import CoordinatorRecord, offset_tombstone
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .share_group_records import ShareGroupChange
from .streams_group import StreamsGroup


def delete_group(shard: GroupCoordinatorShard, group_id: str, now: CoordinatorTime) -> DeletableGroupResult:
    """DeleteGroups of one group. KafkaError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
    partitions = sorted(shard.offsets.partitions_of(group_id))
    write_all(shard, [offset_tombstone(group_id, *partition) for partition in partitions] + removal(group), now)
    return DeletableGroupResult(group_id=group_id)


def delete_topics(shard: GroupCoordinatorShard, topics: Collection[str], now: CoordinatorTime) -> None:
    """Remove all offsets of topics that no longer exist, and their partitions from share groups.

    The share coordinator deletes what it keeps of them by itself.
    """
    records = [offset_tombstone(*partition) for partition in shard.offsets.partitions_in(topics)]
    for group in shard.groups.values():
        if isinstance(group, ShareGroup):
            gone = {
                topic_id
                for topic_id, name in group.states.topics()
                if name in topics and shard.context.topics.find_by_id(topic_id) is None
            }
            if gone:
                change = ShareGroupChange(group.group_id, states=group.states.without_topics(gone))
                records += change.records()
    write_all(shard, records, now)


def expire_group(shard: GroupCoordinatorShard, group: Group, now: CoordinatorTime) -> None:
    """Remove what is too old, and the group itself when nothing of it is left. Share and Streams groups stay."""
    if isinstance(group, ShareGroup | StreamsGroup):
        return
    retention_ms = shard.settings.offsets_retention_minutes * 60_000
    base = _retention_base(group)
    expired: list[CoordinatorRecord] = []
    left = False
    for topic, partition, committed in each_commit(shard.offsets.of(group.group_id)):
        if (
            base is not None
            and not group.is_subscribed_to(topic)
            and _is_expired(committed, base, now.wall_ms, retention_ms)
            and not shard.offsets.is_unstable(group.group_id, topic, partition)
        ):
            expired.append(offset_tombstone(group.group_id, topic, partition))
        else:
            left = True
    is_expected = isinstance(group, ClassicGroup) and group.live.pending_members
    if not left and group.is_empty and not is_expected and not shard.offsets.has_open_transaction(group.group_id):
        expired += removal(group)
    write_all(shard, expired, now)


def _retention_base(group: ClassicGroup | ConsumerGroup) -> Callable[[OffsetCommitValue], int] | None:
    """From when the retention of a commit counts; None when the group expires nothing."""
    if isinstance(group, ClassicGroup) and group.live.protocol_type is not None:
        live = group.live
        if live.state is GroupState.EMPTY:
            since = live.generation.state_timestamp_ms
            return lambda value: since if since != -1 else value.commit_timestamp
        if live.state is not GroupState.STABLE or live.generation.subscribed_topics is None:
            return None
    return lambda value: value.commit_timestamp


def _is_expired(
    committed: CommittedOffset, base: Callable[[OffsetCommitValue], int], now_ms: int, retention_ms: int
) -> bool:
    if committed.value.expire_timestamp != -1:
        return now_ms >= committed.value.expire_timestamp
    return now_ms - base(committed.value) >= retention_ms
