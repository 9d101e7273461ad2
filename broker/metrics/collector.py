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
from . import families
from .client_quotas import client_quota_metrics
from .cluster import cluster_metrics, partitions_of
from .loop_lag import LoopLag
from .request_metrics import RequestMetrics, error_name
from .samples import Labels, Samples, distributions, histogram, simple, single

_AUTHENTICATIONS = {
    Authentication.SUCCESSFUL: families.SUCCESSFUL_AUTHENTICATIONS,
    Authentication.FAILED: families.FAILED_AUTHENTICATIONS,
    Authentication.SUCCESSFUL_AGAIN: families.SUCCESSFUL_REAUTHENTICATIONS,
    Authentication.FAILED_AGAIN: families.FAILED_REAUTHENTICATIONS,
    Authentication.EXPIRED: families.EXPIRED_CONNECTIONS,
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
        yield simple(families.BYTES_IN, _by_topic(services, "bytes_in"))
        yield simple(families.MESSAGES_IN, _by_topic(services, "messages_in"))
        yield simple(families.BYTES_OUT, _by_topic(services, "bytes_out"))
        yield from self._connections()
        yield simple(families.PURGATORY, _waiting(services))
        yield from client_quota_metrics(services)
        yield from cluster_metrics(services)
        yield from _logs(services)
        yield from _cleaner(services)
        yield from _groups(services)
        yield distributions(families.LOOP_LAG, [((), self._loop_lag.seconds)])
        yield single(families.LOOP_TASKS, trio.lowlevel.current_statistics().tasks_living)

    def _request_metrics(self) -> Iterator[Metric]:
        requests = self._requests
        counts = [((_title(key), str(version)), count) for key, version, count in requests.counts()]
        yield simple(families.REQUESTS, counts)
        errors = [((_title(key), error_name(code)), count) for (key, code), count in sorted(requests.errors.items())]
        yield simple(families.REQUEST_ERRORS, errors)
        times = [(_title(api_key), histograms) for api_key, histograms in requests.histograms()]
        for slot, family in enumerate((families.TOTAL_TIME, families.LOCAL_TIME, families.REMOTE_TIME)):
            found = [((title,), TIME_BOUNDS_MS, kinds[slot].cumulative, kinds[slot].sum_ms) for title, kinds in times]
            yield histogram(family, found)

    def _connections(self) -> Iterator[Metric]:
        opened, closed = self.monitor.opened, self.monitor.closed
        yield simple(families.CONNECTIONS, [((name,), opened[name] - closed[name]) for name in sorted(opened)])
        yield simple(families.CONNECTIONS_OPENED, [((name,), opened[name]) for name in sorted(opened)])
        yield simple(families.CONNECTIONS_CLOSED, [((name,), closed[name]) for name in sorted(opened)])
        counts = self.monitor.authentications
        for what, family in _AUTHENTICATIONS.items():
            yield simple(family, [((name,), counts[name, what]) for name in sorted(opened) if (name, what) in counts])
        errors = self.monitor.errors
        yield simple(families.CONNECTION_ERRORS, [((reason.value,), count) for reason, count in errors.items()])


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
    yield simple(families.LOG_SIZE, zip(labels, [log.size for log in logs], strict=True))
    yield simple(families.LOG_START, zip(labels, [log.log_start_offset for log in logs], strict=True))
    yield simple(families.LOG_END, zip(labels, [log.log_end_offset for log in logs], strict=True))
    yield simple(families.LOG_SEGMENTS, zip(labels, [len(log.segments) for log in logs], strict=True))
    failed = 0 if services is None else sum(folder.is_offline for folder in services.logs.folders)
    yield single(families.OFFLINE_FOLDERS, failed)


def _cleaner(services: Services | None) -> Iterator[Metric]:
    cleaner = None if services is None else services.logs.cleaner
    yield single(families.UNCLEANABLE, 0 if cleaner is None else cleaner.uncleanable_count)
    yield single(families.CLEANER_RUNS, 0 if cleaner is None else cleaner.runs)
    yield single(families.CLEANER_READ, 0 if cleaner is None else cleaner.bytes_read)
    yield single(families.CLEANER_WRITTEN, 0 if cleaner is None else cleaner.bytes_written)
    yield single(families.CLEANER_IN_PROGRESS, 0 if cleaner is None else len(cleaner.in_progress))


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
    yield single(families.GROUPS, len(groups))
    yield simple(families.GROUPS_BY_STATE, [((state,), count) for state, count in states.items()])
    yield simple(families.GROUP_OFFSET, offsets)
    yield simple(families.GROUP_LAG, lags)


def _title(api_key: int) -> str:
    return ApiKey(api_key).title
