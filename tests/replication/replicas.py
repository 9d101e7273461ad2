"""The partitions of one broker on a simulated disk, changed as by a controller; their calls are recorded."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.log.log_manager import LogManager
from ottla.log.memory_disk import MemoryDisk
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.partition import IsrChanges, Partition
from ottla.replication.replica_manager import ReplicaManager
from ottla.tests.replication.told import apply_leader_and_isr, apply_stop_replica, apply_update_metadata
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from ottla.wire.messages.update_metadata import UpdateMetadataBroker, UpdateMetadataRequest
from ottla.wire.records import Record, build_batch

ME, OTHER, THIRD = 1, 2, 3
TOPIC_ID = b"i" * 16
NOW_MS = 1_700_000_000_000
LAG_SECONDS = 30.0


class Submitted:
    """``IsrChanges`` and ``Followers`` that record their calls."""

    def __init__(self) -> None:
        self.changed: list[Partition] = []
        self.followed: list[tuple[int, int] | None] = []
        """Leader and leader epoch; None for partitions that are not followed any more."""

    def submit(self, partition: Partition) -> None:
        self.changed.append(partition)

    def follow(self, partition: Partition) -> None:
        self.followed.append((partition.leader_id, partition.leader_epoch))

    def unfollow(self, partition: Partition) -> None:
        self.followed.append(None)


class Replicas:
    """A replica manager and the controller's requests to it; ``told`` are the calls of its leadership listener."""

    def __init__(
        self, manager: ReplicaManager, logs: LogManager, metadata: MetadataCache, submitted: Submitted
    ) -> None:
        self.manager = manager
        self.logs = logs
        self.metadata = metadata
        self.submitted = submitted
        manager.fetchers = self.submitted
        self.told: list[tuple[str, int, int | None]] = []
        manager.leadership_listeners.append(lambda *change: self.told.append(change))

    def live(self, *broker_ids: int) -> None:
        """Make these the brokers of the cluster."""
        brokers = [UpdateMetadataBroker(id=broker_id) for broker_id in broker_ids]
        apply_update_metadata(UpdateMetadataRequest(controller_epoch=1, live_brokers=brokers), self.metadata)

    def lead(
        self,
        leader: int = ME,
        epoch: int = 0,
        *,
        isr: tuple[int, ...] = (ME,),
        replicas: tuple[int, ...] = (ME,),
        controller_epoch: int = 1,
        topic_id: bytes = TOPIC_ID,
        **fields: Any,
    ) -> int:
        """Make ``leader`` lead partition 0 of "t". Returns the error code of the request or of the partition."""
        fields.setdefault("partition_epoch", epoch)
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            leader=leader,
            leader_epoch=epoch,
            isr=list(isr),
            replicas=list(replicas),
            **fields,
        )
        topic = LeaderAndIsrTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
        answer = apply_leader_and_isr(
            LeaderAndIsrRequest(controller_epoch=controller_epoch, topic_states=[topic]), self.manager, self.metadata
        )
        return answer.error_code or answer.topics[0].partition_errors[0].error_code

    def stop(self, *, delete: bool = False, epoch: int = -1, controller_epoch: int = 1) -> int:
        """Stop the replica. Returns the error code of the request or of the partition."""
        state = StopReplicaPartitionState(partition_index=0, leader_epoch=epoch, delete_partition=delete)
        topic = StopReplicaTopicState(topic_name="t", partition_states=[state])
        answer = apply_stop_replica(
            StopReplicaRequest(controller_epoch=controller_epoch, topic_states=[topic]), self.manager, self.metadata
        )
        return answer.error_code or answer.partition_errors[0].error_code

    def fetched(self, broker_id: int, offset: int, *, log_start: int = 0, broker_epoch: int = -1) -> None:
        """Note a follower's fetch at ``offset``."""
        partition = self.partition
        assert partition.leader is not None
        follower = partition.leader.follower(broker_id, broker_epoch, partition.leader_epoch)
        end = partition.log.log_end_offset
        partition.fetched_by(follower, offset, log_start, end, broker_epoch, trio.current_time())

    @property
    def partition(self) -> Partition:
        return self.manager.partition("t", 0)


@asynccontextmanager
async def replicas(isr_changes: IsrChanges | None = None, **settings: Any) -> AsyncIterator[Replicas]:
    """``settings`` are those of the logs."""
    log_settings = LogSettings(settings)
    logs = LogManager(
        MemoryDisk(), ["data"], log_settings, LogManagerSettings(), SimulatedClock(), InlineWorkers(), random.Random(1)
    )
    logs.take(ME)
    await logs.load()
    metadata = MetadataCache("cluster")
    submitted = Submitted()
    manager = ReplicaManager(
        ME, logs, log_settings, lambda topic: {}, metadata, isr_changes or submitted, int(1000 * LAG_SECONDS)
    )
    world = Replicas(manager, logs, metadata, submitted)
    world.live(ME, OTHER, THIRD)
    yield world
    await logs.stop()


def batch(*values: bytes) -> bytearray:
    return build_batch([Record(timestamp=NOW_MS, value=value) for value in values or (b"a",)])


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)
