"""Indexes from brokers to partitions, derived from a metadata image and updated with it.

Fencing a broker changes the partitions of that broker, and must not look at all others. An index is a value as the image is:
``apply`` makes the next one from the same delta, at a cost of what changes. Models: Kafka's BrokersToIsrs and BrokersToElrs,
and the maps of ReplicationControlManager.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ....base.partitions import NO_LEADER
from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage
from ....metadata.persistent_dict import PersistentDict
from ....metadata.types import LAST_RESERVED_DIRECTORY, PartitionRegistration

PartitionKey = tuple[bytes, int]
"""A topic's id and the number of a partition."""
KeySet = PersistentDict[PartitionKey, bool]
"""A set of partitions that never changes."""

_EMPTY: KeySet = PersistentDict()
_NONE: Mapping[int, KeySet] = {}
_EMPTY_DIRECTORIES: Mapping[bytes, KeySet] = {}
T = TypeVar("T")
_Changes = dict[T, dict[PartitionKey, "bool | None"]]


@dataclasses.dataclass(frozen=True)
class ImageIndex:
    """The partitions of an image by what operations look for."""

    isr_members: Mapping[int, KeySet] = dataclasses.field(default_factory=lambda: _NONE)
    """By broker, the partitions in whose ISR it is."""
    leaders: Mapping[int, KeySet] = dataclasses.field(default_factory=lambda: _NONE)
    """By broker, the partitions that it leads; under NO_LEADER those that nobody leads."""
    elr_members: Mapping[int, KeySet] = dataclasses.field(default_factory=lambda: _NONE)
    """By broker, the partitions of which it is an eligible leader replica (KIP-966)."""
    directories: Mapping[bytes, KeySet] = dataclasses.field(default_factory=lambda: _EMPTY_DIRECTORIES)
    """By log directory, the partitions with a replica in it (KIP-858); without ids that stand for no directory."""
    not_preferred: KeySet = dataclasses.field(default_factory=PersistentDict)
    """The partitions that are not led by their first replica."""
    moving: KeySet = dataclasses.field(default_factory=PersistentDict)
    """The partitions with a reassignment under way (KIP-455)."""
    similar_names: PersistentDict[str, tuple[str, ...]] = dataclasses.field(default_factory=PersistentDict)
    """The names of topics with a dot or an underscore, by the name in which both are underscores."""

    @classmethod
    def of(cls, image: ClusterImage) -> ImageIndex:
        """The index of a whole image, at a cost of all of it: for a node that has loaded a snapshot."""
        change = _IndexChange(cls())
        for topic in image.topics.newest().values():
            change.add_name(topic.name)
            for number, partition in topic.partitions.items():
                change.note((topic.topic_id, number), None, partition)
        return change.result()

    def apply(self, before: ClusterImage, delta: ClusterDelta) -> ImageIndex:
        """The index of ``before.apply(delta)``; call it before that, because ``before`` is read."""
        if not delta.topics:
            return self
        change = _IndexChange(self)
        known = before.topics_by_id.newest()
        for topic in delta.topics:
            image = known.get(topic.topic_id)
            partitions = {} if image is None else image.partitions
            if image is None:
                change.add_name(topic.name)
            elif topic.partitions and all(partition is None for partition in topic.partitions.values()):
                change.remove_name(topic.name)
            for number, partition in topic.partitions.items():
                change.note((topic.topic_id, number), partitions.get(number), partition)
        return change.result()

    def with_broker_in_isr(self, broker_id: int) -> Iterable[PartitionKey]:
        return list(self.isr_members.get(broker_id, _EMPTY).newest())

    def with_broker_in_elr(self, broker_id: int) -> Iterable[PartitionKey]:
        return list(self.elr_members.get(broker_id, _EMPTY).newest())

    def in_directory(self, directory: bytes) -> Iterable[PartitionKey]:
        return list(self.directories.get(directory, _EMPTY).newest())

    def without_leader(self) -> Iterable[PartitionKey]:
        return list(self.leaders.get(NO_LEADER, _EMPTY).newest())

    def has_leaderships(self, broker_id: int) -> bool:
        return bool(self.leaders.get(broker_id, _EMPTY).newest())


class _IndexChange:
    """What differs between an index and the next one."""

    def __init__(self, index: ImageIndex) -> None:
        self._index = index
        self._isr: _Changes[int] = defaultdict(dict)
        self._leaders: _Changes[int] = defaultdict(dict)
        self._elr: _Changes[int] = defaultdict(dict)
        self._directories: _Changes[bytes] = defaultdict(dict)
        self._not_preferred: dict[PartitionKey, bool | None] = {}
        self._moving: dict[PartitionKey, bool | None] = {}
        self._names: dict[str, tuple[str, ...] | None] = {}

    def note(
        self, key: PartitionKey, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        _note_members(self._isr, key, before and before.isr, after and after.isr)
        _note_members(self._elr, key, before and before.elr, after and after.elr)
        _note_members(self._leaders, key, before and (before.leader,), after and (after.leader,))
        _note_members(self._directories, key, _known_directories(before), _known_directories(after))
        self._not_preferred[key] = (after is not None and after.leader != after.replicas[0]) or None
        self._moving[key] = (after is not None and bool(after.adding or after.removing)) or None

    def add_name(self, name: str) -> None:
        if (unified := unified_name(name)) is not None:
            self._names[unified] = (*self._similar(unified), name)

    def remove_name(self, name: str) -> None:
        if (unified := unified_name(name)) is not None:
            self._names[unified] = tuple(other for other in self._similar(unified) if other != name)

    def _similar(self, unified: str) -> tuple[str, ...]:
        if unified in self._names:
            return self._names[unified] or ()
        return self._index.similar_names.newest().get(unified, ())

    def result(self) -> ImageIndex:
        index = self._index
        return ImageIndex(
            _with_changes(index.isr_members, self._isr),
            _with_changes(index.leaders, self._leaders),
            _with_changes(index.elr_members, self._elr),
            _with_changes(index.directories, self._directories),
            _changed(index.not_preferred, self._not_preferred),
            _changed(index.moving, self._moving),
            index.similar_names.changed({name: names or None for name, names in self._names.items()})
            if self._names
            else index.similar_names,
        )


def unified_name(name: str) -> str | None:
    """By which a topic's name collides with others, since names of metrics can't tell a dot from an underscore."""
    return name.replace(".", "_") if "." in name or "_" in name else None


def _known_directories(partition: PartitionRegistration | None) -> tuple[bytes, ...]:
    if partition is None:
        return ()
    return tuple(each for each in partition.directories if each > LAST_RESERVED_DIRECTORY)


def _note_members(
    changes: _Changes[T], key: PartitionKey, before: tuple[T, ...] | None, after: tuple[T, ...] | None
) -> None:
    before, after = before or (), after or ()
    if before == after:
        return
    for broker_id in before:
        if broker_id not in after:
            changes[broker_id][key] = None
    for broker_id in after:
        if broker_id not in before:
            changes[broker_id][key] = True


def _with_changes(known: Mapping[T, KeySet], changes: _Changes[T]) -> Mapping[T, KeySet]:
    if not changes:
        return known
    changed = {broker_id: known.get(broker_id, PersistentDict()).changed(keys) for broker_id, keys in changes.items()}
    return {**known, **changed}


def _changed(known: KeySet, changes: dict[PartitionKey, bool | None]) -> KeySet:
    """``known`` itself where nothing of it changes, which is so for most changes."""
    items = known.newest()
    real = {key: value for key, value in changes.items() if (value is None) is (key in items)}
    return known.changed(real) if real else known
