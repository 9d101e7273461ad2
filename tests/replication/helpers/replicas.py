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
from ottla.wire.records import Record, build_batch

from ...helpers.told import alive, apply, registration, tell

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
    """A replica manager and what is decided of its partition; ``told`` are the calls of its leadership listener."""

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
        tell(self.metadata, brokers=alive(*broker_ids))

    def lead(
        self,
        leader: int = ME,
        epoch: int = 0,
        *,
        isr: tuple[int, ...] = (ME,),
        replicas: tuple[int, ...] = (ME,),
        topic_id: bytes = TOPIC_ID,
        **changed: Any,
    ) -> ErrorCode:
        """Make ``leader`` lead partition 0 of "t". Returns the error by which that is refused."""
        decided = registration(leader, epoch, isr, replicas)._replace(**changed)
        return apply(self.manager, "t", topic_id, 0, decided)

    def stop(self, *, delete: bool = False, epoch: int | None = None) -> ErrorCode:
        """Stop the replica. Returns the error by which that is refused."""
        try:
            self.manager.stop("t", 0, epoch, deletes=delete)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

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
