"""Groups of newer protocols as read from their records: consumer groups (KIP-848), share groups and Streams groups.

A folder that was Kafka's may have them. Their members are not served here, so nothing here makes such a group or adds to it.
It is known so that it is not taken for what it is not: its offsets do not expire, and no member of the classic protocol joins
while it has members of its own. Its offsets are in the ``OffsetTable``, as those of any group; while it has some, a *simple*
``Group`` has the same id.

A group exists while a record of it does. ``keys`` are the keys of all that have a value, as bytes, so that it can be deleted.
"""

from __future__ import annotations

import enum
from typing import Protocol

from ..wire.coordinator_records import encode_coordinator_record
from ..wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ..wire.schema import Message


class ModernKind(enum.Enum):
    """The value is the group's type and its protocol type on the wire."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


_OF_MEMBERS = (5, 7, 8, 10, 13, 14, 16, 19, 21, 22)
"""Types of the records that go when the members do; a resolved regular expression among them."""
_STABLE_MEMBER = 0


class _MemberKey(Protocol):
    member_id: str


class ModernGroup:
    """One group. All but ``is_refusal_logged`` changes in replay alone."""

    def __init__(self, group_id: str, kind: ModernKind) -> None:
        self.group_id = group_id
        self.kind = kind
        self.epoch = 0
        self.assignment_epoch = 0
        self.is_refusal_logged = False
        """Whether this broker has logged that it refuses clients of the classic protocol."""
        self.members: dict[str, frozenset[str]] = {}
        """By member id the topics that it names."""
        self.keys: dict[bytes, Message] = {}
        self._current: dict[str, tuple[int, int]] = {}
        self._expressions: dict[str, frozenset[str]] = {}

    def keep(self, kind: ModernKind, key: Message, *, is_there: bool) -> None:
        """Replay of any record of this group, a tombstone unless it ``is_there``."""
        raw = encode_coordinator_record(key, 0)
        if is_there:
            self.keys[raw] = key
            self.kind = kind
        else:
            self.keys.pop(raw, None)

    def replay_member(self, key: _MemberKey, value: Message | None) -> None:
        """A member, or that it is gone."""
        if value is None:
            self.members.pop(key.member_id, None)
            self._current.pop(key.member_id, None)
        else:
            topics = value.subscribed_topic_names if isinstance(value, ConsumerGroupMemberMetadataValue) else ()
            self.members[key.member_id] = frozenset(topics)

    def replay_epoch(self, _: Message, value: ConsumerGroupMetadataValue | None) -> None:
        """The group's epoch."""
        if value is not None:
            self.epoch = value.epoch

    def replay_assignment_epoch(self, _: Message, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        """The epoch of the assignment that the members are to come to."""
        if value is not None:
            self.assignment_epoch = value.assignment_epoch

    def replay_current_assignment(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        """How far a member has come to its assignment."""
        if value is not None:
            self._current[key.member_id] = value.member_epoch, value.state

    def replay_expression(
        self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
    ) -> None:
        """The topics that a regular expression stands for."""
        self._expressions[key.regular_expression] = frozenset(() if value is None else value.topics)

    @property
    def state_name(self) -> str:
        """As ListGroups tells it (``ConsumerGroup.maybeUpdateGroupState``)."""
        if not self.members:
            return "Empty"
        if self.kind is ModernKind.CONSUMER and self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = self.assignment_epoch, _STABLE_MEMBER
        if self.kind is ModernKind.CONSUMER and any(self._current.get(member) != settled for member in self.members):
            return "Reconciling"
        return "Stable"

    @property
    def may_become_classic(self) -> bool:
        """Whether members of the classic protocol may have the group id: nobody else uses it."""
        return not self.members and self.kind is not ModernKind.SHARE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads ``topic``, by its name or by a regular expression."""
        if not self.members:
            return False
        return any(topic in topics for topics in (*self.members.values(), *self._expressions.values()))

    def member_keys(self) -> list[Message]:
        """The keys of the records that go with the members."""
        return [key for key in self.keys.values() if key.api_key in _OF_MEMBERS]
