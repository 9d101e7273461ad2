"""A Streams group (KIP-1071), as read from its records.

A log that was Kafka's may have them. Their members are not served here, so nothing here makes such a group or adds to it. It is
known so that it is not taken for another kind: its offsets do not expire, and members of no other protocol join while it has its
own. Its offsets are in the ``OffsetTable``, as those of any group.

A group exists while a record of it does. ``keys`` are the keys of all that have a value, as bytes, so that it can be deleted.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from ..wire.coordinator_records import encode_coordinator_record
from ..wire.schema import Message


class _MemberKey(Protocol):
    member_id: str


class StreamsGroup:
    """One group. It changes in replay alone."""

    type_name: ClassVar = "streams"
    protocol_type: ClassVar = "streams"
    protocol_name: ClassVar = ""
    """Its records do not say which assignor it has."""
    epoch: ClassVar = 0

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: set[str] = set()
        """Member ids."""
        self.keys: dict[bytes, Message] = {}

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

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read ``topic``: the records are not read for it, so its members are taken to read everything."""
        return bool(self.members)

    def keep(self, key: Message, *, is_there: bool) -> None:
        """Replay of any record of this group, a tombstone unless it ``is_there``."""
        raw = encode_coordinator_record(key, 0)
        if is_there:
            self.keys[raw] = key
        else:
            self.keys.pop(raw, None)

    def replay_member(self, key: _MemberKey, value: Message | None) -> None:
        """A member, or that it is gone."""
        if value is None:
            self.members.discard(key.member_id)
        else:
            self.members.add(key.member_id)
