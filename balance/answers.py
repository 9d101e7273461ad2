"""A ``ClusterModel`` built from the state of partitions, topic configs and DescribeLogDirs responses.

The state of partitions is that of Metadata and of the reassignments under way.

What is under way counts as done: a partition has the replicas that it is to have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..wire.messages.describe_log_dirs import DescribeLogDirsResponse
from .model import DISK_LIMIT, BrokerModel, ClusterModel, Key, LogDirectoryModel, PartitionModel, Replicas


class BrokerLogDirs(NamedTuple):
    """The healthy log directories of one broker."""

    folders: tuple[LogDirectoryModel, ...]
    replicas: Mapping[Key, tuple[str, int]]
    """The log directory and the bytes of each replica there."""


class ReportedPartition(NamedTuple):
    """A partition's state."""

    replicas: Replicas
    """Those that it is to have when its move has ended."""
    present: Replicas
    """All that there are while it moves."""
    leader: int | None
    isr: Collection[int]
    min_isr: int = 1
    """Its ``min.insync.replicas``."""
    written: int = 0
    """Bytes per second from producers."""
    read: int = 0
    """Bytes per second to consumers."""


def on_disk(response: DescribeLogDirsResponse) -> BrokerLogDirs:
    """What one broker tells of its healthy log directories."""
    healthy = [folder for folder in response.results if not folder.error_code]
    replicas = {
        (topic.name, each.partition_index): (folder.log_dir, each.partition_size)
        for folder in healthy
        for topic in folder.topics
        for each in topic.partitions
        if not each.is_future_key
    }
    folders = (LogDirectoryModel(each.log_dir, _known(each.total_bytes), _known(each.usable_bytes)) for each in healthy)
    return BrokerLogDirs(tuple(sorted(folders, key=lambda folder: folder.path)), replicas)


def _known(number: int) -> int | None:
    """Bytes of a volume, which brokers before Kafka 3.3 don't tell."""
    return None if number < 0 else number


def cluster_of(
    racks: Mapping[int, str | None],
    partitions: Mapping[Key, ReportedPartition],
    disks: Mapping[int, BrokerLogDirs],
    leaving: Collection[int] = (),
    disk_limit: float = DISK_LIMIT,
) -> ClusterModel:
    """The cluster of these live brokers, by their racks, and partitions. ``disks`` are those of brokers that told of them.

    ``leaving`` are brokers to be emptied; others of which partitions have replicas are down.
    """
    known = {*racks, *leaving, *(replica for each in partitions.values() for replica in each.replicas)}
    out_of_sync = brokers_out_of_sync(racks, partitions.values())
    brokers = tuple(
        BrokerModel(
            broker,
            racks.get(broker),
            disks[broker].folders if broker in disks else (),
            is_alive=broker in racks,
            is_leaving=broker in leaving,
            out_of_sync=broker in out_of_sync,
        )
        for broker in sorted(known)
    )
    return ClusterModel(
        brokers, tuple(_partition(key, each, disks) for key, each in sorted(partitions.items())), disk_limit
    )


def brokers_out_of_sync(live: Iterable[int], partitions: Iterable[ReportedPartition]) -> set[int]:
    """The live brokers that share partitions with others, and are in sync in none of them.

    No response names the brokers that were drained (ControlledShutdown). One that shares nothing yet is new; so is one whose
    replicas are all on their way to it.
    """
    shared = [each for each in partitions if len(each.present) > 1 and len(each.present) == len(each.replicas)]
    present = {replica for each in shared for replica in each.present}
    return present.intersection(live).difference(replica for each in shared for replica in each.isr)


def _partition(key: Key, known: ReportedPartition, disks: Mapping[int, BrokerLogDirs]) -> PartitionModel:
    where = {b: disks[b].replicas[key][0] for b in known.replicas if b in disks and key in disks[b].replicas}
    return PartitionModel(
        key,
        known.replicas,
        known.leader,
        frozenset(known.isr),
        known.min_isr,
        size_of(key, known.present, known.leader, disks),
        known.written,
        known.read,
        where,
    )


def size_of(key: Key, present: Replicas, leader: int | None, disks: Mapping[int, BrokerLogDirs]) -> int:
    """Bytes of the leader's replica, which any other has in the end; of the largest where there is no leader."""
    there = {b: disks[b].replicas[key][1] for b in present if b in disks and key in disks[b].replicas}
    return there[leader] if leader in there else max(there.values(), default=0)
