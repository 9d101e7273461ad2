"""All partitions of this broker, changed only as the controller says.

LeaderAndIsr makes a partition lead or follow, StopReplica ends or deletes it. An older controller, or an older leader
epoch, is refused. Whoever keeps state in a partition (a coordinator) is told when its leadership comes and goes.

A partition in a data folder that failed is *offline*: everything about it is KAFKA_STORAGE_ERROR until the broker starts
again. By that answer to LeaderAndIsr the controller learns of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from ..base.errors import ErrorCode, KafkaError
from ..log.log_folder import LogFolder
from ..log.log_manager import LogManager
from ..log.settings import LogSettings
from ..wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ..wire.messages.stop_replica import StopReplicaPartitionError, StopReplicaRequest, StopReplicaResponse
from ..wire.schema import ZERO_UUID
from .partition import Partition

logger = logging.getLogger(__name__)

LeadershipListener = Callable[[str, int, int | None], None]
"""(topic, partition, leader epoch) when this broker leads from now on; epoch None when it does no longer."""


class ReplicaManager:
    """This broker's partitions by topic and number."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        settings: LogSettings,
        topic_overrides: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.broker_id = broker_id
        self._logs = logs
        self._settings = settings
        self._topic_overrides = topic_overrides
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._offline: set[tuple[str, int]] = set()
        self._controller_epoch = -1
        self.leadership_listeners: list[LeadershipListener] = []
        self.future_listeners: list[Callable[[Partition], None]] = []
        """Told of a partition whose log was being moved to another folder when the broker ended."""
        logs.offline_listeners.append(self._folder_failed)

    def partition(self, topic: str, partition: int) -> Partition:
        """Raises UNKNOWN_TOPIC_OR_PARTITION when this broker has no replica of it, KAFKA_STORAGE_ERROR for an offline one."""
        try:
            return self._partitions[topic][partition]
        except KeyError:
            self._check_online(topic, partition)
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition} is not on this broker"
            ) from None

    def _check_online(self, topic: str, number: int) -> None:
        if (topic, number) in self._offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the data folder of {topic}-{number} is offline")

    def partitions(self) -> Iterator[Partition]:
        for by_number in self._partitions.values():
            yield from by_number.values()

    @property
    def offline_count(self) -> int:
        """How many partitions of this broker are in a folder that has failed."""
        return len(self._offline)

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Apply what the controller decided; one error code per partition."""
        if request.controller_epoch < self._controller_epoch:
            return LeaderAndIsrResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self._controller_epoch = request.controller_epoch
        topics = []
        for topic_state in request.topic_states:
            errors = []
            settings = self._topic_settings(topic_state.topic_name)  # one object for all partitions
            for state in topic_state.partition_states:
                try:
                    self._apply(topic_state.topic_name, topic_state.topic_id, state, settings)
                    code = ErrorCode.NONE
                except KafkaError as error:
                    self._log_refusal(topic_state.topic_name, state.partition_index, error)
                    code = error.code
                errors.append(LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=code))
            topics.append(LeaderAndIsrTopicError(topic_id=topic_state.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(topics=topics)

    def _log_refusal(self, topic: str, number: int, error: KafkaError) -> None:
        """Of a folder that has failed there is one error in the log, and not one more for each of its partitions."""
        level = logging.DEBUG if (topic, number) in self._offline else logging.ERROR
        logger.log(level, "%s-%d: %s", topic, number, error)

    def _topic_settings(self, topic: str) -> LogSettings:
        return self._settings.with_topic_overrides(self._topic_overrides(topic))

    def _apply(self, topic: str, topic_id: bytes, state: LeaderAndIsrPartitionState, settings: LogSettings) -> None:
        number = state.partition_index
        existing = self._partitions.get(topic, {}).get(number)
        if existing is None:
            self._check_online(topic, number)
        else:
            if topic_id not in (ZERO_UUID, existing.topic_id):
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, "the topic was created again with another id")
            if state.leader_epoch < existing.leader_epoch:
                raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH, f"leader epoch {state.leader_epoch} is past")
        partition = existing or self._create(topic, number, topic_id, settings, is_new=state.is_new)
        was_leader, epoch_before = partition.is_leader, partition.leader_epoch
        if state.leader == self.broker_id:
            partition.become_leader(state.leader_epoch, state.partition_epoch, list(state.isr), list(state.replicas))
            if not was_leader or epoch_before != state.leader_epoch:
                logger.debug("%s-%d: leader with epoch %d", topic, number, state.leader_epoch)
                self._tell(topic, number, state.leader_epoch)
        else:
            partition.become_follower(state.leader, state.leader_epoch, state.partition_epoch, list(state.replicas))
            logger.debug("%s-%d: follower of broker %d, epoch %d", topic, number, state.leader, state.leader_epoch)
            if was_leader:
                self._tell(topic, number, None)

    def _create(self, topic: str, number: int, topic_id: bytes, settings: LogSettings, *, is_new: bool) -> Partition:
        try:
            known_id = None if topic_id == ZERO_UUID else topic_id  # requests before version 5 have none
            log = self._logs.get_or_create(topic, number, known_id, settings, is_new=is_new)
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR and self._logs.has_offline_folder:
                self._offline.add((topic, number))
            raise
        partition = Partition(self.broker_id, topic, log.topic_id, log)
        self._partitions.setdefault(topic, {})[number] = partition
        if self._logs.future(topic, number) is not None:
            for listener in self.future_listeners:
                listener(partition)
        return partition

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Let go of partitions, and delete their logs where told so."""
        if request.controller_epoch < self._controller_epoch:
            return StopReplicaResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
        self._controller_epoch = request.controller_epoch
        errors = []
        for topic_state in request.topic_states:
            for state in topic_state.partition_states:
                topic, number = topic_state.topic_name, state.partition_index
                code = ErrorCode.NONE
                try:
                    self._check_online(topic, number)
                    self._stop(topic, number, state.delete_partition)
                except KafkaError as error:
                    self._log_refusal(topic, number, error)
                    code = error.code
                errors.append(StopReplicaPartitionError(topic_name=topic, partition_index=number, error_code=code))
        return StopReplicaResponse(partition_errors=errors)

    def _stop(self, topic: str, number: int, delete: bool) -> None:
        self._let_go(topic, number)
        if delete:
            self._logs.delete(topic, number)

    def _let_go(self, topic: str, number: int) -> None:
        by_number = self._partitions.get(topic, {})
        partition = by_number.pop(number, None)
        if topic in self._partitions and not by_number:
            del self._partitions[topic]
        if partition is not None:
            was_leader, partition.is_leader = partition.is_leader, False
            partition.release_waiters()
            logger.debug("%s-%d: not on this broker any more", topic, number)
            if was_leader:
                self._tell(topic, number, None)

    def _folder_failed(self, folder: LogFolder) -> None:
        lost = [partition for partition in self.partitions() if partition.log.folder is folder]
        self._offline.update((partition.topic, partition.log.partition) for partition in lost)
        for partition in lost:
            self._let_go(partition.topic, partition.log.partition)

    def update_topic_settings(self, topic: str) -> None:
        """The topic's overrides changed: its logs go by the new ones from now on."""
        partitions = self._partitions.get(topic)
        if partitions:
            settings = self._topic_settings(topic)
            for partition in partitions.values():
                partition.log.update_settings(settings)

    def update_settings(self, settings: LogSettings) -> None:
        """The broker's defaults changed: every log goes by them from now on, but for what its topic overrides."""
        self._settings = settings
        for topic in self._partitions:
            self.update_topic_settings(topic)

    def release_waiters(self) -> None:
        """Answer every long poll now; part of stopping."""
        for partition in self.partitions():
            partition.release_waiters()

    def _tell(self, topic: str, number: int, leader_epoch: int | None) -> None:
        for listener in self.leadership_listeners:
            listener(topic, number, leader_epoch)
