"""A group of the classic protocol: its durable state and its soft state.

*Durable* is what the records of ``__consumer_offsets`` say of the last completed rebalance, a ``Generation``; ``replay`` alone
replaces it. *Soft* is the rebalance going on now, a ``LiveGroup``: members that wait for an answer, pending members, a generation
that has no assignment yet. What a group has committed is in the ``OffsetTable`` of its partition.

A group that never had a member, made by a commit of offsets alone, is called *simple*: Empty, and without a protocol type.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from .generation import NO_GENERATION, Generation
from .live_group import GroupState, LiveGroup


@dataclasses.dataclass(slots=True)
class ClassicGroup:
    """One group."""

    type_name: ClassVar = "classic"
    group_id: str
    generation: Generation = NO_GENERATION
    live: LiveGroup = dataclasses.field(default_factory=LiveGroup)
    was_downgraded: bool = False
    """Whether its generation is that of a consumer group's downgrade, and no rebalance has ended since."""

    @property
    def protocol_type(self) -> str:
        """As ListGroups tells it; "" where no member ever joined."""
        return self.live.protocol_type or ""

    @property
    def protocol_name(self) -> str:
        """The assignor of its generation, which its clients have chosen; "" where there is none."""
        return self.live.generation.protocol_name or ""

    @property
    def state_name(self) -> str:
        """As ListGroups tells it."""
        return self.live.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.live.state is GroupState.EMPTY

    @property
    def epoch(self) -> int:
        """The number of its generation."""
        return self.live.generation.generation_id

    @property
    def member_count(self) -> int:
        return len(self.live.members)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read ``topic``."""
        return self.live.is_subscribed_to(topic)

    def assignment_of(self, member_id: str) -> bytes:
        """What a member was last given; empty when it has been given nothing."""
        member = self.generation.members.get(member_id)
        return b"" if member is None else member.assignment

    def resume(self) -> None:
        """The records of the group have been replayed, and it is served from now on."""
        self.live = LiveGroup(self.generation)
