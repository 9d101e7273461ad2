"""Replicas in sync among brokers that have to authenticate, one of which may fail to."""

from __future__ import annotations

import trio

from ...helpers.memory_cluster import MemoryCluster, running_as, until, until_true


async def is_in_sync(cluster: MemoryCluster, asked: int, *replicas: int) -> bool:
    """Whether these are the in-sync replicas of partition 0 of topic ``t``, as broker ``asked`` says."""
    (topic,) = (await cluster.metadata(asked, "t")).topics
    return sorted(topic.partitions[0].isr_nodes) == sorted(replicas)


async def check_that_broker_3_takes_no_part(kind: type[MemoryCluster]) -> None:
    """The two others replicate without it: it runs, and none of its connections to them authenticates."""
    async with running_as(kind, replica_lag_time_max_ms="5000") as cluster:
        await cluster.start(1, 2)
        cluster.start_soon(3)
        await until(lambda: 3 in cluster.servers and cluster.servers[3].broker_id == 3)
        await trio.sleep(1)
        await cluster.create("t", [1, 2, 3])
        assert await cluster.produce(1, "t", 0, b"one", acks=1) == 0
        await until_true(lambda: is_in_sync(cluster, 1, 1, 2))
        assert await cluster.produce(1, "t", 0, b"two") == 0
