"""The partitions of which the share coordinator keeps state for a share group, as an immutable value: one record has all of it.

============  ====================================================  ==========================================================
part          meaning                                               what ends it
============  ====================================================  ==========================================================
initializing  the share coordinator is asked to begin               it has begun, or refuses, or the topic is deleted
initialized   it has begun: members may be given the partition      offsets of the topic, the group or the topic are deleted
deleting      topics whose state it is asked to delete              it has deleted it, or members read the topic again
============  ====================================================  ==========================================================

A partition that gets another start offset is initialized and initializing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ..wire.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

Partitions = Mapping[bytes, AbstractSet[int]]
"""Topic id -> partitions."""


class NamedPartitions(NamedTuple):
    """Partitions of one topic."""

    topic_name: str
    partitions: frozenset[int]


NO_PARTITIONS: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class StatePartitions:
    """Of one group, by topic id. No set of partitions is empty."""

    initializing: Mapping[bytes, NamedPartitions] = dataclasses.field(default_factory=dict)
    initialized: Mapping[bytes, NamedPartitions] = dataclasses.field(default_factory=dict)
    deleting: Mapping[bytes, str] = dataclasses.field(default_factory=dict)
    """Topic id -> name."""
    is_written: bool = False
    """Whether a record has it."""

    def of(self, topic_id: bytes) -> frozenset[int]:
        """The partitions of a topic that members may be given."""
        found = self.initialized.get(topic_id)
        return NO_PARTITIONS if found is None else found.partitions

    def topics(self) -> Iterator[tuple[bytes, str]]:
        """Ids and names of all topics of any part. One may come twice."""
        for part in (self.initializing, self.initialized):
            yield from ((topic_id, topic.topic_name) for topic_id, topic in part.items())
        yield from self.deleting.items()

    def with_initializing(self, topics: Mapping[bytes, NamedPartitions]) -> StatePartitions:
        """The share coordinator is about to be asked for these. A topic among them is deleted no more."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return dataclasses.replace(self, initializing=_with(self.initializing, topics), deleting=deleting)

    def with_initialized(self, partitions: Partitions) -> StatePartitions:
        """The share coordinator has begun these. Those that nobody waits for any more are left out."""
        begun = {
            topic_id: NamedPartitions(waiting.topic_name, waiting.partitions & numbers)
            for topic_id, numbers in partitions.items()
            if (waiting := self.initializing.get(topic_id)) is not None and waiting.partitions & numbers
        }
        return dataclasses.replace(self.without_initializing(partitions), initialized=_with(self.initialized, begun))

    def without_initializing(self, partitions: Partitions) -> StatePartitions:
        """The share coordinator has begun these, or it refuses."""
        left = {}
        for topic_id, waiting in self.initializing.items():
            numbers = waiting.partitions - partitions.get(topic_id, NO_PARTITIONS)
            if numbers:
                left[topic_id] = waiting._replace(partitions=numbers)
        return dataclasses.replace(self, initializing=left)

    def with_deleting(self, topics: Mapping[bytes, str]) -> StatePartitions:
        """The share coordinator is about to be asked to delete the state of these topics, given with their names."""
        return dataclasses.replace(self.without_topics(topics), deleting={**self.deleting, **topics})

    def without_topics(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """The topics are gone, or their state is deleted."""
        gone = frozenset(topic_ids)
        return StatePartitions(
            {topic_id: part for topic_id, part in self.initializing.items() if topic_id not in gone},
            {topic_id: part for topic_id, part in self.initialized.items() if topic_id not in gone},
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
            is_written=self.is_written,
        )

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue | None) -> StatePartitions:
        """Replay of its record, or of the tombstone."""
        if value is None:
            return cls()
        return cls(
            _read(value.initializing_topics),
            _read(value.initialized_topics),
            {topic.topic_id: topic.topic_name for topic in value.deleting_topics},
            is_written=True,
        )

    def to_record(self) -> ShareGroupStatePartitionMetadataValue:
        """Its record, in the order of the topics' ids."""
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_written(self.initializing),
            initialized_topics=_written(self.initialized),
            deleting_topics=[
                TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in sorted(self.deleting.items())
            ],
        )


def _with(
    known: Mapping[bytes, NamedPartitions], more: Mapping[bytes, NamedPartitions]
) -> dict[bytes, NamedPartitions]:
    joined = dict(known)
    for topic_id, added in more.items():
        present = joined.get(topic_id)
        partitions = added.partitions if present is None else present.partitions | added.partitions
        joined[topic_id] = NamedPartitions(added.topic_name, partitions)
    return joined


def _read(topics: Iterable[TopicPartitionsInfo]) -> dict[bytes, NamedPartitions]:
    return {
        topic.topic_id: NamedPartitions(topic.topic_name, frozenset(topic.partitions))
        for topic in topics
        if topic.partitions
    }


def _written(topics: Mapping[bytes, NamedPartitions]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.topic_name, partitions=sorted(topic.partitions))
        for topic_id, topic in sorted(topics.items())
    ]
