"""Reads every metric from the parts of a running broker, when it is scraped.

Each ``next`` of ``collect`` makes one complete family, so other tasks can run between two. Until the broker has started, its
parts have no values: their counts are 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import trio
from prometheus_client.core import Metric

from ...base.build_info import commit, version
from ...base.distribution import TIME_BOUNDS_MS, Distribution
from ...group_coordinator.live_group import GroupState
from ...handlers.services import Services
from ...wire.api_keys import ApiKey
from ..broker_state import BrokerState
from ..monitor import Authentication, Monitor
from ..view.groups import lags as lags_of
from .client_quotas import client_quota_metrics
from .cluster import cluster_metrics, partitions_of
from .disk_io import disk_io
from .families import consumers, process, storage, traffic
from .loop_lag import LoopLag
from .request_metrics import RequestMetrics, error_name
from .samples import Labels, Samples, distributions, histogram, simple, single, with_total

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
_AUTHENTICATIONS = {
    Authentication.SUCCESSFUL: traffic.SUCCESSFUL_AUTHENTICATIONS,
    Authentication.FAILED: traffic.FAILED_AUTHENTICATIONS,
    Authentication.SUCCESSFUL_AGAIN: traffic.SUCCESSFUL_REAUTHENTICATIONS,
    Authentication.FAILED_AGAIN: traffic.FAILED_REAUTHENTICATIONS,
    Authentication.EXPIRED: traffic.EXPIRED_CONNECTIONS,
}


class BrokerCollector:
    """The metrics of one broker; ``services`` is None until it has started."""

    def __init__(self, requests: RequestMetrics, loop_lag: LoopLag) -> None:
        self._requests = requests
        self._loop_lag = loop_lag
        self.monitor = Monitor()
        self.services: Services | None = None
        self.state = BrokerState.STARTING
        self._version = version()
        self._commit = commit()

    def collect(self) -> Iterator[Metric]:
        """The families, in the order of ``families``."""
        yield from self._request_metrics()
        services = self.services
        yield from _traffic(services)
        yield from self._connections()
        yield simple(traffic.PURGATORY, _waiting(services))
        yield from _fetch_sessions(services)
        yield from client_quota_metrics(services)
        yield from cluster_metrics(services)
        yield from _logs(services)
        yield from _cleaner(services)
        yield from _groups(services)
        yield single(process.BROKER_STATE, self.state)
        yield simple(process.BUILD, [((self._version, self._commit), 1)])
        yield single(process.HANDLERS_IDLE, self._loop_lag.idle)
        yield single(process.NETWORK_IDLE, self._loop_lag.idle)
        io = disk_io()
        yield simple(process.DISK_READ, [] if io is None else [((), io.read)])
        yield simple(process.DISK_WRITTEN, [] if io is None else [((), io.written)])
        yield distributions(process.LOOP_LAG, [((), self._loop_lag.seconds)])
        yield single(process.LOOP_TASKS, trio.lowlevel.current_statistics().tasks_living)

    def _request_metrics(self) -> Iterator[Metric]:
        requests = self._requests
        counts = [((_title(key), str(version)), count) for key, version, count in requests.counts()]
        yield simple(traffic.REQUESTS, counts)
        errors = [((_title(key), error_name(code)), count) for (key, code), count in sorted(requests.errors.items())]
        yield simple(traffic.REQUEST_ERRORS, errors)
        times = [(_title(api_key), histograms) for api_key, histograms in requests.histograms()]
        for slot, family in enumerate((traffic.TOTAL_TIME, traffic.LOCAL_TIME, traffic.REMOTE_TIME)):
            found = [((title,), TIME_BOUNDS_MS, kinds[slot].cumulative, kinds[slot].sum_ms) for title, kinds in times]
            yield histogram(family, found)

    def _connections(self) -> Iterator[Metric]:
        opened, closed = self.monitor.opened, self.monitor.closed
        yield simple(traffic.CONNECTIONS, [((name,), opened[name] - closed[name]) for name in sorted(opened)])
        yield simple(traffic.CONNECTIONS_OPENED, [((name,), opened[name]) for name in sorted(opened)])
        yield simple(traffic.CONNECTIONS_CLOSED, [((name,), closed[name]) for name in sorted(opened)])
        counts = self.monitor.authentications
        for what, family in _AUTHENTICATIONS.items():
            yield simple(family, [((name,), counts[name, what]) for name in sorted(opened) if (name, what) in counts])
        errors = self.monitor.errors
        yield simple(traffic.CONNECTION_ERRORS, [((reason.value,), count) for reason, count in errors.items()])


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


def _logs(services: Services | None) -> Iterator[Metric]:
    logs = [] if services is None else [log for log in services.logs.logs() if not log.is_closed]
    labels = [(log.topic, str(log.partition)) for log in logs]
    yield simple(storage.LOG_SIZE, zip(labels, [log.size for log in logs], strict=True))
    yield simple(storage.LOG_START, zip(labels, [log.log_start_offset for log in logs], strict=True))
    yield simple(storage.LOG_END, zip(labels, [log.log_end_offset for log in logs], strict=True))
    yield simple(storage.LOG_SEGMENTS, zip(labels, [len(log.segments) for log in logs], strict=True))
    folders = [] if services is None else services.logs.folders
    sizes: Counter[str] = Counter()
    times = Distribution()
    for log in logs:
        sizes[log.folder.path] += log.size
    for folder in folders:
        times.add(folder.flush_times)
    yield single(storage.OFFLINE_FOLDERS, sum(folder.is_offline for folder in folders))
    yield simple(storage.OFFLINE_FOLDER, [((folder.path,), folder.is_offline) for folder in folders])
    yield simple(storage.FOLDER_SIZE, [((folder.path,), sizes[folder.path]) for folder in folders])
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
    states = Counter(group.live.state for group, _ in groups)
    offsets: list[tuple[Labels, float]] = []
    lags: list[tuple[Labels, float]] = []
    replicas = {(p.topic, p.log.partition): p for p in partitions_of(services)}
    for group, committed in groups:
        for found in lags_of(committed, replicas):
            labels = (group.group_id, found.topic, str(found.number))
            offsets.append((labels, found.committed.value.offset))
            if found.lag is not None:
                lags.append((labels, found.lag))
    yield single(consumers.GROUPS, len(groups))
    for state, family in _STATES.items():
        yield single(family, states[state])
    yield single(consumers.OFFSETS, len(offsets))
    yield simple(consumers.GROUP_MEMBERS, [((group.group_id,), len(group.live.members)) for group, _ in groups])
    yield simple(consumers.GROUP_OFFSET, offsets)
    yield simple(consumers.GROUP_LAG, lags)


def _title(api_key: int) -> str:
    return ApiKey(api_key).title
