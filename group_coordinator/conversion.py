"""Changes of a group's type: a classic member joins a group of another protocol that has no members.

Its records go, its offsets stay, and the group id is of a classic group from then on. A group with members keeps them.
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
from .unserved_group import UnservedGroup, UnservedKind

logger = logging.getLogger(__name__)

RECORDS_PER_BATCH = 1000


def make_room(shard: GroupCoordinatorShard, group_id: str, now: CoordinatorTime) -> None:
    """A member of the classic protocol is about to join: remove a group of another protocol that has the id, if it may go.

    KafkaError INCONSISTENT_GROUP_PROTOCOL where it stays, and why its records could not be written.
    """
    group = shard.groups.get(group_id)
    if group is None or isinstance(group, ClassicGroup):
        return
    if not group.is_empty or (isinstance(group, UnservedGroup) and not group.may_change_type):
        why = _refusal(group)
        if isinstance(group, UnservedGroup) and not group.is_refusal_logged:
            logger.warning("Group %s: a member of the classic protocol cannot join: %s", group_id, why)
            group.is_refusal_logged = True
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
    try:
        write_all(shard, removal(group), now)
    except KafkaError as error:
        raise as_seen_by_clients(error) from error
    logger.info("Group %s: the empty %s group is a classic group from now on", group_id, group.type_name)


def removal(group: Group) -> list[CoordinatorRecord]:
    """The tombstones of the records that make a group. Its offsets stay."""
    if isinstance(group, ConsumerGroup):
        return group_removal(group)
    if isinstance(group, UnservedGroup):
        return [CoordinatorRecord(key, None) for key in group.keys.values()]
    return [group_tombstone(group.group_id)]


def _refusal(group: ConsumerGroup | UnservedGroup) -> str:
    if isinstance(group, UnservedGroup) and group.kind is UnservedKind.SHARE:
        return "it is a share group, and those are not served here; use another group id, or delete the group"
    return f"it has {counted(group.member_count, 'member')} of the {group.type_name} protocol; use another group id"


def write_all(shard: GroupCoordinatorShard, records: Sequence[CoordinatorRecord], now: CoordinatorTime) -> None:
    """Write removals, which need not be atomic, in batches that stay below max.message.bytes. Raises KafkaError."""
    for start in range(0, len(records), RECORDS_PER_BATCH):
        shard.write(records[start : start + RECORDS_PER_BATCH], now)
