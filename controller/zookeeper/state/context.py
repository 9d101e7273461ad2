"""The controller context: the live brokers, all topics, and the state of each partition.

It is a copy of the cluster store, loaded when this broker becomes controller and changed only after the store was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ....base.errors import ErrorCode
from ....base.partitions import TopicPartition
from ....metadata.types import BrokerRegistration, LeaderState, ReplicaAssignment, TopicAssignment


class LiveBroker(NamedTuple):
    """A registered broker."""

    registration: BrokerRegistration
    epoch: int
    """The zxid of its registration: a restarted broker has a higher one (KIP-380)."""


@dataclasses.dataclass(slots=True)
class PartitionState:
    """One partition: its replicas, and who leads."""

    assignment: ReplicaAssignment
    state: LeaderState | None = None
    """None until a first leader was chosen."""
    partition_epoch: int = 0
    """The version of the state node."""
    modified_zxid: int = 0
    """The transaction that had written the state node when it was last read."""


@dataclasses.dataclass(slots=True)
class TopicState:
    """One topic."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionState]
    version: int = 0
    """That of its node in the store."""

    def assignment(self) -> TopicAssignment:
        return TopicAssignment(self.topic_id, {number: p.assignment for number, p in self.partitions.items()})

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].assignment.replicas)


@dataclasses.dataclass(slots=True)
class ControllerContext:
    """The cluster as this controller sees it."""

    controller_id: int
    epoch: int = 0
    """The controller epoch of this term."""
    epoch_version: int = 0
    """The version of the ``/controller_epoch`` node, by which writes are fenced."""
    inter_broker_listener: str = ""
    """The name of the listener by which brokers reach one another."""
    brokers: dict[int, LiveBroker] = dataclasses.field(default_factory=dict)
    topics: dict[str, TopicState] = dataclasses.field(default_factory=dict)
    deleting: set[str] = dataclasses.field(default_factory=set)
    """Topics whose deletion has begun."""
    deleting_later: set[str] = dataclasses.field(default_factory=set)
    """Topics to be deleted once none of their replicas is being moved."""
    offline_replicas: dict[int, set[TopicPartition]] = dataclasses.field(default_factory=dict)
    """By live broker, the replicas in log directories of it that have failed."""
    shutting_down: set[int] = dataclasses.field(default_factory=set)
    """Live brokers that are about to stop. They may neither lead nor be in sync (KIP-841)."""

    def partition(self, key: TopicPartition) -> PartitionState:
        return self.topics[key.topic].partitions[key.partition]

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        for topic in self.topics.values():
            for number, partition in topic.partitions.items():
                yield TopicPartition(topic.name, number), partition

    def find(self, key: TopicPartition) -> PartitionState | None:
        """The partition, unless it does not exist or its topic is being deleted."""
        topic = self.topics.get(key.topic)
        return None if topic is None or key.topic in self.deleting else topic.partitions.get(key.partition)

    def undeleted_partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """The partitions of topics that are not being deleted."""
        return ((key, partition) for key, partition in self.partitions() if key.topic not in self.deleting)

    def is_moving(self, topic: str) -> bool:
        """Whether replicas of a topic are being moved."""
        found = self.topics.get(topic)
        return found is not None and any(partition.assignment.is_moving for partition in found.partitions.values())

    def names_by_id(self) -> Mapping[bytes, str]:
        return {topic.topic_id: name for name, topic in self.topics.items()}

    def online(self, key: TopicPartition) -> list[int]:
        """The replicas of a partition whose broker is alive and has not lost their log directory."""
        return [
            replica
            for replica in self.partition(key).assignment.replicas
            if replica in self.brokers and key not in self.offline_replicas.get(replica, ())
        ]

    def eligible(self, key: TopicPartition) -> list[int]:
        """The online replicas that may also lead and be in sync: their broker is not shutting down."""
        return [replica for replica in self.online(key) if replica not in self.shutting_down]

    def update_offline_replicas(self, answers: Mapping[int, Mapping[TopicPartition, int]]) -> set[TopicPartition]:
        """Note from LeaderAndIsr responses, by broker, which replicas are offline; returns the partitions that have lost one."""
        lost = set()
        for broker_id, codes in answers.items():
            offline = self.offline_replicas.setdefault(broker_id, set())
            for key, code in codes.items():
                if code == ErrorCode.KAFKA_STORAGE_ERROR and key not in offline:
                    offline.add(key)
                    lost.add(key)
                elif code == ErrorCode.NONE:
                    offline.discard(key)
        return lost

    def racks(self) -> Mapping[int, str | None]:
        """Rack by live broker."""
        return {broker_id: broker.registration.rack for broker_id, broker in self.brokers.items()}

    def by_topic(self, keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
        """Partition numbers by topic, in the order given."""
        grouped: dict[str, list[int]] = {}
        for topic, partition in keys:
            grouped.setdefault(topic, []).append(partition)
        return grouped
