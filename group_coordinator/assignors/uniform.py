"""The assignor ``uniform``: as many partitions for each member as for the others, give or take one, and few moves.

Where members subscribe to different topics, ``uniform_heterogeneous`` does it. Where all subscribe to the same ones, each member
has a quota, which is one higher for some of them. It keeps what it had as far as the quota goes; what is left of the partitions
fills up those that are below theirs. So a partition moves only if its member is gone or has too many.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignor import PARTITIONS_OF_A_STEP, MemberSubscription, Steps, Target, is_homogeneous, still_valid
from .uniform_heterogeneous import heterogeneous

_Partitions = list[tuple[bytes, int]]


class UniformAssignor:
    """No state."""

    name = "uniform"

    def steps(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[bytes, int],
        *,
        subscribed_alike: bool = True,
    ) -> Steps[Target]:
        """A step is a member, or some of the partitions of a topic."""
        if subscribed_alike and (yield from is_homogeneous(members)):
            return (yield from _homogeneous(members, partition_counts))
        return (yield from heterogeneous(members, partition_counts))


def _homogeneous(members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]) -> Steps[Target]:
    order = sorted(members)
    if not order:
        return {}
    target, taken = yield from still_valid(members, order, partition_counts)
    topic_ids = sorted(members[order[0]].topic_ids)
    free: _Partitions = []
    for topic_id in topic_ids:
        yield from _add_free(topic_id, partition_counts[topic_id], taken.get(topic_id, set()), free)
    partition_count = sum(partition_counts[topic_id] for topic_id in topic_ids)
    unfilled = yield from _cut_to_quotas(target, order, partition_count, free)
    yield from _fill(target, unfilled, free)
    return target


def _add_free(topic_id: bytes, count: int, taken: set[int], free: _Partitions) -> Steps[None]:
    """The partitions of a topic that no member has, in order."""
    for start in range(0, count, PARTITIONS_OF_A_STEP):
        some = range(start, min(count, start + PARTITIONS_OF_A_STEP))
        free += [(topic_id, partition) for partition in some if partition not in taken]
        yield


def _cut_to_quotas(
    target: Target, order: list[str], partition_count: int, free: _Partitions
) -> Steps[list[tuple[str, int]]]:
    """The members that are below their quota, and how many they lack. Partitions above a quota become free.

    The higher quota is for members that have as many partitions. The last ones of the order take it if it is left over.
    """
    quota, extra = divmod(partition_count, len(order))
    unfilled = []
    for place, member_id in enumerate(order):
        has_extra = extra > 0
        lack = _cut(target[member_id], quota + has_extra, free)
        if has_extra and lack and len(order) - place > extra:
            has_extra = False
            lack -= 1
        extra -= has_extra
        if lack:
            unfilled.append((member_id, lack))
        yield
    return unfilled


def _cut(kept: dict[bytes, frozenset[int]], quota: int, free: _Partitions) -> int:
    """Take from a member what is more than its quota; what is left of the quota."""
    for topic_id, partitions in list(kept.items()):
        if len(partitions) > quota:
            in_order = sorted(partitions)
            free += [(topic_id, partition) for partition in in_order[quota:]]
            if quota:
                kept[topic_id] = frozenset(in_order[:quota])
            else:
                del kept[topic_id]
            quota = 0
        else:
            quota -= len(partitions)
    return quota


def _fill(target: Target, unfilled: list[tuple[str, int]], free: _Partitions) -> Steps[None]:
    start = 0
    for member_id, lack in unfilled:
        new: dict[bytes, list[int]] = {}
        for topic_id, partition in free[start : start + lack]:
            new.setdefault(topic_id, []).append(partition)
        start += lack
        kept = target[member_id]
        for topic_id, partitions in new.items():
            kept[topic_id] = kept.get(topic_id, frozenset()).union(partitions)
        yield
