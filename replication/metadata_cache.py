"""The cluster as this broker knows it and tells clients: what was published to it, and nothing else.

Readers get the objects kept here. A topic's objects are replaced as a whole by the next delta that names it, so whatever was
derived from a ``CachedTopic`` holds as long as that object is the current one. ``version`` grows with every delta.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import trio

from ..metadata.delta import ClusterDelta, TopicDelta
from ..metadata.types import BrokerRegistration, PartitionRegistration
from ..wire.schema import ZERO_UUID

_TOPICS_FOLLOW_SECONDS = 10.0
"""How long a broker with logs waits to be told of topics, after it was told of brokers."""


class Node(NamedTuple):
    """A live broker as clients of one listener reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclasses.dataclass(slots=True)
class CachedTopic:
    """One topic. ``partitions`` is sorted by number; ``derived`` caches answers made from this object, by their maker's key."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionRegistration]
    derived: dict[Any, Any] = dataclasses.field(default_factory=dict)


class MetadataCache:
    """The cluster as of the last update.

    A controller that takes over tells first of brokers alone (KafkaController ``onControllerFailover``), and of partitions once
    it has elected their leaders. A broker that ``has_logs`` therefore waits a while for the second part.
    """

    def __init__(self, cluster_id: str, has_logs: Callable[[], bool] = lambda: False) -> None:
        self.cluster_id = cluster_id
        self._has_logs = has_logs
        self._is_told = False
        self._doubted_until: float | None = None
        self.controller_id = -1
        self.version = 0
        self.topics: dict[str, CachedTopic] = {}
        """By name, in order of creation."""
        self._controller_epoch = -1
        self._by_id: dict[bytes, CachedTopic] = {}
        self._brokers: dict[int, BrokerRegistration] = {}
        self._nodes: dict[str, dict[int, Node]] = {}
        self._changed = trio.Event()
        self.update_listeners: list[Callable[[ClusterDelta], None]] = []
        """Told of each delta, once it is known here."""
        self.deletion_listeners: list[Callable[[str], None]] = []
        """Told the name of a topic whose last partition is gone."""
        self.broker_listeners: list[Callable[[], None]] = []
        """Told when other brokers are alive than before, or have other addresses."""

    def topic(self, name: str) -> CachedTopic | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> CachedTopic | None:
        return self._by_id.get(topic_id)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self._by_id.get(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> bytes | None:
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def partition(self, name: str, number: int) -> PartitionRegistration | None:
        topic = self.topics.get(name)
        return None if topic is None else topic.partitions.get(number)

    def nodes(self, listener: str) -> Mapping[int, Node]:
        """The live brokers that have this listener, by id."""
        return self._nodes.get(listener, {})

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._brokers

    def broker_ids(self) -> Iterable[int]:
        """Ids of the live brokers, in order."""
        return sorted(self._brokers)

    def brokers(self) -> list[BrokerRegistration]:
        """The live brokers with all of their listeners, by id."""
        return [self._brokers[broker_id] for broker_id in sorted(self._brokers)]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` is true; it is evaluated again after each update."""
        while not condition():
            await self._changed.wait()

    @property
    def is_told(self) -> bool:
        """Whether a controller has told of the cluster; before that the cluster would look empty."""
        return self._is_told or (self._doubted_until is not None and trio.current_time() >= self._doubted_until)

    async def wait_known(self) -> None:
        """Return once ``is_told``."""
        while not self.is_told:
            # The end of the doubt is no update, so nothing else wakes this.
            doubted_until = math.inf if self._doubted_until is None else self._doubted_until
            with trio.move_on_at(doubted_until):
                await self._changed.wait()

    def accept_controller_epoch(self, controller_epoch: int) -> bool:
        """Note a controller's epoch; False when it is older than that of another controller that this broker has heard of."""
        if controller_epoch < self._controller_epoch:
            return False
        self._controller_epoch = controller_epoch
        return True

    def publish(self, delta: ClusterDelta) -> None:
        """Take over what has changed of the cluster."""
        self.controller_id = delta.controller_id
        self.version += 1
        if {broker.broker_id: broker for broker in delta.brokers} != self._brokers:
            self._take_brokers(delta.brokers)
        for topic in delta.topics:
            self._take_topic(topic)
        self._is_told = self._is_told or bool(self.topics) or not self._has_logs()
        if not self._is_told and self._doubted_until is None:
            self._doubted_until = trio.current_time() + _TOPICS_FOLLOW_SECONDS
        for listener in self.update_listeners:
            listener(delta)
        self._changed.set()
        self._changed = trio.Event()

    def _take_brokers(self, brokers: Iterable[BrokerRegistration]) -> None:
        """Replace the live brokers, and drop what was derived from topics: whether a leader is alive is part of those answers."""
        self._brokers = {broker.broker_id: broker for broker in brokers}
        self._nodes = {}
        for broker_id in sorted(self._brokers):
            broker = self._brokers[broker_id]
            for endpoint in broker.endpoints:
                node = Node(broker_id, endpoint.host, endpoint.port, broker.rack)
                self._nodes.setdefault(endpoint.listener, {})[broker_id] = node
        for topic in self.topics.values():
            topic.derived = {}
        for listener in self.broker_listeners:
            listener()

    def _take_topic(self, delta: TopicDelta) -> None:
        name, topic_id = delta.name, delta.topic_id
        before = self.topics.get(name)
        if topic_id == ZERO_UUID and before is not None:
            topic_id = before.topic_id
        is_same = before is not None and before.topic_id in (topic_id, ZERO_UUID)
        partitions = dict(before.partitions) if before is not None and is_same else {}
        for number, partition in delta.partitions.items():
            if partition is None:
                partitions.pop(number, None)
            else:
                partitions[number] = partition
        if before is not None:
            self._by_id.pop(before.topic_id, None)
        if not partitions:
            if self.topics.pop(name, None) is not None:
                for listener in self.deletion_listeners:
                    listener(name)
            return
        topic = CachedTopic(name, topic_id, dict(sorted(partitions.items())))
        self.topics[name] = topic
        if topic_id != ZERO_UUID:
            self._by_id[topic_id] = topic
