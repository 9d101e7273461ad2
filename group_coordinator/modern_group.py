"""The parts of consumer groups (KIP-848) and share groups (KIP-932) that are alike: target assignments, counts.

The coordinator assigns the partitions of both. A group has an *epoch*, which grows with every change of its members or their
topics, and a *target assignment* of an epoch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from ..metadata.persistent_dict import K, PersistentDict
from ..wire.messages.consumer_group_records import (
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ..wire.messages.share_group_records import (
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)

FIRST_EPOCH = 1
"""Epoch of a group of which no record says another one. The first change makes it 2, as in Kafka."""


@dataclasses.dataclass(frozen=True, slots=True)
class TargetAssignment:
    """The assignment that the members are to come to."""

    epoch: int = FIRST_EPOCH
    """The group's epoch for which it was made."""
    timestamp_ms: int = 0
    """Wall time at which it was made; 0 where no record says it."""
    is_written: bool = False
    """Whether a record has the epoch."""
    members: PersistentDict[str, Mapping[bytes, frozenset[int]]] = dataclasses.field(default_factory=PersistentDict)
    """By member id: topic id -> partitions."""

    def of(self, member_id: str) -> Mapping[bytes, AbstractSet[int]]:
        """The partitions that a member is to have: topic id -> partitions."""
        return self.members.newest().get(member_id, {})

    def is_due(self, epoch: int, interval_ms: int, now_ms: int) -> bool:
        """Whether a group at ``epoch`` is to have a new target now: this one is of an older epoch, and old enough.

        A clock that was set back, or another broker's that was ahead, delays nothing. Kafka's groups wait for the clock.
        """
        return self.epoch < epoch and not self.timestamp_ms <= now_ms < self.timestamp_ms + interval_ms

    def at(
        self, value: ConsumerGroupTargetAssignmentMetadataValue | ShareGroupTargetAssignmentMetadataValue | None
    ) -> TargetAssignment:
        """Replay of the record of its epoch and time, or of its tombstone."""
        if value is None:
            return TargetAssignment(members=self.members)
        return TargetAssignment(
            value.assignment_epoch, value.assignment_timestamp, is_written=True, members=self.members
        )

    def with_part(
        self,
        member_id: str,
        value: ConsumerGroupTargetAssignmentMemberValue | ShareGroupTargetAssignmentMemberValue | None,
    ) -> TargetAssignment:
        """Replay of the record of one member, or of its tombstone."""
        partitions = None
        if value is not None:
            partitions = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
        return dataclasses.replace(self, members=self.members.changed({member_id: partitions}))


def counted(counts: PersistentDict[K, int], old: Iterable[K], new: Iterable[K]) -> PersistentDict[K, int]:
    """How many members have each key, once a member that had ``old`` has ``new``."""
    had, has = set(old), set(new)
    present = counts.newest()
    changes: dict[K, int | None] = {key: present[key] - 1 or None for key in had - has}
    changes |= {key: present.get(key, 0) + 1 for key in has - had}
    return counts.changed(changes) if changes else counts
