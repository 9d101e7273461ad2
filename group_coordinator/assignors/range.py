"""The assignor ``range``: each topic is cut into contiguous ranges, one for each member that reads it.

Static members come first, by instance id, and then the others by member id. So topics of the same size are assigned alike, and
the n-th member has the same partitions of each of them. The target of before does not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignor import MemberSubscription, Steps, Target, is_homogeneous


class RangeAssignor:
    """No state."""

    name = "range"

    def steps(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[bytes, int],
        *,
        subscribed_alike: bool = True,
    ) -> Steps[Target]:
        """A step is a member whose topics are looked at, or a topic that is distributed."""
        order = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
        target: Target = {member_id: {} for member_id in order}
        subscribers = yield from _subscribers(members, order)
        for topic_id in sorted(subscribers):
            _distribute(topic_id, partition_counts[topic_id], subscribers[topic_id], target)
            yield
        return target


def _place(member_id: str, member: MemberSubscription) -> tuple[bool, str]:
    return member.instance_id is None, member_id if member.instance_id is None else member.instance_id


def _subscribers(members: Mapping[str, MemberSubscription], order: list[str]) -> Steps[dict[bytes, list[str]]]:
    """By topic, in this order."""
    if order and (yield from is_homogeneous(members)):
        return dict.fromkeys(members[order[0]].topic_ids, order)
    found: dict[bytes, list[str]] = {}
    for member_id in order:
        for topic_id in members[member_id].topic_ids:
            found.setdefault(topic_id, []).append(member_id)
        yield
    return found


def _distribute(topic_id: bytes, count: int, subscribers: list[str], target: Target) -> None:
    """The first ones have one partition more, where the number of partitions is no multiple of theirs."""
    size, extra = divmod(count, len(subscribers))
    start = 0
    for place, member_id in enumerate(subscribers[:count]):
        end = start + size + (place < extra)
        target[member_id][topic_id] = frozenset(range(start, end))
        start = end
