"""Reports to the controller of the log directory that holds each replica (AssignReplicasToDirs, KIP-858).

A broker reports each replica that is elsewhere than the partition's record says, in one request at a time with all that wait. A
log that moves counts as being in its next directory from the announcement on, which comes before the swap. Where the record says
nothing yet, a broker with one directory need not: the controller fills it in. One whose disk was replaced has another directory
than the record names; until the controller knows that, it elects no replica there.

Model: Kafka's AssignmentsManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ...base.errors import KafkaError, known_code
from ...log.log_directory import LogDirectory
from ...log.log_manager import LogManager
from ...metadata.types import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, PartitionRegistration
from ...replication.broker_client import PeerUnavailableError
from ...replication.partition import Partition
from ...wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from .channel import QuorumChannel

logger = logging.getLogger(__name__)

_MOST_IN_A_REQUEST = 2250
_RETRY_SECONDS = 0.1
_REQUEST_SECONDS = 30.0
_FILLED_IN = (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)

ReplicaId = tuple[bytes, int]
"""Topic id and partition."""


class DirectoryAssignments:
    """``placed`` is told of each replica, ``announce`` of a move; ``run`` sends what has to be said. A ``MoveNotices``."""

    def __init__(
        self, broker_id: int, channel: QuorumChannel, broker_epoch: Callable[[], int], logs: LogManager
    ) -> None:
        self._broker_id = broker_id
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._logs = logs
        self._waiting: dict[ReplicaId, bytes] = {}
        self._announced: dict[ReplicaId, bytes] = {}
        """The next directory of each log that moves."""
        self._arrived = trio.Event()
        self._assigned = trio.Event()

    def placed(self, partition: Partition, state: PartitionRegistration) -> None:
        """A replica is here, as the quorum has it in ``state``."""
        key = partition.topic_id, partition.log.partition
        # A log that moves is where it was announced to go: its old directory, said now, would take the announcement back.
        directory = self._announced.get(key) or self._logs.directory_id(partition.log.folder)
        known = dict(zip(state.replicas, state.directories, strict=False)).get(self._broker_id)
        if known in (None, *_FILLED_IN) and len(self._logs.folders) == 1:
            return
        if known == directory:
            self._waiting.pop(key, None)
            self._notify_assigned()
        else:
            self._submit(key, directory)

    async def announce(self, partition: Partition, folder: LogDirectory) -> None:
        key = partition.topic_id, partition.log.partition
        self._announced[key] = directory = self._logs.directory_id(folder)
        self._submit(key, directory)
        while key in self._waiting:
            await self._assigned.wait()

    def settle(self, partition: Partition) -> None:
        key = partition.topic_id, partition.log.partition
        announced = self._announced.pop(key, None)
        directory = self._logs.directory_id(partition.log.folder)
        if announced is not None and announced != directory:
            self._submit(key, directory)

    def _submit(self, key: ReplicaId, directory: bytes) -> None:
        self._waiting[key] = directory
        self._arrived.set()

    def _notify_assigned(self) -> None:
        self._assigned.set()
        self._assigned = trio.Event()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived = trio.Event()
            while self._waiting:
                sent = dict(list(self._waiting.items())[:_MOST_IN_A_REQUEST])
                if await self._send(sent):
                    for key, directory in sent.items():
                        # While the response was awaited the replica may have got another directory, which is to be sent.
                        if self._waiting.get(key) == directory:
                            del self._waiting[key]
                    self._notify_assigned()
                else:
                    await trio.sleep(_RETRY_SECONDS)

    async def _send(self, assigned: dict[ReplicaId, bytes]) -> bool:
        """Whether the controller knows it now, or knows better: the partition's next state says what it has."""
        directories: dict[bytes, dict[bytes, list[PartitionData]]] = {}
        for (topic_id, number), directory in assigned.items():
            topics = directories.setdefault(directory, {})
            topics.setdefault(topic_id, []).append(PartitionData(partition_index=number))
        request = AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                DirectoryData(
                    id=directory,
                    topics=[TopicData(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
                )
                for directory, topics in directories.items()
            ],
        )
        try:
            response: AssignReplicasToDirsResponse = await self._channel.send(request, timeout=_REQUEST_SECONDS)
        except (PeerUnavailableError, KafkaError) as error:
            logger.warning(
                "The controller does not know the log directories of %d replicas yet: %s", len(assigned), error
            )
            return False
        if response.error_code:
            logger.warning("Log directories of replicas are refused: %s", known_code(response.error_code).name)
            return False
        return True
