"""The records of a change of a share group (KIP-932), in Kafka's order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from ..wire.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
)
from .records import CoordinatorRecord
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember
from .share_state_partitions import StatePartitions


@dataclasses.dataclass(slots=True)
class ShareGroupChange:
    """The parts of one change, filled in as a request is worked through. ``records`` has them in the order to write."""

    group_id: str
    removed: list[str] = dataclasses.field(default_factory=list)
    """Ids of members that go."""
    subscriptions: list[ShareGroupMember] = dataclasses.field(default_factory=list)
    """Members whose subscription is new."""
    epoch: tuple[int, int] | None = None
    """The group's new epoch, and its metadata hash."""
    targets: dict[str, Mapping[bytes, AbstractSet[int]]] = dataclasses.field(default_factory=dict)
    """By member id: topic id -> partitions."""
    target_epoch: tuple[int, int] | None = None
    """The epoch of the new target, and the wall time in ms. It comes after the members' parts, because it makes them valid."""
    assignments: list[ShareGroupMember] = dataclasses.field(default_factory=list)
    """Members that have moved to another target."""
    states: StatePartitions | None = None

    def records(self) -> list[CoordinatorRecord]:
        """Removals first; then the types 10, 11, 13, 12, 14 and 15."""
        group_id = self.group_id
        records = [record for member_id in self.removed for record in _removal(group_id, member_id)]
        records += [_subscription(group_id, member) for member in self.subscriptions]
        if self.epoch is not None:
            epoch, metadata_hash = self.epoch
            value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            records.append(CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value))
        records += [_target_of_member(group_id, member_id, target) for member_id, target in self.targets.items()]
        if self.target_epoch is not None:
            records.append(_target_epoch(group_id, *self.target_epoch))
        records += [_current_assignment(group_id, member) for member in self.assignments]
        if self.states is not None:
            key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
            records.append(CoordinatorRecord(key, self.states.to_record()))
        return records


def share_group_removal(group: ShareGroup) -> list[CoordinatorRecord]:
    """The end of a group: tombstones of all its records, that of the group's own last."""
    group_id = group.group_id
    members = list(group.members)
    targets = list(dict.fromkeys([*members, *group.target.members]))
    keys = [
        *(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member) for member in members),
        *(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member) for member in targets),
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        *(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member) for member in members),
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupMetadataKey(group_id=group_id),
    ]
    return [CoordinatorRecord(key, None) for key in keys]


def _removal(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(**names), None),
        CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(**names), None),
        CoordinatorRecord(ShareGroupMemberMetadataKey(**names), None),
    ]


def _subscription(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.subscription())


def _target_of_member(group_id: str, member_id: str, target: Mapping[bytes, AbstractSet[int]]) -> CoordinatorRecord:
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    topics = [
        TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(target.items())
    ]
    return CoordinatorRecord(key, ShareGroupTargetAssignmentMemberValue(topic_partitions=topics))


def _target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def _current_assignment(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.current_assignment())
