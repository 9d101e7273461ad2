"""The metadata image: the cluster's metadata as one immutable value, on which every decision of a broker is based.

An image is never changed. ``apply`` makes the next one, which shares with it what the delta does not name: the cost grows with
what changes, and not with what there is (``PersistentDict``). A topic's image is the same object for as long as nothing about the
topic changes, so what was derived from it holds for as long. Model: Apache Kafka's ``MetadataImage``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..security.entities import BROKERS, TOPICS, Entity, Name
from ..wire.schema import ZERO_UUID
from .delta import ClusterDelta, TopicDelta
from .persistent_dict import PersistentDict
from .types import (
    BrokerRegistration,
    FinalizedFeatures,
    LogPosition,
    PartitionRegistration,
    QuorumBroker,
    QuorumController,
)

if TYPE_CHECKING:
    from ..security.acl import AclBinding, AclEntry, ResourcePattern
    from ..security.delegation import DelegationToken
    from ..security.scram import StoredCredentials


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class TopicImage:
    """One topic."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionRegistration]
    """By number, in the order of the numbers."""

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
    topics: PersistentDict[str, TopicImage] = dataclasses.field(default_factory=PersistentDict)
    """By name, in the order in which they were first told of."""
    topics_by_id: PersistentDict[bytes, TopicImage] = dataclasses.field(default_factory=PersistentDict)
    configs: PersistentDict[Entity, Mapping[str, str]] = dataclasses.field(default_factory=PersistentDict)
    quotas: PersistentDict[Entity, Mapping[str, float]] = dataclasses.field(default_factory=PersistentDict)
    scram: PersistentDict[str, StoredCredentials] = dataclasses.field(default_factory=PersistentDict)
    acls: PersistentDict[ResourcePattern, frozenset[AclEntry]] = dataclasses.field(default_factory=PersistentDict)
    tokens: PersistentDict[str, DelegationToken] = dataclasses.field(default_factory=PersistentDict)
    features: FinalizedFeatures | None = None
    """None where nobody has told of features, as to a broker that is alone."""
    next_producer_id: int = -1
    """-1 where this broker has not been told of it."""
    quorum_brokers: PersistentDict[int, QuorumBroker] = dataclasses.field(default_factory=PersistentDict)
    quorum_controllers: PersistentDict[int, QuorumController] = dataclasses.field(default_factory=PersistentDict)
    acl_ids: PersistentDict[bytes, AclBinding] = dataclasses.field(default_factory=PersistentDict)
    position: LogPosition | None = None
    """None in ZooKeeper mode, and before the first record."""

    def topic_config(self, name: str) -> Mapping[str, str]:
        """What is set on a topic."""
        return self.configs.get(Entity(TOPICS, name), _NOTHING)

    def broker_config(self, name: Name) -> Mapping[str, str]:
        """What is set on a broker, named by its id as text, or by DEFAULT on all."""
        return self.configs.get(Entity(BROKERS, name), _NOTHING)

    def apply(self, delta: ClusterDelta) -> ClusterImage:
        """The image after a change."""
        changed: dict[str, Any] = {}
        for name in _BY_KEY:
            if changes := getattr(delta, name):
                changed[name] = getattr(self, name).changed({key: value or None for key, value in changes.items()})
        for name in ("controller_id", "features", "next_producer_id", "position"):
            if (value := getattr(delta, name)) is not None:
                changed[name] = value
        if delta.brokers is not None:
            brokers = {broker.broker_id: broker for broker in sorted(delta.brokers, key=lambda each: each.broker_id)}
            if brokers != self.brokers:
                changed["brokers"] = brokers
        if delta.topics:
            changed["topics"], changed["topics_by_id"] = self._with_topics(delta.topics)
        return dataclasses.replace(self, **changed)

    def detached(self) -> ClusterImage:
        """The same image for another thread, which ``apply`` does not touch: a copy of each dict, not of what is in it."""
        copies: dict[str, Any] = {
            name: PersistentDict(dict(getattr(self, name).newest())) for name in ("topics", "topics_by_id", *_BY_KEY)
        }
        return dataclasses.replace(self, **copies)

    def _with_topics(
        self, changes: Sequence[TopicDelta]
    ) -> tuple[PersistentDict[str, TopicImage], PersistentDict[bytes, TopicImage]]:
        topics: dict[str, TopicImage | None] = {}
        by_id: dict[bytes, TopicImage | None] = {}
        for delta in changes:
            name = delta.name
            before = topics[name] if name in topics else self.topics.get(name)
            if before is not None:
                by_id[before.topic_id] = None  # a topic made again under its name has another id
            after = topics[name] = (before or TopicImage(name, ZERO_UUID, {})).apply(delta)
            if after is not None and after.topic_id != ZERO_UUID:
                by_id[after.topic_id] = after
        return self.topics.changed(topics), self.topics_by_id.changed(by_id)


_NOTHING: Mapping[str, str] = {}
_BY_KEY = ("configs", "quotas", "scram", "acls", "tokens", "quorum_brokers", "quorum_controllers", "acl_ids")
"""The kinds of metadata in which a key's new value stands for itself, and an empty one for a key that is gone."""
