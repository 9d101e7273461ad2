"""A generation of a group: its members, protocol and assignments, as immutable values.

The record of a completed rebalance (``GroupMetadataValue``) says all of it. A generation that has begun and whose leader has not
sent the assignments yet is one, too, without assignments; ``assigned`` is what then gets into the record.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from .subscription import subscribed_topics

CONSUMER_PROTOCOL_TYPE = "consumer"


@dataclasses.dataclass(slots=True, frozen=True)
class GenerationMember:
    """A member of a generation."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    """The metadata that it offered for the protocol of the generation."""
    assignment: bytes = b""


@dataclasses.dataclass(frozen=True)
class Generation:
    """One generation of a group."""

    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: Mapping[str, GenerationMember] = dataclasses.field(default_factory=dict)
    """By member id, in the order in which the next one of them would lead."""
    state_timestamp_ms: int = -1
    """Wall time; -1 where the record does not have it."""

    @functools.cached_property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics the members read, or None when that cannot be known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            of_member = subscribed_topics(member.subscription)
            if of_member is None:
                return None
            topics |= of_member
        return frozenset(topics)

    def assigned(self, assignments: Mapping[str, bytes], now_ms: int) -> Generation:
        """With these assignments, by member id; members left out get none."""
        members = {
            member_id: dataclasses.replace(member, assignment=assignments.get(member_id, b""))
            for member_id, member in self.members.items()
        }
        return dataclasses.replace(self, members=members, state_timestamp_ms=now_ms)

    def handed_over(self, old_member_id: str, new: GenerationMember, now_ms: int) -> Generation:
        """With the place of a member, what it was given and its lead if it had it, handed to a new one."""
        members = dict(self.members)
        assignment = members.pop(old_member_id).assignment
        members[new.member_id] = dataclasses.replace(new, assignment=assignment)
        leader_id = new.member_id if self.leader_id == old_member_id else self.leader_id
        return dataclasses.replace(self, members=members, leader_id=leader_id, state_timestamp_ms=now_ms)


NO_GENERATION = Generation()
"""That of a group of which there is no such record."""
