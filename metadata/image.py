"""The cluster's metadata as one value: what every decision of a broker is a function of.

An image is never changed. ``apply`` makes the next one, which shares with it what the delta does not name; a topic's image is
the same object for as long as nothing about the topic changes, so what was derived from it holds for as long. Model: Apache
Kafka's ``MetadataImage``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..security.entities import BROKERS, TOPICS, Entity, Name
from ..wire.schema import ZERO_UUID
from .delta import ClusterDelta, TopicDelta
from .types import BrokerRegistration, FinalizedFeatures, PartitionRegistration

if TYPE_CHECKING:
    from ..security.acl import AclEntry, ResourcePattern
    from ..security.delegation import DelegationToken
    from ..security.scram import StoredCredentials

K = TypeVar("K")
V = TypeVar("V")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TopicImage:
    """One topic. ``partitions`` is sorted by number."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionRegistration]

    def apply(self, delta: TopicDelta) -> TopicImage | None:
        """The topic after a change; None for one without partitions, which is gone. Another id makes it another topic."""
        topic_id = self.topic_id if delta.topic_id == ZERO_UUID else delta.topic_id
        partitions = dict(self.partitions) if self.topic_id in (topic_id, ZERO_UUID) else {}
        for number, partition in delta.partitions.items():
            if partition is None:
                partitions.pop(number, None)
            else:
                partitions[number] = partition
        if not partitions:
            return None
        if len(partitions) != len(self.partitions):
            partitions = dict(sorted(partitions.items()))
        return TopicImage(self.name, topic_id, partitions)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ClusterImage:
    """The fields are those of ``ClusterDelta``, with everything that is known, and nothing that is empty."""

    controller_id: int = -1
    brokers: Mapping[int, BrokerRegistration] = dataclasses.field(default_factory=dict)
    """Those that are alive, in the order of their ids."""
    topics: Mapping[str, TopicImage] = dataclasses.field(default_factory=dict)
    """By name, in the order in which they were first told of."""
    topics_by_id: Mapping[bytes, TopicImage] = dataclasses.field(default_factory=dict)
    configs: Mapping[Entity, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    quotas: Mapping[Entity, Mapping[str, float]] = dataclasses.field(default_factory=dict)
    scram: Mapping[str, StoredCredentials] = dataclasses.field(default_factory=dict)
    acls: Mapping[ResourcePattern, frozenset[AclEntry]] = dataclasses.field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = dataclasses.field(default_factory=dict)
    features: FinalizedFeatures | None = None
    """None where nobody has told of features, as to a broker that is alone."""
    next_producer_id: int = -1
    """-1 where this broker has not been told of it."""

    def topic_config(self, name: str) -> Mapping[str, str]:
        """What is set on a topic."""
        return self.configs.get(Entity(TOPICS, name), _NOTHING)

    def broker_config(self, name: Name) -> Mapping[str, str]:
        """What is set on a broker, named by its id as text, or by DEFAULT on all."""
        return self.configs.get(Entity(BROKERS, name), _NOTHING)

    def apply(self, delta: ClusterDelta) -> ClusterImage:
        """The image after a change. Its cost grows with the kinds of metadata that change, and little with their size."""
        changed: dict[str, Any] = {
            name: _merged(getattr(self, name), changes)
            for name, changes in zip(_MERGED, map(delta.__getattribute__, _MERGED), strict=True)
            if changes
        }
        for name in ("controller_id", "features", "next_producer_id"):
            if (value := getattr(delta, name)) is not None:
                changed[name] = value
        if delta.brokers is not None:
            brokers = {broker.broker_id: broker for broker in sorted(delta.brokers, key=lambda each: each.broker_id)}
            if brokers != self.brokers:
                changed["brokers"] = brokers
        if delta.topics:
            changed["topics"], changed["topics_by_id"] = self._with_topics(delta.topics)
        return dataclasses.replace(self, **changed)

    def _with_topics(
        self, changes: Sequence[TopicDelta]
    ) -> tuple[Mapping[str, TopicImage], Mapping[bytes, TopicImage]]:
        topics, by_id = dict(self.topics), dict(self.topics_by_id)
        for delta in changes:
            before = topics.get(delta.name) or TopicImage(delta.name, ZERO_UUID, {})
            by_id.pop(before.topic_id, None)
            after = before.apply(delta)
            if after is None:
                topics.pop(delta.name, None)
                continue
            topics[delta.name] = after
            if after.topic_id != ZERO_UUID:
                by_id[after.topic_id] = after
        return topics, by_id


_NOTHING: Mapping[str, str] = {}
_MERGED = ("configs", "quotas", "scram", "acls", "tokens")
"""The kinds of metadata in which a key's new value stands for itself, and an empty one for a key that is gone."""


def _merged(known: Mapping[K, V], changes: Mapping[K, V]) -> Mapping[K, V]:
    merged = {**known, **changes}
    for key, value in changes.items():
        if not value:
            del merged[key]
    return merged
