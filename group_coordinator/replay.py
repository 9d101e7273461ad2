"""Replay of the records of a ``__consumer_offsets`` partition, with one rule for each record type.

``RECORD_TYPES`` has the rule for each type of record; the classes of its key and its value stand under the same number in
``wire.coordinator_records``. A tombstone is replayed with no value. Any subset of the records, in the order in which they were
written, has to be understood: compaction may have taken others away.
"""

from __future__ import annotations

from collections.abc import Callable

from ..wire.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..wire.schema import Message
from .committed_offsets import CommittedOffset, OffsetTable
from .group import Group
from .modern import ModernGroup, ModernKind
from .records import CoordinatorRecord, read_generation


class ReplayedGroups:
    """The groups and the committed offsets of one partition. What is durable of them changes in ``replay`` alone."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.modern: dict[str, ModernGroup] = {}
        """Groups of the newer protocols; where they have offsets, a group of that id is in ``groups``, too."""
        self.offsets = OffsetTable()
        self.last_offset = 0
        # By group, the offset after its newest record; a group that does not exist depends on all of the log.
        self._depends_on: dict[str, int] = {}

    def depends_on(self, group_id: str) -> int:
        """The offset up to which the log must be committed before anything about this group may be told."""
        return self._depends_on.get(group_id, self.last_offset)

    def add_group(self, group_id: str) -> Group:
        """A group of which there is no record: the first member is about to join it."""
        group = self.groups[group_id] = Group(group_id)
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
        if group_id in self.groups or group_id in self.modern:
            self._depends_on[group_id] = end_offset
        else:
            self._depends_on.pop(group_id, None)


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
            state.groups[group_id] = Group(group_id)
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


def _generation(state: ReplayedGroups, key: GroupMetadataKey, value: GroupMetadataValue | None, *_: int) -> str:
    group_id: str = key.group
    group = state.groups.get(group_id)
    if value is not None:
        if group is None:
            group = state.groups[group_id] = Group(group_id)
        group.generation = read_generation(value)
    elif group is not None:
        del state.groups[group_id]
        # Offsets have records of their own, which outlive the generation's: the group stays as a simple one.
        if state.offsets.has_any(group_id):
            state.groups[group_id] = Group(group_id)
    return group_id


def _of(kind: ModernKind, apply: Callable[..., None] | None = None) -> Replay:
    """The rule for a record of a group of a newer protocol: it makes the group, and ``apply`` is what else it says of it."""

    def replay(state: ReplayedGroups, key: Message, value: Message | None, *_: int) -> str:
        group_id: str = key.group_id  # type: ignore[attr-defined]
        group = state.modern.get(group_id)
        if group is None:
            if value is None:
                return group_id
            group = state.modern[group_id] = ModernGroup(group_id, kind)
        group.keep(kind, key, is_there=value is not None)
        if apply is not None:
            apply(group, key, value)
        if not group.keys:
            del state.modern[group_id]
        return group_id

    return replay


RECORD_TYPES: dict[int, Replay] = {
    0: _legacy_commit,
    1: _commit,
    2: _generation,
    3: _of(ModernKind.CONSUMER, ModernGroup.replay_epoch),
    4: _of(ModernKind.CONSUMER),
    5: _of(ModernKind.CONSUMER, ModernGroup.replay_member),
    6: _of(ModernKind.CONSUMER, ModernGroup.replay_assignment_epoch),
    7: _of(ModernKind.CONSUMER),
    8: _of(ModernKind.CONSUMER, ModernGroup.replay_current_assignment),
    10: _of(ModernKind.SHARE, ModernGroup.replay_member),
    11: _of(ModernKind.SHARE),
    12: _of(ModernKind.SHARE),
    13: _of(ModernKind.SHARE),
    14: _of(ModernKind.SHARE),
    15: _of(ModernKind.SHARE),
    16: _of(ModernKind.CONSUMER, ModernGroup.replay_expression),
    17: _of(ModernKind.STREAMS),
    19: _of(ModernKind.STREAMS, ModernGroup.replay_member),
    20: _of(ModernKind.STREAMS),
    21: _of(ModernKind.STREAMS),
    22: _of(ModernKind.STREAMS),
    23: _of(ModernKind.STREAMS),
}
"""Record type -> its rule."""
