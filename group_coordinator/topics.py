"""The topics of the cluster as the coordinator of consumer groups sees them: their names, ids and numbers of partitions.

It follows the published metadata image, and says by ``version`` whether anything that an assignment depends on has changed since:
leaders and replicas change all the time, and no assignment depends on them. So a heartbeat compares two numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..metadata.types import LogPosition


class TopicSize(NamedTuple):
    """A topic, as far as assignments depend on it."""

    topic_id: bytes
    partition_count: int


class TopicSizes:
    """The topics that there are. ``publish`` is a publisher of the ``MetadataCache``."""

    def __init__(self, image: ClusterImage | None = None) -> None:
        self.version = 0
        """Grows with every topic that is made, is deleted or gets partitions. In a quorum it is an offset of the metadata log."""
        self.newest_topic_version = 0
        """``version`` as of the newest topic, which expressions may match."""
        self._topics: dict[str, TopicSize] = {}
        self._names: dict[bytes, str] = {}
        self._digests: dict[str, int] = {}
        """By name, of topics whose hash somebody has asked for. That of several is the sum, so their order does not matter."""
        if image is not None:
            self._take_over(image, image.topics.newest(), image.position)

    def publish(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Take over the topics of a delta."""
        if delta.topics:
            self._take_over(image, {topic.name for topic in delta.topics}, delta.position)

    def _take_over(self, image: ClusterImage, names: Iterable[str], position: LogPosition | None) -> None:
        topics = image.topics.newest()
        sizes: dict[str, TopicSize | None] = {}
        for name in names:
            topic = topics.get(name)
            sizes[name] = None if topic is None else TopicSize(topic.topic_id, len(topic.partitions))
        self.update(sizes, 0 if position is None else position.offset)

    def put(self, name: str, size: TopicSize | None, offset: int = 0) -> None:
        """A topic as it is now, None for one that is gone, as of an offset of the metadata log."""
        self.update({name: size}, offset)

    def update(self, sizes: Mapping[str, TopicSize | None], offset: int) -> None:
        """Several topics, as ``put`` has one.

        All have one version. With one for each it would run ahead of the metadata log, and a coordinator on another broker
        would take the topics that come next for topics that have been looked at.
        """
        changes = {name: size for name, size in sizes.items() if self._topics.get(name) != size}
        if changes:
            self.version = max(self.version + 1, offset)
        for name, size in changes.items():
            self._digests.pop(name, None)
            before = self._topics.pop(name, None)
            if before is not None:
                del self._names[before.topic_id]
            if size is None:
                continue
            if before is None or before.topic_id != size.topic_id:
                self.newest_topic_version = self.version
            self._topics[name] = size
            self._names[size.topic_id] = name

    def find(self, name: str) -> TopicSize | None:
        """A topic by its name."""
        return self._topics.get(name)

    def find_by_id(self, topic_id: bytes) -> tuple[str, int] | None:
        """Name and number of partitions of a topic."""
        name = self._names.get(topic_id)
        return None if name is None else (name, self._topics[name].partition_count)

    def names(self) -> Collection[str]:
        """The names of all topics."""
        return self._topics.keys()

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those of these topics that exist."""
        topics = self._topics
        return frozenset(topics[name].topic_id for name in names if name in topics)

    def hash_of(self, names: Iterable[str]) -> int:
        """A number of 64 bits that changes when one of these topics is made, is deleted or gets partitions; 0 for none.

        Kafka's own hash (KIP-1101) has the racks of replicas in it. Where its brokers take over a group they find another
        number than theirs, and make one more target assignment.
        """
        digests, topics = self._digests, self._topics
        total = 0
        for name in names:
            digest = digests.get(name)
            if digest is None:
                if (size := topics.get(name)) is None:
                    continue
                digest = digests[name] = _digest(name, size)
            total += digest
        return int.from_bytes((total % (1 << 64)).to_bytes(8), signed=True)


def _digest(name: str, size: TopicSize) -> int:
    encoded = name.encode()
    data = len(encoded).to_bytes(2) + encoded + size.topic_id + size.partition_count.to_bytes(4)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
