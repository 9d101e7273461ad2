"""What the controller knows of the cluster: the live brokers, every topic, and how each partition stands.

It is a copy of the cluster store, loaded when this broker becomes controller and changed only after the store was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..base.errors import ErrorCode
from ..base.partitions import TopicPartition
from .znodes import BrokerRegistration, LeaderState, ReplicaAssignment, TopicAssignment


class LiveBroker(NamedTuple):
    """A registered broker. ``epoch`` is the zxid of its registration: a restarted broker has a higher one (KIP-380)."""

    registration: BrokerRegistration
    epoch: int


@dataclasses.dataclass(slots=True)
class PartitionState:
    """One partition: its replicas, and who leads. ``state`` is None until a first leader was chosen.

    ``partition_epoch`` is the version of the state node, ``modified_zxid`` the transaction that wrote it.
    """

    assignment: ReplicaAssignment
    state: LeaderState | None = None
    partition_epoch: int = 0
    modified_zxid: int = 0


@dataclasses.dataclass(slots=True)
class TopicState:
    """One topic; ``version`` is that of its node in the store."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionState]
    version: int = 0

    def assignment(self) -> TopicAssignment:
        return TopicAssignment(self.topic_id, {number: p.assignment for number, p in self.partitions.items()})

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].assignment.replicas)


@dataclasses.dataclass(slots=True)
class ControllerContext:
    """The cluster as this controller sees it. ``epoch_version`` is the version of the ``/controller_epoch`` node.

    ``offline_replicas``: by live broker, the replicas that are in a data folder of it that has failed.
    """

    controller_id: int
    epoch: int = 0
    epoch_version: int = 0
    brokers: dict[int, LiveBroker] = dataclasses.field(default_factory=dict)
    topics: dict[str, TopicState] = dataclasses.field(default_factory=dict)
    deleting: set[str] = dataclasses.field(default_factory=set)
    offline_replicas: dict[int, set[TopicPartition]] = dataclasses.field(default_factory=dict)

    def partition(self, key: TopicPartition) -> PartitionState:
        return self.topics[key.topic].partitions[key.partition]

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        for topic in self.topics.values():
            for number, partition in topic.partitions.items():
                yield TopicPartition(topic.name, number), partition

    def has_replica_online(self, broker_id: int, key: TopicPartition) -> bool:
        """Whether a broker is alive and its replica of the partition not in a failed folder."""
        return broker_id in self.brokers and key not in self.offline_replicas.get(broker_id, ())

    def brokers_for(self, key: TopicPartition) -> Mapping[int, LiveBroker]:
        """The live brokers without those that have the partition in a failed folder."""
        if not any(key in offline for offline in self.offline_replicas.values()):
            return self.brokers
        return {b: broker for b, broker in self.brokers.items() if self.has_replica_online(b, key)}

    def note_answers(self, answers: Mapping[int, Mapping[TopicPartition, int]]) -> set[TopicPartition]:
        """Learn from the error codes of LeaderAndIsr answers, by broker; the partitions that lost a replica by that."""
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

    def newest_zxid(self) -> int:
        """A transaction id after the registration of every live broker, for a state that is written now."""
        return max((broker.epoch for broker in self.brokers.values()), default=0) + 1

    def by_topic(self, keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
        """Partition numbers by topic, in the order given."""
        grouped: dict[str, list[int]] = {}
        for topic, partition in keys:
            grouped.setdefault(topic, []).append(partition)
        return grouped
