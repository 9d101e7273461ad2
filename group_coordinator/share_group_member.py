"""A member of a share group (KIP-932), as an immutable value: its subscription, and the partitions that it reads.

Two records make a member, as in a consumer group: either may come first, and either may be missing (compaction). A member exists
while one of the two has a value. It gives nothing up: others may read the same partitions, so it goes straight to each target.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping

from ..wire.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    TopicPartitions,
)

_STABLE = 0
"""The one state that a member is in."""


@dataclasses.dataclass(frozen=True, slots=True)
class ShareGroupMember:
    """One member."""

    member_id: str
    has_subscription: bool = False
    """Whether a record has its subscription. The fields down to ``topic_names`` are of that record."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = -1
    """``epoch`` before the last write. A client that did not get the last response still sends it."""
    assigned: Mapping[bytes, frozenset[int]] = dataclasses.field(default_factory=dict)
    """Topic id -> partitions. No set is empty."""

    @property
    def has_current_assignment(self) -> bool:
        """Whether a record has said how far it has come."""
        return (self.epoch, self.previous_epoch) != (0, -1)

    @property
    def exists(self) -> bool:
        """Whether a record has a value."""
        return self.has_subscription or self.has_current_assignment

    def moved(self, epoch: int, assigned: Mapping[bytes, frozenset[int]]) -> ShareGroupMember:
        """With other partitions. A move to another epoch makes the one of now the previous one."""
        previous = self.previous_epoch if epoch == self.epoch else self.epoch
        return dataclasses.replace(self, epoch=epoch, previous_epoch=previous, assigned=assigned)

    def with_subscription(self, value: ShareGroupMemberMetadataValue | None) -> ShareGroupMember:
        """Replay of the record of its subscription, or of its tombstone."""
        if value is None:
            return ShareGroupMember(
                self.member_id, epoch=self.epoch, previous_epoch=self.previous_epoch, assigned=self.assigned
            )
        return dataclasses.replace(
            self,
            has_subscription=True,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            # The members of a group name the same topics: one string of each is enough for all of them.
            topic_names=frozenset(map(sys.intern, value.subscribed_topic_names)),
        )

    def with_current_assignment(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareGroupMember:
        """Replay of the record of its current assignment, or of its tombstone."""
        if value is None:
            return dataclasses.replace(self, epoch=0, previous_epoch=-1, assigned={})
        return dataclasses.replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned={
                topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions if topic.partitions
            },
        )

    def subscription(self) -> ShareGroupMemberMetadataValue:
        """The record of its subscription."""
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topic_names),
        )

    def current_assignment(self) -> ShareGroupCurrentMemberAssignmentValue:
        """The record of its current assignment."""
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=_STABLE,
            assigned_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(self.assigned.items())
            ],
        )
