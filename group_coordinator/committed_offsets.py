"""The committed offsets in one partition of ``__consumer_offsets``: the last commit per group, topic and partition.

They belong to a group id, whatever protocol the group uses, and outlive a change of it. Only records change them, and the
marker that ends a transaction: its commits are kept apart until then, and count from its commit marker on (KIP-98).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..wire.messages.consumer_offsets import OffsetCommitValue


class CommittedOffset(NamedTuple):
    """The last commit of one partition."""

    value: OffsetCommitValue
    record_offset: int
    """The offset of the record of the commit."""


CommittedOffsets = Mapping[str, Mapping[int, CommittedOffset]]
"""The commits of one group, by topic and partition."""

_NONE: CommittedOffsets = MappingProxyType({})


def find_commit(offsets: CommittedOffsets, topic: str, partition: int) -> CommittedOffset | None:
    """The last commit of a partition."""
    partitions = offsets.get(topic)
    return None if partitions is None else partitions.get(partition)


def each_commit(offsets: CommittedOffsets) -> Iterator[tuple[str, int, CommittedOffset]]:
    """Every commit: topic, partition, offset."""
    for topic, partitions in offsets.items():
        for partition, committed in partitions.items():
            yield topic, partition, committed


class OffsetTable:
    """The commits of all groups of one partition. ``commit``, ``remove`` and ``end_transaction`` are replay."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._open: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        """Producer id -> commits of its open transaction, by group, topic and partition."""

    def of(self, group_id: str) -> CommittedOffsets:
        """What a group has committed; empty where there is nothing, and for a group that does not exist."""
        return self._groups.get(group_id, _NONE)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended holds a commit of the partition."""
        return any((group_id, topic, partition) in commits for commits in self._open.values())

    def has_commit(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether the group has a commit of the partition, or a transaction that has not ended holds one."""
        known = find_commit(self.of(group_id), topic, partition)
        return known is not None or self.is_unstable(group_id, topic, partition)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has a commit, or a transaction that has not ended holds one of it."""
        return group_id in self._groups or self.has_open_transaction(group_id)

    def has_open_transaction(self, group_id: str) -> bool:
        """Whether a transaction that has not ended holds commits of the group."""
        return any(key[0] == group_id for commits in self._open.values() for key in commits)

    def partitions_of(self, group_id: str) -> set[tuple[str, int]]:
        """The partitions of which the group has a commit, or a transaction that has not ended holds one: topic and number."""
        partitions = {(topic, partition) for topic, partition, _ in each_commit(self.of(group_id))}
        for commits in self._open.values():
            partitions |= {(topic, partition) for of_group, topic, partition in commits if of_group == group_id}
        return partitions

    def partitions_in(self, topics: Collection[str]) -> Iterator[tuple[str, str, int]]:
        """The commits of these topics, and then those that transactions hold: group, topic and partition."""
        for group_id, offsets in self._groups.items():
            for topic in topics:
                for partition in offsets.get(topic, ()):
                    yield group_id, topic, partition
        for commits in self._open.values():
            yield from (key for key in commits if key[1] in topics)

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset, producer_id: int) -> None:
        """Replay of a commit, in the transaction of ``producer_id``, or of none with -1."""
        if producer_id == -1:
            self._groups.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed
        else:
            self._open.setdefault(producer_id, {})[group_id, topic, partition] = committed

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Replay of a commit's tombstone."""
        for commits in self._open.values():
            commits.pop((group_id, topic, partition), None)
        offsets = self._groups.get(group_id, {})
        partitions = offsets.get(topic, {})
        if partitions.pop(partition, None) is not None and not partitions:
            del offsets[topic]
            if not offsets:
                del self._groups[group_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> set[str]:
        """Replay of an end marker: take over or drop the commits of the transaction. The groups that they are of."""
        commits = self._open.pop(producer_id, {})
        if committed:
            for (group_id, topic, partition), commit in commits.items():
                known = find_commit(self.of(group_id), topic, partition)
                # A plain commit that came after the transactional one is newer, and stays.
                if known is None or known.record_offset < commit.record_offset:
                    self.commit(group_id, topic, partition, commit, -1)
        return {group_id for group_id, _, _ in commits}
