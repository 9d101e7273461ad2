"""The replica manager: all partitions of this broker, changed only by the controller's decisions.

``apply`` makes a partition lead or follow, ``stop`` ends or deletes a replica. Like Kafka's ReplicaManager both refuse what
is of
an older leader epoch. A coordinator, which keeps its state in a partition, is told when this broker gets or loses its
leadership;
``fetchers`` are told whom to follow.

A partition in a log directory that failed is *offline*: each request for it gets KAFKA_STORAGE_ERROR until the broker starts
again. From that error of ``apply`` the controller learns of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..log.log_directory import LogDirectory
from ..log.log_manager import LogManager
from ..log.settings import LogSettings
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..metadata.types import PartitionRegistration
from ..wire.schema import ZERO_UUID
from .counters import TRAFFIC, ReplicationCounters
from .metadata_cache import MetadataCache
from .partition import NO_EPOCH, IsrChanges, Partition, PartitionDependencies
from .quotas import ReplicationQuotas
from .settings import QuotaSettings

logger = logging.getLogger(__name__)

LeadershipListener = Callable[[str, int, int | None], None]
"""(topic, partition, leader epoch) when this broker leads from now on; epoch None when it no longer does."""

_SHORTEST_PERIOD_SECONDS = 0.01
_TURN_SECONDS = 0.005
_NONE_HERE: Mapping[int, Partition] = MappingProxyType({})


class Followers(Protocol):
    """What fetches from the leaders of this broker's replicas."""

    def follow(self, partition: Partition) -> None:
        """Fetch from ``partition.leader_id`` under ``partition.leader_epoch`` from now on."""
        ...

    def unfollow(self, partition: Partition) -> None:
        """Fetch this partition no more, if it was; nothing that is under way is appended."""
        ...


class NoFollowers:
    """For a broker that cannot reach others."""

    def follow(self, partition: Partition) -> None:
        pass

    def unfollow(self, partition: Partition) -> None:
        pass


