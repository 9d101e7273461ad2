"""Reads every metric from the parts of a running broker, when it is scraped.

Each ``next`` of ``collect`` makes one complete family, so other tasks can run between two. Until the broker has started, its
parts have no values: their counts are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from prometheus_client.core import Metric

from ...base.distribution import Distribution
from ...controller.quorum.cluster import QuorumCluster
from ...controller.quorum.figures import QuorumFigures
from ...group_coordinator.classic_group import ClassicGroup
from ...group_coordinator.consumer_group import ConsumerGroup, ConsumerGroupState
from ...group_coordinator.live_group import GroupState
from ...group_coordinator.share_group import ShareGroup, ShareGroupState
from ...group_coordinator.streams_group import StreamsGroup
from ...group_coordinator.timeline import EventKind
from ...handlers.services import Services
from ..assembly import Assembly
from ..broker_state import BrokerLifecycleState
from ..consumer_lag import commits, lag_behind
from ..listeners.monitor import Monitor
from .client_quotas import client_quota_metrics
from .control import control_metrics, session_metrics
from .families import consumers, process, storage, traffic
from .logs import LogFigures, log_metrics
from .loop_lag import LoopLag
from .node import NodeMetrics
from .quorum import applied_metrics, controller_metrics, metadata_log, quorum_metrics
from .replicas import partitions_of, replica_metrics
from .request_metrics import RequestMetrics
from .samples import Labels, Samples, distributions, simple, single, with_total
from .share_partitions import share_metrics

_TRAFFIC = {
    "bytes_in": traffic.BYTES_IN,
    "messages_in": traffic.MESSAGES_IN,
    "bytes_out": traffic.BYTES_OUT,
    "bytes_rejected": traffic.BYTES_REJECTED,
    "produce_requests": traffic.PRODUCE_REQUESTS,
    "failed_produce_requests": traffic.FAILED_PRODUCE_REQUESTS,
    "fetch_requests": traffic.FETCH_REQUESTS,
    "failed_fetch_requests": traffic.FAILED_FETCH_REQUESTS,
}
_STATES = {
    GroupState.EMPTY: consumers.EMPTY_GROUPS,
    GroupState.PREPARING_REBALANCE: consumers.PREPARING_GROUPS,
    GroupState.COMPLETING_REBALANCE: consumers.COMPLETING_GROUPS,
    GroupState.STABLE: consumers.STABLE_GROUPS,
    GroupState.DEAD: consumers.DEAD_GROUPS,
}


_PROTOCOLS = (ClassicGroup.type_name, ConsumerGroup.type_name, ShareGroup.type_name, StreamsGroup.type_name)
_CONSUMER_STATES = (*(state.value for state in ConsumerGroupState), GroupState.DEAD.value)
_SHARE_STATES = (*(state.value for state in ShareGroupState), GroupState.DEAD.value)


class ObservedBroker(Protocol):
    """The part of a ``BrokerServer`` that is used here."""

    @property
    def monitor(self) -> Monitor: ...

    @property
    def assembly(self) -> Assembly | None: ...

    @property
    def state(self) -> BrokerLifecycleState: ...


class BrokerCollector:
    """The metrics of one broker, and of the controller in its process, if there is one."""

    def __init__(self, broker: ObservedBroker, requests: RequestMetrics, loop_lag: LoopLag) -> None:
        self._broker = broker
        self._node = NodeMetrics(requests, loop_lag)

    def collect(self) -> Iterator[Metric]:
        """The families, in the order of ``families``."""
        broker, node = self._broker, self._node
        assembly = broker.assembly
        services = assembly.services if assembly is not None and assembly.is_started else None
        role = None if assembly is None else assembly.controller
        controller = None if role is None else role.figures()
        quorum = _quorum(services)
        yield from node.requests()
        yield from _traffic(services)
        yield from node.connections([broker.monitor] if role is None else [broker.monitor, role.monitor])
        yield simple(traffic.PURGATORY, _waiting(services))
        yield from _fetch_sessions(services)
        yield from client_quota_metrics(services)
        yield from share_metrics(services)
        yield from replica_metrics(services)
        yield from control_metrics(services, controller)
        yield from session_metrics(services)
        now_ms = 0 if services is None else services.clock.now_ms()
        yield from controller_metrics(controller, now_ms)
        in_quorum = controller.quorum if quorum is None and controller is not None else quorum
        yield from quorum_metrics(in_quorum, node.idle)
        yield from applied_metrics(quorum, now_ms)
        yield from _logs(services, metadata_log(in_quorum))
        yield from _cleaner(services)
        yield from _groups(services)
        yield single(process.BROKER_STATE, broker.state)
        yield from node.process()


def _quorum(services: Services | None) -> QuorumFigures | None:
    if services is None or not isinstance(services.cluster, QuorumCluster):
        return None
    return services.cluster.figures()


def _traffic(services: Services | None) -> Iterator[Metric]:
    removed: Counter[str] = Counter() if services is None else services.replicas.counters.of_removed
    for attribute, family in _TRAFFIC.items():
        by_topic: Counter[str] = Counter()
        for partition in partitions_of(services):
            by_topic[partition.topic] += getattr(partition, attribute)
        samples = [((topic,), count) for topic, count in by_topic.items()]
        yield with_total(family, samples, sum(by_topic.values()) + removed[attribute])


def _fetch_sessions(services: Services | None) -> Iterator[Metric]:
    sessions = None if services is None else services.fetch_sessions
    yield single(traffic.FETCH_SESSIONS, 0 if sessions is None else len(sessions))
    yield single(traffic.FETCH_SESSION_PARTITIONS, 0 if sessions is None else sessions.partition_count)
    yield single(traffic.FETCH_SESSION_EVICTIONS, 0 if sessions is None else sessions.evictions)


def _waiting(services: Services | None) -> Samples:
    """How many requests wait. A fetch waits for all its partitions, but counts once."""
    fetches = {fetch.owner for partition in partitions_of(services) for fetch in partition.fetches if fetch.is_waiting}
    produces = sum(len(partition.offset_waiters) for partition in partitions_of(services))
    return [(("Fetch",), len(fetches)), (("Produce",), produces)]


def _logs(services: Services | None, further: Sequence[LogFigures]) -> Iterator[Metric]:
    logs = [] if services is None else [log for log in services.logs.logs() if not log.is_closed]
    figures = [
        LogFigures(
            (log.topic, str(log.partition)), log.size, log.log_start_offset, log.log_end_offset, len(log.segments)
        )
        for log in logs
    ]
    yield from log_metrics([*figures, *further])
    folders = [] if services is None else services.logs.folders
    sizes: Counter[str] = Counter()
    times = Distribution()
    for log in logs:
        sizes[log.folder.path] += log.size
    for folder in folders:
        times.add(folder.flush_times)
    yield single(storage.OFFLINE_LOG_DIRS, sum(folder.is_offline for folder in folders))
    yield simple(storage.OFFLINE_LOG_DIR, [((folder.path,), folder.is_offline) for folder in folders])
    yield simple(storage.LOG_DIR_SIZE, [((folder.path,), sizes[folder.path]) for folder in folders])
    yield distributions(storage.FLUSH_TIMES, [((), times)])


def _cleaner(services: Services | None) -> Iterator[Metric]:
    cleaner = None if services is None else services.logs.cleaner
    yield single(storage.UNCLEANABLE, 0 if cleaner is None else cleaner.uncleanable_count)
    yield single(storage.CLEANER_RUNS, 0 if cleaner is None else cleaner.runs)
    yield single(storage.CLEANER_READ, 0 if cleaner is None else cleaner.bytes_read)
    yield single(storage.CLEANER_WRITTEN, 0 if cleaner is None else cleaner.bytes_written)
    yield single(storage.CLEANER_IN_PROGRESS, 0 if cleaner is None else len(cleaner.in_progress))


def _groups(services: Services | None) -> Iterator[Metric]:
    groups = [] if services is None else list(services.groups.groups())
    states = Counter(group.live.state for group, _ in groups if isinstance(group, ClassicGroup))
    offsets: list[tuple[Labels, float]] = []
    lags: list[tuple[Labels, float]] = []
    replicas = {(p.topic, p.log.partition): p for p in partitions_of(services)}
    for group, committed in groups:
        for topic, number, commit in commits(committed):
            labels, offset = (group.group_id, topic, str(number)), commit.value.offset
            offsets.append((labels, offset))
            partition = replicas.get((topic, number))
            if partition is not None and partition.is_leader:
                lags.append((labels, lag_behind(partition, offset)))
    yield single(consumers.GROUPS, len(groups))
    for state, family in _STATES.items():
        yield single(family, states[state])
    types = Counter(group.type_name for group, _ in groups)
    yield simple(consumers.GROUPS_BY_PROTOCOL, [((name,), types[name]) for name in _PROTOCOLS])
    of_consumers = Counter(group.state_name for group, _ in groups if isinstance(group, ConsumerGroup))
    yield simple(consumers.CONSUMER_GROUPS, [((name,), of_consumers[name]) for name in _CONSUMER_STATES])
    events = Counter[EventKind]() if services is None else services.groups.timeline.counts
    yield single(consumers.CONSUMER_GROUP_REBALANCES, events[EventKind.EPOCH])
    of_shares = Counter(group.state_name for group, _ in groups if isinstance(group, ShareGroup))
    yield simple(consumers.SHARE_GROUPS, [((name,), of_shares[name]) for name in _SHARE_STATES])
    yield single(consumers.SHARE_GROUP_REBALANCES, events[EventKind.SHARE_EPOCH])
    yield single(consumers.CLASSIC_REBALANCES, events[EventKind.ASSIGNED])
    yield single(consumers.OFFSETS, len(offsets))
    yield simple(consumers.GROUP_MEMBERS, [((group.group_id,), group.member_count) for group, _ in groups])
    yield simple(consumers.GROUP_OFFSET, offsets)
    yield simple(consumers.GROUP_LAG, lags)
