"""The metadata publisher that applies a KRaft metadata delta to this broker's replicas.

Of each topic in the delta (Kafka's ``TopicDelta.localChanges``, ``ReplicaManager.applyDelta``):

- a partition that is gone, or whose replicas this broker is none of any more, is stopped and its log deleted. That comes first: a
  topic of the same name may be made in the same delta;
- a partition whose partition epoch is above the one known here leads or follows from now on, those that lead first. One
  without a leader does not fetch, and has its log all the same.

The first delta of a broker's run is the whole image. What logs there are besides it belong to no topic of the cluster, or to no
replica here; they are set aside, and never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..base.errors import KafkaError
from ..log.log_manager import LogManager
from ..metadata.delta import ClusterDelta, TopicDelta
from ..metadata.image import ClusterImage
from ..metadata.types import UNASSIGNED_DIRECTORY, PartitionRegistration
from .partition import Partition
from .replica_manager import ReplicaManager

Replica = tuple[TopicDelta, int, PartitionRegistration]
Placed = Callable[[Partition, PartitionRegistration], None]
"""Told of a replica that was made here or has a new state."""


class ReplicaPublisher:
    """Applies deltas to ``replicas``. ``placed`` compares where a log is with where the cluster believes it to be."""

    def __init__(self, replicas: ReplicaManager, logs: LogManager, placed: Placed) -> None:
        self._replicas = replicas
        self._logs = logs
        self._placed = placed
        self._broker_id = replicas.broker_id
        self._is_first = True

    def rename_strays(self, image: ClusterImage) -> None:
        """Before the first delta: set the logs aside that no replica of this broker has."""
        for log in list(self._logs.logs()):
            topic = image.topics.get(log.topic)
            partition = None if topic is None or topic.topic_id != log.topic_id else topic.partitions.get(log.partition)
            if partition is None or self._broker_id not in partition.replicas:
                self._logs.rename_to_stray(log.topic, log.partition)

    def publish(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Stop what is gone, then lead, then follow."""
        # A topic that was deleted and made again has the same name: the old logs go before the new ones are made.
        for topic, number in _gone(delta.topics, self._broker_id):
            self._stop(topic, number)
        kept = list(_kept(delta.topics, self._broker_id))
        for replica in kept:
            if replica[2].leader == self._broker_id:
                self._apply(*replica)
        for replica in kept:
            if replica[2].leader != self._broker_id:
                self._apply(*replica)
        self._is_first = False

    def _stop(self, topic: TopicDelta, number: int) -> None:
        partition = self._replicas.find(topic.name, number)
        if partition is None or partition.topic_id != topic.topic_id:
            return
        try:
            self._replicas.stop(topic.name, number, None, deletes=True)
        except KafkaError as error:
            self._replicas.log_refusal(topic.name, number, error)

    def _apply(self, topic: TopicDelta, number: int, state: PartitionRegistration) -> None:
        partition = self._replicas.find(topic.name, number)
        is_known = partition is not None and partition.topic_id == topic.topic_id
        if is_known and partition is not None and partition.partition_epoch >= state.partition_epoch:
            return
        state = state._replace(is_new=not is_known and self._is_made_now(state))
        try:
            self._replicas.apply(topic.name, topic.topic_id, number, state, self._replicas.topic_settings(topic.name))
        except KafkaError as error:
            self._replicas.log_refusal(topic.name, number, error)
            return
        partition = self._replicas.find(topic.name, number)
        if partition is not None:
            self._placed(partition, state)

    def _is_made_now(self, state: PartitionRegistration) -> bool:
        """Whether the replica has no log yet: one that the first delta of a run tells of may be in a folder that has failed."""
        directory = dict(zip(state.replicas, state.directories, strict=False)).get(self._broker_id)
        return not self._is_first or directory == UNASSIGNED_DIRECTORY


def _gone(topics: Iterable[TopicDelta], broker_id: int) -> Iterator[tuple[TopicDelta, int]]:
    for topic in topics:
        for number, state in topic.partitions.items():
            if state is None or broker_id not in state.replicas:
                yield topic, number


def _kept(topics: Iterable[TopicDelta], broker_id: int) -> Iterator[Replica]:
    for topic in topics:
        for number, state in topic.partitions.items():
            if state is not None and broker_id in state.replicas:
                yield topic, number, state
