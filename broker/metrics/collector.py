"""Reads every metric off the parts of a running broker, at the moment of a scrape.

Each ``next`` of ``collect`` makes one family and leaves nothing half read, so the loop may go to other tasks between two.
Before the broker has started there are the connections and the loop; the rest has no samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import trio
from prometheus_client.core import Metric

from ...base.distribution import TIME_BOUNDS_MS
from ...handlers.services import Services
from ...wire.api_keys import ApiKey
from ..monitor import Authentication, Monitor
from ..view.groups import lags as lags_of
from .client_quotas import client_quota_metrics
from .cluster import cluster_metrics, partitions_of
from .families import consumers, process, storage, traffic
from .loop_lag import LoopLag
from .request_metrics import RequestMetrics, error_name
from .samples import Labels, Samples, distributions, histogram, simple, single

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

    def collect(self) -> Iterator[Metric]:
        """The families, in the order of ``families``."""
        yield from self._request_metrics()
        services = self.services
        yield simple(traffic.BYTES_IN, _by_topic(services, "bytes_in"))
        yield simple(traffic.MESSAGES_IN, _by_topic(services, "messages_in"))
        yield simple(traffic.BYTES_OUT, _by_topic(services, "bytes_out"))
        yield from self._connections()
        yield simple(traffic.PURGATORY, _waiting(services))
        yield from client_quota_metrics(services)
        yield from cluster_metrics(services)
        yield from _logs(services)
        yield from _cleaner(services)
        yield from _groups(services)
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


def _by_topic(services: Services | None, attribute: str) -> Samples:
    totals: Counter[str] = Counter()
    for partition in partitions_of(services):
        totals[partition.topic] += getattr(partition, attribute)
    return [((topic,), count) for topic, count in totals.items()]


def _waiting(services: Services | None) -> Samples:
    """A fetch stands in the set of each of its partitions, and counts once."""
    fetches = {
        waiter
        for partition in partitions_of(services)
        for waiter in (*partition.fetch_waiters, *partition.replica_waiters)
    }
    produces = sum(len(partition.offset_waiters) for partition in partitions_of(services))
    return [(("Fetch",), len(fetches)), (("Produce",), produces)]


def _logs(services: Services | None) -> Iterator[Metric]:
    logs = [] if services is None else [log for log in services.logs.logs() if not log.is_closed]
    labels = [(log.topic, str(log.partition)) for log in logs]
    yield simple(storage.LOG_SIZE, zip(labels, [log.size for log in logs], strict=True))
    yield simple(storage.LOG_START, zip(labels, [log.log_start_offset for log in logs], strict=True))
    yield simple(storage.LOG_END, zip(labels, [log.log_end_offset for log in logs], strict=True))
    yield simple(storage.LOG_SEGMENTS, zip(labels, [len(log.segments) for log in logs], strict=True))
    failed = 0 if services is None else sum(folder.is_offline for folder in services.logs.folders)
    yield single(storage.OFFLINE_FOLDERS, failed)


def _cleaner(services: Services | None) -> Iterator[Metric]:
    cleaner = None if services is None else services.logs.cleaner
    yield single(storage.UNCLEANABLE, 0 if cleaner is None else cleaner.uncleanable_count)
    yield single(storage.CLEANER_RUNS, 0 if cleaner is None else cleaner.runs)
    yield single(storage.CLEANER_READ, 0 if cleaner is None else cleaner.bytes_read)
    yield single(storage.CLEANER_WRITTEN, 0 if cleaner is None else cleaner.bytes_written)
    yield single(storage.CLEANER_IN_PROGRESS, 0 if cleaner is None else len(cleaner.in_progress))


def _groups(services: Services | None) -> Iterator[Metric]:
    groups = [] if services is None else list(services.groups.groups())
    states = Counter(group.state.value for group in groups)
    offsets: list[tuple[Labels, float]] = []
    lags: list[tuple[Labels, float]] = []
    replicas = {(p.topic, p.log.partition): p for p in partitions_of(services)}
    for group in groups:
        for found in lags_of(group, replicas):
            labels = (group.group_id, found.topic, str(found.number))
            offsets.append((labels, found.committed.value.offset))
            if found.lag is not None:
                lags.append((labels, found.lag))
    yield single(consumers.GROUPS, len(groups))
    yield simple(consumers.GROUPS_BY_STATE, [((state,), count) for state, count in states.items()])
    yield simple(consumers.GROUP_OFFSET, offsets)
    yield simple(consumers.GROUP_LAG, lags)


def _title(api_key: int) -> str:
    return ApiKey(api_key).title
