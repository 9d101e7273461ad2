"""The records of a change of a consumer group (KIP-848), in Kafka's order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ..wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)
from .consumer_group import ConsumerGroup, ResolvedExpression
from .consumer_group_member import ConsumerGroupMember
from .records import CoordinatorRecord


@dataclasses.dataclass(slots=True)
class ConsumerGroupChange:
    """The parts of one change, filled in as a request is worked through. ``records`` has them in the order to write."""

    group_id: str
    removed: list[str] = dataclasses.field(default_factory=list)
    """Ids of members that go."""
    subscriptions: list[ConsumerGroupMember] = dataclasses.field(default_factory=list)
    """Members whose subscription is new."""
    expressions: dict[str, ResolvedExpression | None] = dataclasses.field(default_factory=dict)
    """None where the last member with the expression goes."""
    epoch: tuple[int, int] | None = None
    """The group's new epoch, and its metadata hash."""
    drops_partition_metadata: bool = False
    """Whether a record of Kafka 4.0 with the partitions of the topics goes."""
    targets: dict[str, Mapping[bytes, AbstractSet[int]]] = dataclasses.field(default_factory=dict)
    """By member id: topic id -> partitions."""
    target_epoch: tuple[int, int] | None = None
    """The epoch of the new target, and the wall time in ms. It comes after the members' parts, because it makes them valid."""
    assignments: list[ConsumerGroupMember] = dataclasses.field(default_factory=list)
    """Members that have taken a step. One that takes over and then takes a step is there twice."""

    def records(self) -> list[CoordinatorRecord]:
        """Removals first, so that a static member finds its instance id free; then the types 5, 16, 3, 7, 6 and 8."""
        group_id = self.group_id
        records = [record for member_id in self.removed for record in _removal(group_id, member_id)]
        records += [_subscription(group_id, member) for member in self.subscriptions]
        records += [_expression(group_id, expression, to) for expression, to in self.expressions.items()]
        if self.epoch is not None:
            epoch, metadata_hash = self.epoch
            value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            records.append(CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), value))
        if self.drops_partition_metadata:
            records.append(CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None))
        records += [_target_of_member(group_id, member_id, target) for member_id, target in self.targets.items()]
        if self.target_epoch is not None:
            records.append(_target_epoch(group_id, *self.target_epoch))
        return records + [_current_assignment(group_id, member) for member in self.assignments]


def group_removal(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """The end of a group: tombstones of all its records, that of the group's own last."""
    group_id = group.group_id
    members: Sequence[str] = list(group.members)
    targets: Sequence[str] = list(dict.fromkeys([*members, *group.target.members]))
    keys = [
        *(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member) for member in members),
        *(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member) for member in targets),
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        *(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member) for member in members),
        *(
            ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
            for expression in group.expressions
        ),
        ConsumerGroupPartitionMetadataKey(group_id=group_id),
        ConsumerGroupMetadataKey(group_id=group_id),
    ]
    return [CoordinatorRecord(key, None) for key in keys]


def _removal(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    names = {"group_id": group_id, "member_id": member_id}
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(**names), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(**names), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(**names), None),
    ]


def _subscription(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.subscription())


def _expression(group_id: str, expression: str, to: ResolvedExpression | None) -> CoordinatorRecord:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    if to is None:
        return CoordinatorRecord(key, None)
    value = ConsumerGroupRegularExpressionValue(topics=sorted(to.topics), version=to.version, timestamp=to.timestamp_ms)
    return CoordinatorRecord(key, value)


def _target_of_member(group_id: str, member_id: str, target: Mapping[bytes, AbstractSet[int]]) -> CoordinatorRecord:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    topics = [
        TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(target.items())
    ]
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def _target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def _current_assignment(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.current_assignment())
