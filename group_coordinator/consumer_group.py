"""A consumer group of KIP-848, as an immutable value that the records of the group make.

The group has an *epoch*, which grows with every change of its members or their topics. The *target assignment* of an epoch says
what each member is to have. Each member follows it at its own pace (``current_assignment``), so partitions change hands without
a pause for the others.

The value is what the last record of each key says. So any prefix of the log, any compacted part of it and any record that comes
twice are understood, and every leader of the partition gets the same value. A replayed record costs what it changes: mappings are
``PersistentDict``, whose older versions stay readable.

``ConsumerGroup.owners`` has the invariant of the protocol: no partition has two owners. A partition is owned from its assignment
until the client says that it has given it up.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from ..metadata.persistent_dict import PersistentDict
from ..wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ..wire.schema import Message
from .consumer_group_member import ConsumerGroupMember, MemberState
from .modern_group import FIRST_EPOCH, TargetAssignment, counted

NOBODY = -1
"""Owner epoch of a partition that nobody has."""


class ConsumerGroupState(enum.Enum):
    """The value is as ListGroups tells it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target is of an older epoch than the group."""
    RECONCILING = "Reconciling"
    """A member does not yet have all partitions of the target."""
    STABLE = "Stable"


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedExpression:
    """The topics that a regular expression stands for."""

    topics: frozenset[str]
    version: int
    """The version of the metadata that was searched."""
    timestamp_ms: int
    """Wall time."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """One group. The fields from ``static_members`` on are derived from the members."""

    type_name: ClassVar = "consumer"
    protocol_type: ClassVar = "consumer"
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    """Of the topics of the members, to see whether these have changed; 0 without topics."""
    is_written: bool = False
    """Whether a record has the epoch."""
    has_partition_metadata: bool = False
    """Whether there is a record with the partitions of its topics, as Kafka 4.0 wrote them: the next change takes it away."""
    members: PersistentDict[str, ConsumerGroupMember] = dataclasses.field(default_factory=PersistentDict)
    """By member id."""
    target: TargetAssignment = dataclasses.field(default_factory=TargetAssignment)
    expressions: PersistentDict[str, ResolvedExpression] = dataclasses.field(default_factory=PersistentDict)
    """By regular expression."""
    static_members: PersistentDict[str, str] = dataclasses.field(default_factory=PersistentDict)
    """Instance id -> member id."""
    owners: PersistentDict[tuple[bytes, int], tuple[str, ...]] = dataclasses.field(default_factory=PersistentDict)
    """Topic id and partition -> ids of the members that have it, assigned or pending revocation. It is one member, except where
    records are replayed a second time."""
    settled: PersistentDict[int, int] = dataclasses.field(default_factory=PersistentDict)
    """Epoch -> the number of stable members at it."""
    topic_subscribers: PersistentDict[str, int] = dataclasses.field(default_factory=PersistentDict)
    """Topic name -> the number of members that name it."""
    expression_subscribers: PersistentDict[str, int] = dataclasses.field(default_factory=PersistentDict)
    """Regular expression -> the number of members that have it."""
    assignor_votes: PersistentDict[str, int] = dataclasses.field(default_factory=PersistentDict)
    """Assignor -> the number of members that ask for it."""
    classic_protocols: PersistentDict[str, int] = dataclasses.field(default_factory=PersistentDict)
    """Assignor of a client -> the number of members with the classic protocol that offer it."""
    classic_member_count: int = 0
    """The number of members with the classic protocol."""

    @property
    def state(self) -> ConsumerGroupState:
        """At a cost that does not depend on the number of members."""
        members = self.members.newest()
        if not members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target.epoch:
            return ConsumerGroupState.ASSIGNING
        if self.settled.newest().get(self.target.epoch, 0) < len(members):
            return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    @property
    def protocol_name(self) -> str:
        """The assignor that its members ask for; "" where they ask for none."""
        return self.preferred_assignor or ""

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
        parts = self.members, self.target.members, self.expressions
        is_written = self.is_written or self.target.is_written or self.has_partition_metadata
        return is_written or any(part.newest() for part in parts)

    @property
    def preferred_assignor(self) -> str | None:
        """The assignor that most members ask for."""
        return most_voted(self.votes_in_order())

    def votes_in_order(self) -> dict[str, int]:
        """How many members ask for each assignor. Among equals the first counts: ``uniform``, as in Kafka's hash table."""
        return dict(sorted(self.assignor_votes.newest().items(), reverse=True))

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that has the partition, assigned or pending revocation; ``NOBODY`` if none has."""
        owners = self.owners.newest().get((topic_id, partition))
        if owners is None:
            return NOBODY
        return self.members.newest()[owners[0]].epoch

    def member_of_instance(self, instance_id: str) -> ConsumerGroupMember | None:
        """The static member of an instance id."""
        member_id = self.static_members.newest().get(instance_id)
        return None if member_id is None else self.members.newest().get(member_id)

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The topics that a member reads. An expression that is not resolved yet stands for none."""
        resolved = self.expressions.newest().get(member.expression)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        """The topics that any member reads."""
        resolved = self.expressions.newest()
        topics = set(self.topic_subscribers.newest())
        topics.update(*(resolved[used].topics for used in self.expression_subscribers.newest() if used in resolved))
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads ``topic``, by its name or by an expression."""
        if topic in self.topic_subscribers.newest():
            return True
        return any(topic in resolved.topics for resolved in self.expressions.newest().values())

    def with_record(self, key: Message, value: Message | None) -> ConsumerGroup:
        """After one record of this group, a tombstone if there is no value. Other types of records change nothing."""
        rule = _RULES.get(key.api_key)
        return self if rule is None else rule(self, key, value)


def most_voted(votes: Mapping[str, int]) -> str | None:
    """The name with most votes, the first among equals."""
    return max(votes, key=votes.__getitem__, default=None)


def _epoch(
    group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> ConsumerGroup:
    if value is None:
        return dataclasses.replace(group, epoch=FIRST_EPOCH, metadata_hash=0, is_written=False)
    return dataclasses.replace(group, epoch=value.epoch, metadata_hash=value.metadata_hash, is_written=True)


def _subscription(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> ConsumerGroup:
    member = _member(group, key.member_id).with_subscription(value)
    other = next(iter(group.members.newest().values()), None)
    if other is not None and member.topic_names == other.topic_names:
        # Mostly all members read the same topics, and then a thousand of them share one set.
        member = dataclasses.replace(member, topic_names=other.topic_names)
    return _with_member(group, member)


def _target_epoch(
    group: ConsumerGroup,
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> ConsumerGroup:
    return dataclasses.replace(group, target=group.target.at(value))


def _target_of_member(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> ConsumerGroup:
    return dataclasses.replace(group, target=group.target.with_part(key.member_id, value))


def _current_assignment(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> ConsumerGroup:
    return _with_member(group, _member(group, key.member_id).with_current_assignment(value))


def _expression(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> ConsumerGroup:
    resolved = None
    if value is not None:
        resolved = ResolvedExpression(frozenset(value.topics), value.version, value.timestamp)
    return dataclasses.replace(group, expressions=group.expressions.changed({key.regular_expression: resolved}))


def _partition_metadata(group: ConsumerGroup, _: Message, value: Message | None) -> ConsumerGroup:
    return dataclasses.replace(group, has_partition_metadata=value is not None)


_RULES: Mapping[int, Callable[[ConsumerGroup, Any, Any], ConsumerGroup]] = {
    3: _epoch,
    4: _partition_metadata,
    5: _subscription,
    6: _target_epoch,
    7: _target_of_member,
    8: _current_assignment,
    16: _expression,
}
"""Record type -> its rule."""


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    return group.members.newest().get(member_id) or ConsumerGroupMember(member_id)


def _with_member(group: ConsumerGroup, member: ConsumerGroupMember) -> ConsumerGroup:
    """With a member as it is now, and with the fields that are derived from the members."""
    nothing = ConsumerGroupMember(member.member_id)
    old = group.members.newest().get(member.member_id, nothing)
    exists = member.has_subscription or member.has_current_assignment
    new = member if exists else nothing
    was_there = old.has_subscription or old.has_current_assignment
    return dataclasses.replace(
        group,
        members=group.members.changed({member.member_id: member if exists else None}),
        static_members=_static_members(group.static_members, old, new),
        owners=_owners(group.owners, old, new),
        settled=counted(group.settled, _epoch_if_stable(old, there=was_there), _epoch_if_stable(new, there=exists)),
        topic_subscribers=counted(group.topic_subscribers, old.topic_names, new.topic_names),
        expression_subscribers=counted(group.expression_subscribers, _one(old.expression), _one(new.expression)),
        assignor_votes=counted(group.assignor_votes, _one(old.server_assignor), _one(new.server_assignor)),
        classic_protocols=counted(group.classic_protocols, _offered(old), _offered(new)),
        classic_member_count=group.classic_member_count - (old.classic is not None) + (new.classic is not None),
    )


def _static_members(
    members: PersistentDict[str, str], old: ConsumerGroupMember, new: ConsumerGroupMember
) -> PersistentDict[str, str]:
    changes: dict[str, str | None] = {}
    if old.instance_id is not None and members.newest().get(old.instance_id) == old.member_id:
        changes[old.instance_id] = None
    if new.instance_id is not None:
        changes[new.instance_id] = new.member_id
    return members.changed(changes) if changes else members


def _owners(
    owners: PersistentDict[tuple[bytes, int], tuple[str, ...]], old: ConsumerGroupMember, new: ConsumerGroupMember
) -> PersistentDict[tuple[bytes, int], tuple[str, ...]]:
    if old.assigned is new.assigned and old.pending_revocation is new.pending_revocation:
        return owners
    present = owners.newest()
    changes: dict[tuple[bytes, int], tuple[str, ...] | None] = {}
    alone = (new.member_id,)
    added: list[tuple[bytes, int]] = []
    for topic_id in dict.fromkeys((*old.topic_ids(), *new.topic_ids())):
        had, has = old.held_of(topic_id), new.held_of(topic_id)
        for key in [(topic_id, partition) for partition in had - has]:
            left = present[key]
            changes[key] = None if left == alone else tuple(owner for owner in left if owner != old.member_id) or None
        added += [(topic_id, partition) for partition in has - had]
    if present.keys().isdisjoint(added):
        changes |= dict.fromkeys(added, alone)
    else:
        for key in added:
            changes[key] = tuple(sorted((*present.get(key, ()), new.member_id)))
    return owners.changed(changes) if changes else owners


def _epoch_if_stable(member: ConsumerGroupMember, *, there: bool) -> Iterable[int]:
    return (member.epoch,) if there and member.state is MemberState.STABLE else ()


def _offered(member: ConsumerGroupMember) -> Iterable[str]:
    return () if member.classic is None else (name for name, _ in member.classic.protocols)


def _one(value: str | None) -> Iterable[str]:
    return (value,) if value else ()
