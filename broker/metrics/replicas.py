"""Metrics of a broker's replicas: partitions, ISRs, fetcher lag and throttled replication.

Each ``next`` makes one complete family, as in ``collector``. Before the broker has started, every count
is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import trio
from prometheus_client.core import Metric

from ...handlers.services import Services
from ...replication.counters import ReplicationCounters
from ...replication.fetcher import Fetcher
from ...replication.partition import Partition
from .families import replication
from .samples import simple, single

_FETCHERS = ("Replica",)
"""The ``clientId`` of Kafka's beans for all fetchers together."""


def partitions_of(services: Services | None) -> Iterable[Partition]:
    """The replicas on the broker; none before it has started."""
    return () if services is None else services.replicas.partitions()


def replica_metrics(services: Services | None) -> Iterator[Metric]:
    yield from _replicas(services)
    yield from _in_sync(services)
    yield from _fetchers(() if services is None else list(services.fetchers.all))
    yield from _quotas(services)


def _replicas(services: Services | None) -> Iterator[Metric]:
    partitions = list(partitions_of(services))
    leading = [partition for partition in partitions if partition.is_leader]
    yield single(replication.PARTITIONS, len(partitions))
    yield single(replication.LEADERS, len(leading))
    yield single(replication.UNDER_REPLICATED, sum(len(p.isr) < len(p.replicas) for p in leading))
    yield single(replication.REASSIGNING, sum(partition.is_reassigning for partition in leading))
    yield single(replication.UNDER_MIN_ISR, sum(partition.is_under_min_isr for partition in leading))
    yield single(replication.AT_MIN_ISR, sum(partition.is_at_min_isr for partition in leading))
    labels = [(p.topic, str(p.log.partition)) for p in leading]
    for family, values in (
        (replication.REPLICAS, [len(p.replicas) for p in leading]),
        (replication.IN_SYNC_REPLICAS, [len(p.isr) for p in leading]),
        (replication.PARTITION_UNDER_REPLICATED, [len(p.isr) < len(p.replicas) for p in leading]),
        (replication.PARTITION_UNDER_MIN_ISR, [p.is_under_min_isr for p in leading]),
        (replication.PARTITION_AT_MIN_ISR, [p.is_at_min_isr for p in leading]),
        (replication.LAST_STABLE_OFFSET_LAG, [p.log.high_watermark - p.log.last_stable_offset for p in leading]),
        (replication.HIGH_WATERMARK, [p.log.high_watermark for p in leading]),
    ):
        yield simple(family, zip(labels, values, strict=True))
    yield single(replication.OFFLINE_REPLICAS, 0 if services is None else services.replicas.offline_count)


def _in_sync(services: Services | None) -> Iterator[Metric]:
    counters = ReplicationCounters() if services is None else services.replicas.counters
    yield single(replication.ISR_SHRINKS, counters.isr_shrinks)
    yield single(replication.ISR_EXPANDS, counters.isr_expands)
    yield single(replication.FAILED_ISR_UPDATES, counters.failed_isr_updates)
    yield single(replication.REPLICATION_BYTES_IN, counters.bytes_in)
    yield single(replication.REPLICATION_BYTES_OUT, counters.bytes_out)
    yield single(replication.REASSIGNMENT_BYTES_IN, counters.reassignment_bytes_in)
    yield single(replication.REASSIGNMENT_BYTES_OUT, counters.reassignment_bytes_out)


def _fetchers(fetchers: Collection[Fetcher]) -> Iterator[Metric]:
    lags = [
        ((f"ReplicaFetcherThread-0-{fetcher.leader_id}", partition.topic, str(partition.log.partition)), lag)
        for fetcher in fetchers
        for partition, lag in fetcher.lags()
    ]
    yield simple(replication.FETCHER_LAG, lags)
    yield simple(replication.MAX_LAG, [(_FETCHERS, max((lag for _, lag in lags), default=0))])
    slowest = min((fetcher.fetches_per_second for fetcher in fetchers), default=0.0)
    yield simple(replication.MIN_FETCH_RATE, [(_FETCHERS, slowest)])
    failed = sum(fetcher.failed_count for fetcher in fetchers)
    yield simple(replication.FAILED_PARTITIONS, [(_FETCHERS, failed)])


def _quotas(services: Services | None) -> Iterator[Metric]:
    quotas, now = None if services is None else services.replicas.quotas, trio.current_time()
    yield single(replication.LEADER_QUOTA_RATE, 0 if quotas is None else quotas.leader.rate(now))
    yield single(replication.FOLLOWER_QUOTA_RATE, 0 if quotas is None else quotas.follower.rate(now))
    yield single(replication.LOG_DIRS_QUOTA_RATE, 0 if quotas is None else quotas.log_dirs.rate(now))
