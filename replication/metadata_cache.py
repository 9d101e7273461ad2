"""The metadata cache: the newest metadata image published to this broker, which its responses to clients are based on.

Whoever keeps the metadata publishes deltas: a controller's requests, the stores of configs, quotas, access rules and tokens. Each
delta makes a new ``image``, which is then handed to the ``publishers`` in their order; those who wait are woken last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import trio

from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage, TopicImage
from ..metadata.published import Publish
from ..metadata.types import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerRegistration,
    PartitionRegistration,
)

_TOPICS_FOLLOW_SECONDS = 10.0
"""How long a broker with logs waits to be told of topics, after it was told of brokers."""


class BrokerNode(NamedTuple):
    """A live broker as clients of one listener reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class MetadataCache:
    """The cluster as of the last delta, and views of it that are derived once.

    A controller that takes over tells first of brokers alone (KafkaController ``onControllerFailover``), and of partitions once
    it has elected their leaders. A broker that ``has_logs`` therefore waits a while for the second part.
    """

    def __init__(self, cluster_id: str = "", has_logs: Callable[[], bool] = lambda: False) -> None:
        self.cluster_id = cluster_id
        self._has_logs = has_logs
        self._is_initialized = False
        self._doubted_until: float | None = None
        self.image = ClusterImage()
        self.topics: Mapping[str, TopicImage] = self.image.topics.newest()
        """The newest, by name, in the order in which this broker was told of them. They change with each delta."""
        self._by_id: Mapping[bytes, TopicImage] = self.image.topics_by_id.newest()
        self._nodes: dict[str, dict[int, BrokerNode]] = {}
        self._derived: dict[str, tuple[TopicImage, dict[Any, Any]]] = {}
        self._changed = trio.Event()
        self.publishers: list[Publish] = []

    @property
    def controller_id(self) -> int:
        """-1 where this broker knows of no controller."""
        return self.image.controller_id

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
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

    def nodes(self, listener: str) -> Mapping[int, BrokerNode]:
        """The live brokers that have this listener, by id."""
        return self._nodes.get(listener, {})

    def registered_node(self, listener: str, broker_id: int) -> BrokerNode | None:
        """A broker of a quorum with this listener, alive or fenced; None where it is not registered."""
        registered = self.image.quorum_brokers.newest().get(broker_id)
        if registered is None:
            return None
        return _nodes_by_listener([registered.registration]).get(listener, {}).get(broker_id)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.image.brokers

    def may_be_in_sync(self, broker_id: int) -> bool:
        """Whether it is alive and is not about to stop; a controller takes no other into the in-sync replicas (KAFKA-13916)."""
        registered = self.image.quorum_brokers.newest().get(broker_id)
        return broker_id in self.image.brokers and (registered is None or not registered.is_shutting_down)

    def offline_replicas(self, partition: PartitionRegistration) -> list[int]:
        """Those whose log directory has failed, and in a cluster of KRaft those of brokers that are not alive as well."""
        if not partition.directories:
            return list(partition.offline)
        located = zip(partition.replicas, partition.directories, strict=False)
        return [replica for replica, directory in located if not self._is_online(replica, directory)]

    def _is_online(self, broker_id: int, directory: bytes) -> bool:
        registered = self.image.quorum_brokers.newest().get(broker_id)
        if registered is None or registered.is_fenced or directory == LOST_DIRECTORY:
            return False
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) or not registered.directories:
            return True
        return directory in registered.directories

    def broker_ids(self) -> Iterable[int]:
        """Ids of the live brokers, in order."""
        return self.image.brokers.keys()

    def brokers(self) -> list[BrokerRegistration]:
        """The live brokers with all of their listeners, by id."""
        return list(self.image.brokers.values())

    def derived(self, topic: TopicImage) -> dict[Any, Any]:
        """Where answers made of a topic and of the live brokers are kept, by their maker's key, until one of them changes."""
        known = self._derived.get(topic.name)
        if known is None or known[0] is not topic:
            known = self._derived[topic.name] = topic, {}
        return known[1]

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once ``condition`` is true; it is evaluated again after each update."""
        while not condition():
            await self._changed.wait()

    @property
    def is_initialized(self) -> bool:
        """Whether a controller has told of the cluster; before that the cluster would look empty."""
        return self._is_initialized or (self._doubted_until is not None and trio.current_time() >= self._doubted_until)

    async def wait_initialized(self) -> None:
        """Return once ``is_initialized``."""
        while not self.is_initialized:
            # The end of the doubt is no update, so nothing else wakes this.
            doubted_until = math.inf if self._doubted_until is None else self._doubted_until
            with trio.move_on_at(doubted_until):
                await self._changed.wait()

    def publish(self, delta: ClusterDelta) -> None:
        """Take over what has changed of the cluster."""
        brokers = self.image.brokers
        image = self.image = self.image.apply(delta)
        self.topics, self._by_id = image.topics.newest(), image.topics_by_id.newest()
        if image.brokers is not brokers:
            self._nodes = _nodes_by_listener(image.brokers.values())
        if image.brokers is not brokers or delta.quorum_brokers:
            self._derived = {}  # whether a leader is alive, and a log directory works, is part of those answers
        for topic in delta.topics:
            self._derived.pop(topic.name, None)
        if delta.brokers is not None:
            self._update_initialized()
        for publish in self.publishers:
            publish(delta, image)
        self._changed.set()
        self._changed = trio.Event()

    def _update_initialized(self) -> None:
        self._is_initialized = self._is_initialized or bool(self.topics) or not self._has_logs()
        if not self._is_initialized and self._doubted_until is None:
            self._doubted_until = trio.current_time() + _TOPICS_FOLLOW_SECONDS


def _nodes_by_listener(brokers: Iterable[BrokerRegistration]) -> dict[str, dict[int, BrokerNode]]:
    nodes: dict[str, dict[int, BrokerNode]] = {}
    for broker in brokers:
        for endpoint in broker.endpoints:
            node = BrokerNode(broker.broker_id, endpoint.host, endpoint.port, broker.rack)
            nodes.setdefault(endpoint.listener, {})[broker.broker_id] = node
    return nodes