class ReplicaManager:
    """This broker's partitions by topic and number."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        settings: LogSettings,
        topic_overrides: Callable[[str], Mapping[str, str]],
        metadata: MetadataCache,
        isr_changes: IsrChanges,
        replica_lag_time_max_ms: int,
    ) -> None:
        self.broker_id = broker_id
        self._logs = logs
        self._settings = settings
        self._topic_overrides = topic_overrides
        self._metadata = metadata
        self._surroundings = PartitionDependencies(
            broker_id, metadata.may_be_in_sync, isr_changes, replica_lag_time_max_ms / 1000
        )
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._offline: set[tuple[str, int]] = set()
        self.quotas = ReplicationQuotas(QuotaSettings())
        self.fetchers: Followers = NoFollowers()
        self.is_leaving = False
        """Whether the broker hands over what it leads, and then stops.

        From then on it does not begin to follow partitions in which it is not in sync: the leader would wait for it, as for any
        replica that is about to join, until it has left the cluster.
        """
        self.leadership_listeners: list[LeadershipListener] = []
        self.future_listeners: list[Callable[[Partition], None]] = []
        """Told of a partition whose log was being moved to another folder when the broker ended."""
        logs.offline_listeners.append(self._handle_log_dir_failure)
        metadata.publishers.append(self._delete_removed)

    async def run(self) -> None:
        """Look after the in-sync replicas of what is led here, twice per ``replica.lag.time.max.ms``, until cancelled."""
        while True:
            await trio.sleep(max(self._surroundings.lag_seconds / 2, _SHORTEST_PERIOD_SECONDS))
            turn_began = trio.current_time()
            for partition in list(self.partitions()):
                partition.check_followers()
                if trio.current_time() - turn_began > _TURN_SECONDS:
                    await trio.lowlevel.checkpoint()
                    turn_began = trio.current_time()

    def partition(self, topic: str, partition: int) -> Partition:
        """Raises NOT_LEADER_OR_FOLLOWER when only other brokers have it, KAFKA_STORAGE_ERROR for an offline one.

        UNKNOWN_TOPIC_OR_PARTITION when it is not in the cluster, as far as is known here.
        """
        try:
            return self._partitions[topic][partition]
        except KeyError:
            self._check_online(topic, partition)
            is_known = self._metadata.partition(topic, partition) is not None
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code, f"{topic}-{partition} is not on this broker") from None

    def _check_online(self, topic: str, number: int) -> None:
        if (topic, number) in self._offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {topic}-{number} is offline")

    def partitions(self) -> Iterator[Partition]:
        for by_number in self._partitions.values():
            yield from by_number.values()

    def find(self, topic: str, number: int) -> Partition | None:
        """A partition that is on this broker, and not in a folder that has failed; None for others."""
        return self._partitions.get(topic, {}).get(number)

    def by_number(self, topic: str) -> Mapping[int, Partition]:
        """As ``of_topic``; it changes with them."""
        return self._partitions.get(topic, _NONE_HERE)

    def of_topic(self, topic: str) -> list[Partition]:
        """The topic's partitions on this broker; those in a folder that has failed are not among them."""
        return list(self._partitions.get(topic, {}).values())

    @property
    def counters(self) -> ReplicationCounters:
        return self._surroundings.counters

    @property
    def offline_count(self) -> int:
        """How many partitions of this broker are in a folder that has failed."""
        return len(self._offline)

    # --- what the controller says -------------------------------------------------------------------------------------

    def log_refusal(self, topic: str, number: int, error: KafkaError) -> None:
        """Log a refusal of ``apply`` or ``stop``: at debug level if it is usual.

        A failed folder has been logged already, once for all its partitions. A new controller tells every broker everything,
        most of which is known.
        """
        is_usual = (topic, number) in self._offline or error.code is ErrorCode.STALE_CONTROLLER_EPOCH
        logger.log(logging.DEBUG if is_usual else logging.ERROR, "%s-%d: %s", topic, number, error)

    def topic_settings(self, topic: str) -> LogSettings:
        """The settings of a topic's logs."""
        return self._settings.with_topic_overrides(self._topic_overrides(topic))

    def apply(
        self,
        topic: str,
        topic_id: bytes,
        number: int,
        registration: PartitionRegistration,
        settings: LogSettings,
        *,
        may_be_known: bool = True,
    ) -> None:
        """Lead or follow a partition, which is made where there is none.

        Raises KafkaError: KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID, STALE_CONTROLLER_EPOCH for an old leader epoch,
        UNKNOWN_TOPIC_OR_PARTITION when this broker has no replica. Unless it ``may_be_known``, the partition's leader
        epoch is old as well: it says nothing new, except of a topic that has been given an id.
        """
        partition = self._partitions.get(topic, {}).get(number)
        if partition is None:
            self._check_online(topic, number)
        elif ZERO_UUID not in (topic_id, partition.topic_id) and topic_id != partition.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, "the topic was created again with another id")
        known_epoch = NO_EPOCH if partition is None else partition.leader_epoch
        is_repeated = partition is not None and topic_id == partition.topic_id and not may_be_known
        if registration.leader_epoch < known_epoch + is_repeated:
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, f"leader epoch {registration.leader_epoch} is past")
        if self.broker_id not in registration.replicas:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"this broker is none of {registration.replicas}")
        if partition is None or partition.topic_id == ZERO_UUID != topic_id:
            partition = self._open(topic, number, topic_id, settings, is_new=registration.is_new)
        self._change(partition, registration)

    def _change(self, partition: Partition, registration: PartitionRegistration) -> None:
        topic, number = partition.topic, partition.log.partition
        was_leader = partition.is_leader
        if not partition.apply(registration):
            return
        if partition.is_leader:
            logger.debug("%s-%d: leader with epoch %d", topic, number, partition.leader_epoch)
            self.fetchers.unfollow(partition)
            self._notify_leadership(topic, number, partition.leader_epoch)
        else:
            logger.debug("%s-%d: follower of broker %d, %s", topic, number, partition.leader_id, registration)
            if was_leader:
                self._notify_leadership(topic, number, None)
            if self.is_leaving and self.broker_id not in registration.isr:
                self.fetchers.unfollow(partition)
            else:
                self.fetchers.follow(partition)

    def _open(self, topic: str, number: int, topic_id: bytes, settings: LogSettings, *, is_new: bool) -> Partition:
        """The partition with its log: one that is not here yet, or one whose topic has been given an id."""
        try:
            known_id = None if topic_id == ZERO_UUID else topic_id  # early controllers have none
            log = self._logs.get_or_create(topic, number, known_id, settings, is_new=is_new)
            future = self._logs.future(topic, number)
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR and self._logs.has_offline_log_dir:
                self._offline.add((topic, number))
            raise
        partition = self._partitions.get(topic, {}).get(number)
        if partition is not None:
            partition.topic_id = topic_id
            return partition
        partition = Partition(self._surroundings, topic, log.topic_id, log)
        self._partitions.setdefault(topic, {})[number] = partition
        if future is not None:
            for listener in self.future_listeners:
                listener(partition)
        return partition

    def stop(self, topic: str, number: int, leader_epoch: int | None, *, deletes: bool) -> None:
        """End a replica, and delete its log where ``deletes``; a ``leader_epoch`` of None is not compared.

        A replica that is only stopped stays, following no leader, so that its leader epoch is not forgotten. Raises KafkaError:
        FENCED_LEADER_EPOCH, KAFKA_STORAGE_ERROR.
        """
        self._check_online(topic, number)
        partition = self._partitions.get(topic, {}).get(number)
        if partition is not None and leader_epoch is not None and leader_epoch < partition.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"leader epoch {leader_epoch} is past")
        if partition is not None:
            self._stop_serving(partition)
        if deletes:
            self._remove(topic, number)
            self._logs.delete(topic, number)

    def _delete_removed(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """Delete the replicas that were moved to other brokers while this one was away.

        The controller asked for that once, and does not ask again. A log is deleted if the newest controller says that this
        broker neither has a replica nor is in sync; of the topic with the log's id (which a crash may have taken from the log),
        and in a later election than this broker has heard of.
        Kafka's brokers find such logs in KRaft mode only.
        """
        for topic in delta.topics:
            for number, state in topic.partitions.items():
                if state is None or self.broker_id in state.replicas or self.broker_id in state.isr:
                    continue
                log, partition = self._logs.get(topic.name, number), self.find(topic.name, number)
                if log is None or topic.topic_id == ZERO_UUID or log.topic_id not in (topic.topic_id, ZERO_UUID):
                    continue
                if partition is None or partition.leader_epoch < state.leader_epoch:
                    logger.info("%s-%d was moved to %s, and is deleted here", topic.name, number, list(state.replicas))
                    try:
                        self.stop(topic.name, number, state.leader_epoch, deletes=True)
                    except KafkaError as error:
                        self.log_refusal(topic.name, number, error)

    def _stop_serving(self, partition: Partition) -> None:
        was_leader = partition.is_leader
        partition.stop()
        self.fetchers.unfollow(partition)
        if was_leader:
            self._notify_leadership(partition.topic, partition.log.partition, None)

    def _remove(self, topic: str, number: int) -> None:
        by_number = self._partitions.get(topic, {})
        if (partition := by_number.pop(number, None)) is not None:
            logger.debug("%s-%d: not on this broker any more", topic, number)
            self.counters.of_removed.update({name: getattr(partition, name) for name in TRAFFIC})
        if not by_number:
            self._partitions.pop(topic, None)

    def _handle_log_dir_failure(self, folder: LogDirectory) -> None:
        lost = [partition for partition in self.partitions() if partition.log.folder is folder]
        self._offline.update((partition.topic, partition.log.partition) for partition in lost)
        for partition in lost:
            self._remove(partition.topic, partition.log.partition)
            self._stop_serving(partition)

    def update_topic_settings(self, topic: str) -> None:
        """The topic's overrides have changed: its logs use the new ones from now on."""
        partitions = self._partitions.get(topic)
        if partitions:
            settings = self.topic_settings(topic)
            for partition in partitions.values():
                partition.log.update_settings(settings)

    def update_settings(self, settings: LogSettings) -> None:
        """The broker's defaults have changed: every log uses them from now on, except for what its topic overrides."""
        self._settings = settings
        for topic in self._partitions:
            self.update_topic_settings(topic)

    def release_waiters(self) -> None:
        """Answer every long poll now; part of stopping."""
        for partition in self.partitions():
            partition.release_waiters()

    def _notify_leadership(self, topic: str, number: int, leader_epoch: int | None) -> None:
        for listener in self.leadership_listeners:
            listener(topic, number, leader_epoch)
