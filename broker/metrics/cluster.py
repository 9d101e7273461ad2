"""The metrics of a broker in a cluster: replicas, fetchers, the controller, its session at a store or the log of a quorum.

Each ``next`` makes one complete family, as in ``collector``. Before the broker has started, every count
is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import trio
from prometheus_client.core import Metric

from ...controller.quorum.cluster import QuorumCluster
from ...controller.zookeeper.cluster import ZooKeeperCluster
from ...controller.zookeeper.figures import ClusterFigures
from ...controller.zookeeper.store.session import SessionState
from ...handlers.services import Services
from ...replication.counters import ReplicationCounters
from ...replication.fetcher import Fetcher
from ...replication.partition import Partition
from .families import control, quorum, replication
from .families.family import Family
from .samples import distributions, simple, single

_FETCHERS = ("Replica",)
"""The ``clientId`` of Kafka's beans for all fetchers together."""
_KAFKAS_NAMES = {
    SessionState.CONNECTED: "CONNECTED",
    SessionState.SUSPECTED: "CONNECTING",
    SessionState.EXPIRED: "CLOSED",
}


def partitions_of(services: Services | None) -> Iterable[Partition]:
    """The replicas on the broker; none before it has started."""
    return () if services is None else services.replicas.partitions()


def cluster_metrics(services: Services | None) -> Iterator[Metric]:
    yield from _replicas(services)
    yield from _in_sync(services)
    yield from _fetchers(() if services is None else list(services.fetchers.all))
    yield from _quotas(services)
    yield from _controller(services)
    yield from _store_session(services)
    yield from _quorum(services)


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


def _controller(services: Services | None) -> Iterator[Metric]:
    controller = (
        services.cluster.controller if services is not None and isinstance(services.cluster, ZooKeeperCluster) else None
    )
    is_active = controller is not None and controller.is_active
    cluster = ClusterFigures() if controller is None or not is_active else controller.figures.cluster()
    yield single(control.ACTIVE_CONTROLLER, is_active)
    yield single(control.ACTIVE_BROKERS, cluster.brokers)
    yield single(control.OFFLINE_PARTITIONS, cluster.offline_partitions)
    yield single(control.PREFERRED_IMBALANCE, cluster.preferred_imbalance)
    yield single(control.TOPICS, cluster.topics)
    yield single(control.ALL_PARTITIONS, cluster.partitions)
    partitions = [] if controller is None or not is_active else controller.figures.partitions_by_topic()
    yield simple(control.TOPIC_PARTITIONS, [((topic,), count) for topic, count in partitions])
    yield single(control.TOPICS_TO_DELETE, cluster.topics_to_delete)
    figures = None if controller is None else controller.figures
    queues = [] if figures is None else [((str(broker_id),), sender) for broker_id, sender in figures.senders.queues()]
    yield distributions(control.ELECTION_TIMES, [] if figures is None else [((), figures.elections.times)])
    yield single(control.UNCLEAN_ELECTIONS, 0 if figures is None else figures.elections.unclean)
    yield single(control.EVENT_QUEUE_SIZE, 0 if figures is None else figures.events.size)
    yield distributions(control.EVENT_QUEUE_TIMES, [] if figures is None else [((), figures.events.times)])
    yield simple(control.SENDER_QUEUE_SIZE, [(labels, sender.size) for labels, sender in queues])
    yield distributions(control.SENDER_QUEUE_TIMES, [(labels, sender.times) for labels, sender in queues])


def _store_session(services: Services | None) -> Iterator[Metric]:
    session = (
        services.cluster.session if services is not None and isinstance(services.cluster, ZooKeeperCluster) else None
    )
    states = [] if session is None else [((name,), session.state is state) for state, name in _KAFKAS_NAMES.items()]
    yield simple(control.SESSION_STATE, states)
    yield single(control.SESSION_CONNECTS, 0 if session is None else session.connects)
    yield single(control.SESSION_DISCONNECTS, 0 if session is None else session.disconnects)
    yield single(control.SESSION_EXPIRATIONS, 0 if session is None else session.expirations)
    yield distributions(control.STORE_TIMES, [] if session is None else [((), session.times)])


def _quorum(services: Services | None) -> Iterator[Metric]:
    values: dict[Family, float] = {}
    if services is not None and isinstance(services.cluster, QuorumCluster):
        figures = services.cluster.figures()
        values = {
            quorum.QUORUM_LEADER: figures.leader_id,
            quorum.QUORUM_EPOCH: figures.epoch,
            quorum.QUORUM_HIGH_WATERMARK: figures.high_watermark,
            quorum.METADATA_LOG_END: figures.log_end_offset,
            quorum.METADATA_LOG_EPOCH: figures.log_end_epoch,
            quorum.APPLIED_OFFSET: figures.applied.offset,
            quorum.APPLIED_TIMESTAMP: figures.applied.timestamp,
            quorum.APPLIED_LAG: services.clock.now_ms() - figures.applied.timestamp,
            quorum.METADATA_VERSION: figures.metadata_version,
        }
    for family in quorum.FAMILIES:
        yield simple(family, [((), values[family])] if values else [])
