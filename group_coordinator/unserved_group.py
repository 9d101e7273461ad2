"""A share group (KIP-932) or a Streams group (KIP-1071), as read from its records.

A log that was Kafka's may have them. Their members are not served here, so nothing here makes such a group or adds to it. It is
known so that it is not taken for another kind: its offsets do not expire, and members of no other protocol join while it has its
own. Its offsets are in the ``OffsetTable``, as those of any group.

A group exists while a record of it does. ``keys`` are the keys of all that have a value, as bytes, so that it can be deleted.
"""

from __future__ import annotations

import enum
from typing import Protocol

from ..wire.coordinator_records import encode_coordinator_record
from ..wire.schema import Message


class UnservedKind(enum.Enum):
    """The value is the group's type and its protocol type on the wire."""

    SHARE = "share"
    STREAMS = "streams"


class _MemberKey(Protocol):
    member_id: str


class UnservedGroup:
    """One group. All but ``is_refusal_logged`` changes in replay alone."""

    def __init__(self, group_id: str, kind: UnservedKind) -> None:
        self.group_id = group_id
        self.kind = kind
        self.epoch = 0
        self.is_refusal_logged = False
        """Whether this broker has logged that it refuses clients of other protocols."""
        self.members: set[str] = set()
        """Member ids."""
        self.keys: dict[bytes, Message] = {}

    @property
    def type_name(self) -> str:
        """As ListGroups tells it."""
        return self.kind.value

    @property
    def protocol_type(self) -> str:
        """As ListGroups tells it."""
        return self.kind.value

    @property
    def protocol_name(self) -> str:
        """Its records do not say which assignor it has."""
        return ""

    @property
    def state_name(self) -> str:
        """As ListGroups tells it."""
        return "Stable" if self.members else "Empty"

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def may_change_type(self) -> bool:
        """Whether members of another protocol may have the group id: nobody else uses it."""
        return not self.members and self.kind is not UnservedKind.SHARE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read ``topic``: the records are not read for it, so its members are taken to read everything."""
        return bool(self.members)

    def keep(self, kind: UnservedKind, key: Message, *, is_there: bool) -> None:
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
            self.members.discard(key.member_id)
        else:
            self.members.add(key.member_id)
