"""Changes of an empty group's type: a classic member joins a group of another protocol that has no members.

Its records go, its offsets stay, and the group id is of a classic group from then on. Groups with members change by ``upgrade``
and ``downgrade``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from .classic_group import ClassicGroup
from .consumer_group import ConsumerGroup
from .consumer_group_records import group_removal
from .group import Group
from .records import CoordinatorRecord, group_tombstone
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .share_group_records import share_group_removal
from .streams_group import StreamsGroup

logger = logging.getLogger(__name__)

RECORDS_PER_BATCH = 1000


def check_room(shard: GroupCoordinatorShard, group_id: str) -> None:
    """A member of the classic protocol wants to join. KafkaError INCONSISTENT_GROUP_PROTOCOL where a group of this id stays."""
    group = shard.groups.get(group_id)
    why = None
    if isinstance(group, ShareGroup):
        why = "it is a share group; use another group id, or delete the group"
    elif isinstance(group, StreamsGroup) and not group.is_empty:
        why = f"it has {counted(group.member_count, 'member')} of the streams protocol; use another group id"
    if why is not None:
        if group_id not in shard.logged_refusals:
            logger.warning("Group %s: a member of the classic protocol cannot join: %s", group_id, why)
            shard.logged_refusals.add(group_id)
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)


def make_room(shard: GroupCoordinatorShard, group_id: str, now: CoordinatorTime) -> ClassicGroup:
    """A classic group for a member that joins, in the place of an empty group of another protocol (``check_room``).

    KafkaError where the records of that group cannot be written.
    """
    group = shard.groups.get(group_id)
    if group is not None:
        assert group.is_empty
        try:
            write_all(shard, removal(group), now)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        logger.info("Group %s: the empty %s group is a classic group from now on", group_id, group.type_name)
    return shard.classic_group(group_id) or shard.add_group(group_id)


def removal(group: Group) -> list[CoordinatorRecord]:
    """The tombstones of the records that make a group. Its offsets stay."""
    if isinstance(group, ConsumerGroup):
        return group_removal(group)
    if isinstance(group, ShareGroup):
        return share_group_removal(group)
    if isinstance(group, StreamsGroup):
        return [CoordinatorRecord(key, None) for key in group.keys.values()]
    return [group_tombstone(group.group_id)]


def write_all(shard: GroupCoordinatorShard, records: Sequence[CoordinatorRecord], now: CoordinatorTime) -> None:
    """Write removals, which need not be atomic, in batches that stay below max.message.bytes. Raises KafkaError."""
    for start in range(0, len(records), RECORDS_PER_BATCH):
        shard.write(records[start : start + RECORDS_PER_BATCH], now)
