"""What a follower has of its leader, in a cluster in one loop."""

from __future__ import annotations

from ottla.log.partition_log import PartitionLog

from ...helpers.memory_cluster import MemoryCluster


def log_of(cluster: MemoryCluster, broker_id: int, number: int = 0) -> PartitionLog:
    return cluster.services(broker_id).replicas.partition("t", number).log


def stored(cluster: MemoryCluster, broker_id: int) -> tuple[int, int, bytes]:
    """Where a replica's log starts and ends, and the bytes of its batches."""
    log = log_of(cluster, broker_id)
    piece = log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset, at_least_one=True)
    if piece is None:
        return log.log_start_offset, log.log_end_offset, b""
    data = piece.read()
    piece.release()
    return log.log_start_offset, log.log_end_offset, data


def in_sync(cluster: MemoryCluster, leader: int) -> set[int]:
    return set(cluster.services(leader).replicas.partition("t", 0).isr)
