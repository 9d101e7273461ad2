"""The rule of ``uniform`` for a group whose members read different topics: near to equal, and few moves.

Partitions that nobody has go to those who have the fewest of all topics. Then, topic by topic, members that have more give to
those that have fewer, as long as the two differ by more than one. A topic at a time does not always find the best balance; most
groups come to it in a round or two, and ``_ROUNDS`` bounds the work.

Topics with many partitions for each reader come first, because they decide how the members stand.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping

from .assignor import PARTITIONS_OF_A_STEP, MemberSubscription, Steps, Target, still_valid

_ROUNDS = 16
_NOBODY = -1
_SIGNED_HALVES = struct.Struct(">qq")


def heterogeneous(members: Mapping[str, MemberSubscription], partition_counts: Mapping[bytes, int]) -> Steps[Target]:
    """A new target, by member id."""
    order = sorted(members)
    work = _Work(order)
    for index, member_id in enumerate(order):
        for topic_id in members[member_id].topic_ids:
            work.subscribers.setdefault(topic_id, []).append(index)
        yield
    work.owners = {topic_id: [_NOBODY] * partition_counts[topic_id] for topic_id in work.subscribers}
    yield
    kept, _ = yield from still_valid(members, order, partition_counts)
    yield from work.begin_with(kept)
    topic_ids = sorted(work.subscribers, key=work.place)
    yield from work.give_out(topic_ids)
    yield from work.balance([topic_id for topic_id in topic_ids if len(work.subscribers[topic_id]) > 1])
    return (yield from work.target())


class _Work:
    """An assignment in the making. Members are their indexes in the order of ids."""

    def __init__(self, order: list[str]) -> None:
        self._order = order
        self._sizes = [0] * len(order)
        """Partitions of each member, of all topics."""
        self.subscribers: dict[bytes, list[int]] = {}
        """By topic id, ascending."""
        self.owners: dict[bytes, list[int]] = {}
        """By topic id: the member of each partition."""

    def begin_with(self, kept: Target) -> Steps[None]:
        for index, member_id in enumerate(self._order):
            for topic_id, partitions in kept[member_id].items():
                owners = self.owners[topic_id]
                for partition in partitions:
                    owners[partition] = index
                self._sizes[index] += len(partitions)
            yield

    def place(self, topic_id: bytes) -> tuple[float, int, tuple[int, ...]]:
        """Sorts topics. Kafka compares the halves of an id as signed numbers."""
        readers = len(self.subscribers[topic_id])
        return -len(self.owners[topic_id]) / readers, readers, _SIGNED_HALVES.unpack(topic_id)

    def give_out(self, topic_ids: list[bytes]) -> Steps[None]:
        """Partitions that nobody has."""
        for topic_id in topic_ids:
            owners = self.owners[topic_id]
            free = [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
            if free:
                takers = _takers(self._by_size(topic_id), self._sizes)
                for place, (partition, (taker, _)) in enumerate(zip(free, takers, strict=False)):
                    owners[partition] = taker
                    self._sizes[taker] += 1
                    if place % PARTITIONS_OF_A_STEP == 0:
                        yield
            yield

    def balance(self, topic_ids: list[bytes]) -> Steps[None]:
        """Rounds over the topics, until one after the other has nothing to move."""
        balanced = -1  # the topics since the last that moved partitions, or since the first one
        for topic_id in itertools.chain.from_iterable(itertools.repeat(topic_ids, _ROUNDS)):
            has_moved = yield from self._balance(topic_id)
            balanced = 0 if has_moved else balanced + 1
            if balanced == len(topic_ids) - 1:
                return

    def _balance(self, topic_id: bytes) -> Steps[bool]:
        """Whether a partition has moved."""
        sizes, readers = self._sizes, self._by_size(topic_id)
        yield
        if sizes[readers[-1]] - sizes[readers[0]] <= 1:
            return False
        owners = self.owners[topic_id]
        partitions: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            partitions.setdefault(owner, []).append(partition)
        yield
        takers, moves = _takers(readers, sizes), 0
        for giver, upper in _givers(readers, sizes, partitions):
            taker, lower = next(takers)
            if upper - lower <= 1:
                break
            owners[partitions[giver].pop()] = taker
            sizes[giver] -= 1
            sizes[taker] += 1
            moves += 1
            if moves % PARTITIONS_OF_A_STEP == 0:
                yield
        return moves > 0

    def _by_size(self, topic_id: bytes) -> list[int]:
        return sorted(self.subscribers[topic_id], key=self._sizes.__getitem__)

    def target(self) -> Steps[Target]:
        found: dict[str, dict[bytes, list[int]]] = {member_id: {} for member_id in self._order}
        of_index = list(found.values())
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                of_index[owner].setdefault(topic_id, []).append(partition)
            del self.subscribers[topic_id]  # a step for each, because all at once they take long to be forgotten
            yield
        target: Target = {}
        for member_id, topics in found.items():
            target[member_id] = {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            yield
        return target


def _takers(readers: list[int], sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Members that are to get one partition each, and their level: as water rises, those at the lowest level first.

    ``readers`` are sorted by their size.
    """
    end, level = 0, sizes[readers[0]]
    while True:
        while end < len(readers) and sizes[readers[end]] == level:
            end += 1
        for place in range(end):
            yield readers[place], level
        level += 1


def _givers(readers: list[int], sizes: list[int], partitions: Mapping[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Members that are to give up one partition each, and their level: those at the highest level first.

    One that has no partition of the topic goes behind the others, so ``readers`` change. It keeps its size.
    """
    start = end = len(readers)
    level = sizes[readers[-1]] + 1
    while True:
        level = sizes[readers[start - 1]] if start == end and start else level - 1
        while start and sizes[readers[start - 1]] == level:
            start -= 1
        if not end:
            return
        for place in range(end - 1, start - 1, -1):
            giver = readers[place]
            if partitions.get(giver):
                yield giver, level
            else:
                end -= 1
                readers[place], readers[end] = readers[end], giver
