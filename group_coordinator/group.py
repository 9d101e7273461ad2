"""A group of the classic protocol: its durable state and its soft state.

*Durable* is what the records of ``__consumer_offsets`` say of the last completed rebalance, a ``Generation``; ``replay`` alone
replaces it. *Soft* is the rebalance going on now, a ``LiveGroup``: members that wait for an answer, pending members, a generation
that has no assignment yet. What a group has committed is in the ``OffsetTable`` of its partition.

A group that never had a member, made by a commit of offsets alone, is called *simple*: Empty, and without a protocol type.
"""

from __future__ import annotations

import dataclasses

from .generation import NO_GENERATION, Generation
from .live_group import LiveGroup


@dataclasses.dataclass(slots=True)
class Group:
    """One group."""

    group_id: str
    generation: Generation = NO_GENERATION
    live: LiveGroup = dataclasses.field(default_factory=LiveGroup)

    def assignment_of(self, member_id: str) -> bytes:
        """What a member was last given; empty when it has been given nothing."""
        member = self.generation.members.get(member_id)
        return b"" if member is None else member.assignment

    def resume(self) -> None:
        """The records of the group have been replayed, and it is served from now on."""
        self.live = LiveGroup(self.generation)
