"""Replicas for the tests of followers: their logs, and the batches that a leader would send."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.log.follower_append import append_as_follower
from ottla.log.log_manager import LogManager
from ottla.log.memory_disk import MemoryDisk
from ottla.log.partition_log import PartitionLog
from ottla.log.settings import LogManagerSettings, LogSettings
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.partition import Partition
from ottla.replication.replica_manager import ReplicaManager
from ottla.wire.records import Record, build_batch, iter_batches

from ...helpers.told import apply, registration
from .replicas import ME, TOPIC_ID, Submitted


def batch(offset: int, *values: str, epoch: int = 0, timestamp: int = 1_000, **header: Any) -> bytes:
    """A batch as in the log of a leader with this epoch."""
    records = [Record(timestamp=timestamp, value=value.encode()) for value in values or ("a",)]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch, **header))


def filled(log: PartitionLog, epochs: Sequence[int]) -> None:
    """Append a record for each of these leader epochs."""
    for epoch in epochs:
        append_as_follower(log, batch(log.log_end_offset, f"{log.log_end_offset}/{epoch}", epoch=epoch), epoch)


def texts(log: PartitionLog) -> list[str]:
    """The values in the log, in their order."""
    return list(records(log).values())


def records(log: PartitionLog) -> dict[int, str]:
    """The values in the log by their offsets."""
    found: dict[int, str] = {}
    start = offset = log.log_start_offset
    while (piece := log.read(offset, 1 << 20, up_to=log.log_end_offset, at_least_one=True)) is not None:
        data = piece.read()
        piece.release()
        for each in iter_batches(data):
            found |= {r.offset: (r.value or b"").decode() for r in each.records() if r.offset >= start}
            offset = each.next_offset
    return found


class Replicas:
    """The partitions of topic "t" on broker 1, and what is decided of them."""

    def __init__(self, manager: ReplicaManager, logs: LogManager, metadata: MetadataCache) -> None:
        self.manager = manager
        self.metadata = metadata
        self._logs = logs

    def kill(self) -> None:
        """End as with kill -9: nothing more is written, and the folder's lock is released."""
        for part in self._logs._folders:
            part.release()

    def lead(self, leader: int, epoch: int, number: int = 0, isr: Sequence[int] = (1, 2)) -> Partition:
        """Make this broker the leader of the partition in this epoch."""
        decided = registration(leader, epoch, isr, (1, 2, 3))
        assert apply(self.manager, "t", TOPIC_ID, number, decided) == ErrorCode.NONE
        return self.manager.partition("t", number)


async def follower_world(disk: MemoryDisk | None = None, **settings: Any) -> Replicas:
    """A broker's replicas on a disk in memory; ``settings`` are those of the log."""
    log_settings = LogSettings(settings)
    logs = LogManager(
        disk or MemoryDisk(),
        ["data"],
        log_settings,
        LogManagerSettings(),
        SimulatedClock(),
        InlineWorkers(),
        random.Random(1),
    )
    logs.take(ME)
    await logs.load()
    metadata = MetadataCache("cluster")
    manager = ReplicaManager(ME, logs, log_settings, lambda topic: {}, metadata, Submitted(), 30_000)
    return Replicas(manager, logs, metadata)
