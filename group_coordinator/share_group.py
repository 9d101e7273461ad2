"""A share group of KIP-932, as an immutable value that the records of the group make.

Its members read the same partitions together: each record goes to one of them. So a partition may be assigned to several members,
and a member goes to each target assignment at once. A partition is assigned only after the share coordinator has begun to keep
its state (``share_state_partitions``).

The value is what the last record of each key says. So any prefix of the log, any compacted part of it and any record that comes
twice are understood, as with a consumer group.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from ..metadata.persistent_dict import PersistentDict
from ..wire.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from ..wire.schema import Message
from .modern_group import FIRST_EPOCH, TargetAssignment, counted
from .share_group_member import ShareGroupMember
from .share_state_partitions import StatePartitions

ASSIGNOR = "simple"
"""The one assignor of share groups."""


class ShareGroupState(enum.Enum):
    """The value is as ListGroups tells it."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclasses.dataclass(frozen=True, slots=True)
class ShareGroup:
    """One group."""

    type_name: ClassVar = "share"
    protocol_type: ClassVar = "share"
    protocol_name: ClassVar = ASSIGNOR
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Of the topics of the members, to see whether these have changed; 0 without topics."""
    is_written: bool = False
    """Whether a record has the epoch."""
    members: PersistentDict[str, ShareGroupMember] = dataclasses.field(default_factory=PersistentDict)
    """By member id."""
    target: TargetAssignment = dataclasses.field(default_factory=TargetAssignment)
    states: StatePartitions = dataclasses.field(default_factory=StatePartitions)
    topic_subscribers: PersistentDict[str, int] = dataclasses.field(default_factory=PersistentDict)
    """Topic name -> the number of members that read it. Derived from the members."""

    @property
    def state(self) -> ShareGroupState:
        """Stable means that it has members, wherever they are on their way."""
        return ShareGroupState.STABLE if self.members.newest() else ShareGroupState.EMPTY

    @property
    def state_name(self) -> str:
        """As ListGroups tells it."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members.newest()

    @property
    def member_count(self) -> int:
        return len(self.members.newest())

    @property
    def exists(self) -> bool:
        """Whether any record of the group has a value."""
        is_written = self.is_written or self.target.is_written or self.states.is_written
        return is_written or bool(self.members.newest()) or bool(self.target.members.newest())

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads ``topic``."""
        return topic in self.topic_subscribers.newest()

    def with_record(self, key: Message, value: Message | None) -> ShareGroup:
        """After one record of this group, a tombstone if there is no value. Other types of records change nothing."""
        rule = _RULES.get(key.api_key)
        return self if rule is None else rule(self, key, value)


def _epoch(group: ShareGroup, _: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> ShareGroup:
    if value is None:
        return dataclasses.replace(group, epoch=FIRST_EPOCH, metadata_hash=0, is_written=False)
    return dataclasses.replace(group, epoch=value.epoch, metadata_hash=value.metadata_hash, is_written=True)


def _subscription(
    group: ShareGroup, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> ShareGroup:
    return _with_member(group, _member(group, key.member_id).with_subscription(value))


def _target_epoch(
    group: ShareGroup,
    _: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> ShareGroup:
    return dataclasses.replace(group, target=group.target.at(value))


def _target_of_member(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMemberKey,
    value: ShareGroupTargetAssignmentMemberValue | None,
) -> ShareGroup:
    return dataclasses.replace(group, target=group.target.with_part(key.member_id, value))


def _current_assignment(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> ShareGroup:
    return _with_member(group, _member(group, key.member_id).with_current_assignment(value))


def _state_partitions(
    group: ShareGroup, _: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> ShareGroup:
    return dataclasses.replace(group, states=StatePartitions.from_record(value))


_RULES: Mapping[int, Callable[[ShareGroup, Any, Any], ShareGroup]] = {
    10: _subscription,
    11: _epoch,
    12: _target_epoch,
    13: _target_of_member,
    14: _current_assignment,
    15: _state_partitions,
}
"""Record type -> its rule."""


def _member(group: ShareGroup, member_id: str) -> ShareGroupMember:
    return group.members.newest().get(member_id) or ShareGroupMember(member_id)


def _with_member(group: ShareGroup, member: ShareGroupMember) -> ShareGroup:
    old = _member(group, member.member_id)
    return dataclasses.replace(
        group,
        members=group.members.changed({member.member_id: member if member.exists else None}),
        topic_subscribers=counted(group.topic_subscribers, old.topic_names, member.topic_names),
    )
