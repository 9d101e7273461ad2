"""The interface of the assignors: the members of a group and their topics go in, a target assignment comes out.

An assignor is a function of its input. It goes through members and topics in the order of their ids, so the order of the mappings
it is given does not matter. It works in steps: it yields between them, so that a caller on the event loop can let others run.

Every partition of a topic that somebody reads is in the result once. Every member is in it, with or without partitions.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")
MemberPartitions = Mapping[bytes, frozenset[int]]
"""Of one member: topic id -> partitions. No set is empty."""
Target = dict[str, dict[bytes, frozenset[int]]]
"""By member id: topic id -> partitions. No set is empty."""
Steps = Generator[None, None, T]
"""A computation that yields after each of its steps and returns its result."""

PARTITIONS_OF_A_STEP = 1000
"""A longer loop yields inside."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member as an assignor sees it."""

    topic_ids: AbstractSet[bytes]
    """The topics that it reads, all of which exist."""
    target: MemberPartitions
    """Its part of the target assignment of before, which is not what it has at the moment."""
    instance_id: str | None = None
    """Of a static member."""
    rack_id: str | None = None
    """No assignor looks at it yet; Kafka's don't either."""


class Assignor(Protocol):
    """A rule that distributes partitions."""

    @property
    def name(self) -> str:
        """As clients and ``group.consumer.assignors`` name it."""

    def steps(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[bytes, int],
        *,
        subscribed_alike: bool = True,
    ) -> Steps[Target]:
        """A new target, by member id; ``partition_counts`` has each topic that a member reads.

        Not ``subscribed_alike``: even if the members read the same topics, they name different ones, or use expressions (the
        SubscriptionType that Kafka's group has).
        """


def finished(steps: Steps[T]) -> T:
    """The result of steps that are taken at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def is_homogeneous(members: Mapping[str, MemberSubscription]) -> Steps[bool]:
    """Whether all members read the same topics."""
    first: AbstractSet[bytes] | None = None
    for member in members.values():
        if first is None:
            first = member.topic_ids
        elif member.topic_ids is not first:
            if member.topic_ids != first:
                return False
            yield
    return True


def still_valid(
    members: Mapping[str, MemberSubscription], order: list[str], partition_counts: Mapping[bytes, int]
) -> Steps[tuple[Target, dict[bytes, set[int]]]]:
    """The partitions of the old target that their members may keep, by member and all together: of topics that it still reads.

    A partition that two members have stays with the first. One that is beyond the topic's end goes: another broker has seen it
    grow, and this one has not.
    """
    taken: dict[bytes, set[int]] = {}
    valid: Target = {}
    for member_id in order:
        member = members[member_id]
        kept = valid[member_id] = {}
        for topic_id, partitions in sorted(member.target.items()):
            if topic_id not in member.topic_ids or not partitions:
                continue
            others = taken.setdefault(topic_id, set())
            if not others.isdisjoint(partitions) or max(partitions) >= partition_counts[topic_id]:
                partitions = frozenset(partitions).difference(others).intersection(range(partition_counts[topic_id]))
            if partitions:
                kept[topic_id] = partitions
                others |= partitions
        yield
    return valid, taken
