"""The assignor ``simple`` of share groups (KIP-932): partitions with as many readers as others, and equal members.

Partitions are shared: with fewer partitions than members each has several readers. *Sharing* is the number of readers that each
partition is to have, ``ceil(members / partitions)``. Each member has a quota, and the quotas add up to sharing times partitions.

What members have is kept as far as quotas and sharing go, and the rest is filled up, partition by partition, by members below
their quota in turn. It may happen that all of those have a partition already, and then it stays with fewer readers, though never
without one. Where members read different topics, this is done for each topic by itself, among those who read it.

Source: Kafka's SimpleAssignor. There, once a partition cannot be filled up, those after it in a hash table are not filled up
either.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from .assignor import PARTITIONS_OF_A_STEP, MemberSubscription, Steps, Target, is_homogeneous

_Partition = tuple[bytes, int]


class SimpleAssignor:
    """No state."""

    name = "simple"

    def steps(
        self,
        members: Mapping[str, MemberSubscription],
        assignable: Mapping[bytes, AbstractSet[int]],
        *,
        subscribed_alike: bool = True,
    ) -> Steps[Target]:
        """A new target, by member id; ``assignable`` has the partitions of each topic that may be given to members.

        A step is a member, or some partitions. ``subscribed_alike``: all members name the same topics.
        """
        order = sorted(members)
        target: dict[str, dict[bytes, set[int]]] = {member_id: {} for member_id in order}
        if subscribed_alike and (yield from is_homogeneous(members)):
            topic_ids = sorted(members[order[0]].topic_ids) if order else []
            yield from _share(order, (yield from _in_order(topic_ids, assignable)), members, target)
        else:
            readers: dict[bytes, list[str]] = {}
            for member_id in order:
                for topic_id in members[member_id].topic_ids:
                    readers.setdefault(topic_id, []).append(member_id)
                yield
            for topic_id in sorted(readers):
                partitions = yield from _in_order([topic_id], assignable)
                yield from _share(readers[topic_id], partitions, members, target)
        return (yield from _frozen(target))


def _in_order(
    topic_ids: Iterable[bytes], assignable: Mapping[bytes, AbstractSet[int]]
) -> Steps[dict[_Partition, dict[str, None]]]:
    """The partitions of topics, in order, each without readers."""
    partitions: dict[_Partition, dict[str, None]] = {}
    done = 0
    for topic_id in topic_ids:
        for number in sorted(assignable.get(topic_id, ())):
            partitions[topic_id, number] = {}
            done += 1
            if done % PARTITIONS_OF_A_STEP == 0:
                yield
    return partitions


def _frozen(parts: Mapping[str, Mapping[bytes, set[int]]]) -> Steps[Target]:
    target: Target = {}
    done = 0
    for member_id, part in parts.items():
        target[member_id] = {topic_id: frozenset(numbers) for topic_id, numbers in part.items()}
        done += 1 + sum(map(len, part.values()))
        if done >= PARTITIONS_OF_A_STEP:
            done = 0
            yield
    return target


def _share(
    readers: Sequence[str],
    holders: dict[_Partition, dict[str, None]],
    members: Mapping[str, MemberSubscription],
    target: Mapping[str, dict[bytes, set[int]]],
) -> Steps[None]:
    """Add to ``target`` what each reader gets of these partitions. ``holders`` has who has each, nobody yet."""
    if not holders:
        return
    sharing = -(-len(readers) // len(holders))
    quotas = dict(zip(readers, _quotas(len(readers), sharing * len(holders)), strict=True))
    yield
    kept = yield from _kept(quotas, sharing, members, holders)
    unfilled = deque(member_id for member_id in readers if kept[member_id] < quotas[member_id])
    done = 0
    for partition, having in holders.items():
        for member_id in _takers(unfilled, having, sharing - len(having)):
            having[member_id] = None
            kept[member_id] += 1
            if kept[member_id] == quotas[member_id]:
                unfilled.pop()
        done += 1 + len(having)
        for member_id in having:
            target[member_id].setdefault(partition[0], set()).add(partition[1])
        if done >= PARTITIONS_OF_A_STEP:
            done = 0
            yield


def _quotas(count: int, total: int) -> Iterator[int]:
    """``total`` in ``count`` numbers that differ by one at most."""
    bounds = [-(-total * index // count) for index in range(count + 1)]
    return (after - before for before, after in itertools.pairwise(bounds))


def _kept(
    quotas: Mapping[str, int],
    sharing: int,
    members: Mapping[str, MemberSubscription],
    holders: Mapping[_Partition, dict[str, None]],
) -> Steps[dict[str, int]]:
    """Note in ``holders`` who keeps which partition; how many each member keeps."""
    counts = dict.fromkeys(quotas, 0)
    done = 0
    for member_id, quota in quotas.items():
        for partition in _held(members[member_id], holders):
            if counts[member_id] == quota:
                break
            if len(holders[partition]) < sharing:
                holders[partition][member_id] = None
                counts[member_id] += 1
        done += 1 + counts[member_id]
        if done >= PARTITIONS_OF_A_STEP:
            done = 0
            yield
    return counts


def _held(member: MemberSubscription, known: Mapping[_Partition, object]) -> Iterator[_Partition]:
    """What a member had of the partitions that there are, in order."""
    for topic_id in sorted(member.target.keys() & member.topic_ids):
        for number in sorted(member.target[topic_id]):
            if (topic_id, number) in known:
                yield topic_id, number


def _takers(unfilled: deque[str], having: Container[str], wanted: int) -> Iterator[str]:
    """The next members in turn that lack a partition. Each goes to the end of the queue, where its taker finds it."""
    for _ in range(len(unfilled)):
        if wanted <= 0 or not unfilled:
            return
        member_id = unfilled[0]
        unfilled.rotate(-1)
        if member_id not in having:
            wanted -= 1
            yield member_id
