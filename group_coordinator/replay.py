"""Replay of the records of a ``__consumer_offsets`` partition, with one rule for each record type.

``RECORD_TYPES`` has the rule for each type of record; the classes of its key and its value stand under the same number in
``wire.coordinator_records``. A tombstone is replayed with no value. Any subset of the records, in the order in which they were
written, has to be understood: compaction may have taken others away.

A group id is of one group. A group of another type takes its place with the first of its records; the tombstones of the old
group stand before that. Where the last record of a group goes and offsets are left, the group is a *simple* one.
"""

from __future__ import annotations

from collections.abc import Callable

from ..wire.messages.consumer_group_records import ConsumerGroupMetadataKey
from ..wire.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..wire.schema import Message
from .classic_group import ClassicGroup
from .committed_offsets import CommittedOffset, OffsetTable
from .consumer_group import ConsumerGroup
from .group import Group
from .records import CoordinatorRecord, read_generation
from .share_group import ShareGroup
from .streams_group import StreamsGroup


class ReplayedGroups:
    """The groups and the committed offsets of one partition. What is durable of them changes in ``replay`` alone."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetTable()
        self.last_offset = 0
        self.last_ended: tuple[str, int] | None = None
        """The consumer group that ended last, and the offset of the tombstone of its epoch, which stands last."""
        # By group, the offset after its newest record; a group that does not exist depends on all of the log.
        self._depends_on: dict[str, int] = {}

    def depends_on(self, group_id: str) -> int:
        """The offset up to which the log must be committed before anything about this group may be told."""
        return self._depends_on.get(group_id, self.last_offset)

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The classic group of this id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The consumer group of this id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def share_group(self, group_id: str) -> ShareGroup | None:
        """The share group of this id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def add_group(self, group_id: str) -> ClassicGroup:
        """A group of which there is no record: the first member is about to join it."""
        group = self.groups[group_id] = ClassicGroup(group_id)
        self._depends_on[group_id] = self.last_offset
        return group

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int = -1) -> None:
        """Apply one record. ``producer_id`` is that of the transaction the record belongs to, -1 for none."""
        group_id = RECORD_TYPES[record.key.api_key](self, record.key, record.value, offset, producer_id)
        self._depend(group_id, offset + 1)

    def replay_end(self, producer_id: int, end_offset: int, *, committed: bool) -> None:
        """Apply the marker that ends a transaction, and itself at ``end_offset``: take over or drop its commits."""
        self.last_offset = end_offset
        for group_id in self.offsets.end_transaction(producer_id, committed=committed):
            self._depend(group_id, end_offset)

    def _depend(self, group_id: str, end_offset: int) -> None:
        self.last_offset = end_offset
        if group_id in self.groups:
            self._depends_on[group_id] = end_offset
        else:
            self._depends_on.pop(group_id, None)

    def remove_group(self, group_id: str) -> None:
        """The last record of a group is gone. Offsets have records of their own, which outlive those of the group."""
        del self.groups[group_id]
        if self.offsets.has_any(group_id):
            self.groups[group_id] = ClassicGroup(group_id)


Replay = Callable[..., str]
"""Applies a record to the ``ReplayedGroups``, given its key, its value, its offset and the producer id: the group's id."""


def _commit(
    state: ReplayedGroups, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
) -> str:
    group_id: str = key.group
    if value is None:
        state.offsets.remove(group_id, key.topic, key.partition)
    else:
        if group_id not in state.groups:
            state.groups[group_id] = ClassicGroup(group_id)
        state.offsets.commit(group_id, key.topic, key.partition, CommittedOffset(value, offset), producer_id)
    return group_id


def _legacy_commit(
    state: ReplayedGroups,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> str:
    present = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    if value is None:
        return _commit(state, present, None, offset, producer_id)
    commit = OffsetCommitValue(offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp)
    return _commit(state, present, commit, offset, producer_id)


def _generation(
    state: ReplayedGroups, key: GroupMetadataKey, value: GroupMetadataValue | None, offset: int, _: int
) -> str:
    group_id: str = key.group
    group = state.classic_group(group_id)
    if value is not None:
        if group is None:
            group = state.groups[group_id] = ClassicGroup(group_id)
        group.generation = read_generation(value)
        # A first generation after an empty consumer group may stand there as well, but has a small number.
        group.was_downgraded = (
            state.last_ended == (group_id, offset - 1) and value.generation > 1 and bool(value.members)
        )
    elif group is not None:
        state.remove_group(group_id)
    return group_id


def _consumer(state: ReplayedGroups, key: Message, value: Message | None, offset: int, _: int) -> str:
    """The rule for a record of a consumer group: what the group is after it."""
    group_id: str = key.group_id  # type: ignore[attr-defined]
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        state.last_ended = group_id, offset
    group = state.consumer_group(group_id)
    if group is None:
        if value is None:
            return group_id
        group = ConsumerGroup(group_id)
    state.groups[group_id] = group = group.with_record(key, value)
    if not group.exists:
        state.remove_group(group_id)
    return group_id


def _share(state: ReplayedGroups, key: Message, value: Message | None, *_: int) -> str:
    """The rule for a record of a share group: what the group is after it."""
    group_id: str = key.group_id  # type: ignore[attr-defined]
    group = state.share_group(group_id)
    if group is None:
        if value is None:
            return group_id
        group = ShareGroup(group_id)
    state.groups[group_id] = group = group.with_record(key, value)
    if not group.exists:
        state.remove_group(group_id)
    return group_id


def _streams(apply: Callable[..., None] | None = None) -> Replay:
    """The rule for a record of a Streams group, which is not served; ``apply`` is what else it says of it."""

    def replay(state: ReplayedGroups, key: Message, value: Message | None, *_: int) -> str:
        group_id: str = key.group_id  # type: ignore[attr-defined]
        group = state.groups.get(group_id)
        if not isinstance(group, StreamsGroup):
            if value is None:
                return group_id
            group = state.groups[group_id] = StreamsGroup(group_id)
        group.keep(key, is_there=value is not None)
        if apply is not None:
            apply(group, key, value)
        if not group.keys:
            state.remove_group(group_id)
        return group_id

    return replay


RECORD_TYPES: dict[int, Replay] = {
    0: _legacy_commit,
    1: _commit,
    2: _generation,
    3: _consumer,
    4: _consumer,
    5: _consumer,
    6: _consumer,
    7: _consumer,
    8: _consumer,
    10: _share,
    11: _share,
    12: _share,
    13: _share,
    14: _share,
    15: _share,
    16: _consumer,
    17: _streams(),
    19: _streams(StreamsGroup.replay_member),
    20: _streams(),
    21: _streams(),
    22: _streams(),
    23: _streams(),
}
"""Record type -> its rule."""
