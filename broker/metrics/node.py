"""The metrics that every kind of node has: its requests, its connections, its process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import trio
from prometheus_client.core import Metric

from ...base.build_info import commit, version
from ...base.distribution import TIME_BOUNDS_MS
from ...wire.api_keys import ApiKey
from ..listeners.monitor import Authentication, Monitor
from .disk_io import disk_io
from .families import process, traffic
from .loop_lag import LoopLag
from .request_metrics import RequestMetrics, error_name
from .samples import distributions, histogram, simple, single

_AUTHENTICATIONS = {
    Authentication.SUCCESSFUL: traffic.SUCCESSFUL_AUTHENTICATIONS,
    Authentication.FAILED: traffic.FAILED_AUTHENTICATIONS,
    Authentication.SUCCESSFUL_AGAIN: traffic.SUCCESSFUL_REAUTHENTICATIONS,
    Authentication.FAILED_AGAIN: traffic.FAILED_REAUTHENTICATIONS,
    Authentication.EXPIRED: traffic.EXPIRED_CONNECTIONS,
}


class NodeMetrics:
    """``requests`` is told of the node's requests, ``loop_lag`` measures its loop."""

    def __init__(self, requests: RequestMetrics, loop_lag: LoopLag) -> None:
        self._requests = requests
        self._loop_lag = loop_lag
        self._version = version()
        self._commit = commit()

    @property
    def idle(self) -> float:
        """The share of the last minute in which the loop had nothing to do, 0 to 1."""
        return self._loop_lag.idle

    def requests(self) -> Iterator[Metric]:
        requests = self._requests
        counts = [((_title(key), str(version)), count) for key, version, count in requests.counts()]
        yield simple(traffic.REQUESTS, counts)
        errors = [((_title(key), error_name(code)), count) for (key, code), count in sorted(requests.errors.items())]
        yield simple(traffic.REQUEST_ERRORS, errors)
        times = [(_title(api_key), histograms) for api_key, histograms in requests.histograms()]
        for slot, family in enumerate((traffic.TOTAL_TIME, traffic.LOCAL_TIME, traffic.REMOTE_TIME)):
            found = [((title,), TIME_BOUNDS_MS, kinds[slot].cumulative, kinds[slot].sum_ms) for title, kinds in times]
            yield histogram(family, found)

    def connections(self, monitors: Sequence[Monitor]) -> Iterator[Metric]:
        """``monitors`` count the connections of different listeners."""
        counted = [(monitor, name) for monitor in monitors for name in sorted(monitor.opened)]
        opened = [((name,), monitor.opened[name]) for monitor, name in counted]
        closed = [((name,), monitor.closed[name]) for monitor, name in counted]
        yield simple(
            traffic.CONNECTIONS, [((name,), monitor.opened[name] - monitor.closed[name]) for monitor, name in counted]
        )
        yield simple(traffic.CONNECTIONS_OPENED, opened)
        yield simple(traffic.CONNECTIONS_CLOSED, closed)
        for what, family in _AUTHENTICATIONS.items():
            found = [(monitor.authentications, name) for monitor, name in counted]
            yield simple(family, [((name,), counts[name, what]) for counts, name in found if (name, what) in counts])
        reasons = dict.fromkeys(reason for monitor in monitors for reason in monitor.errors)
        errors = [((reason.value,), sum(monitor.errors[reason] for monitor in monitors)) for reason in reasons]
        yield simple(traffic.CONNECTION_ERRORS, errors)

    def process(self) -> Iterator[Metric]:
        yield simple(process.BUILD, [((self._version, self._commit), 1)])
        yield single(process.HANDLERS_IDLE, self.idle)
        yield single(process.NETWORK_IDLE, self.idle)
        io = disk_io()
        yield simple(process.DISK_READ, [] if io is None else [((), io.read)])
        yield simple(process.DISK_WRITTEN, [] if io is None else [((), io.written)])
        yield distributions(process.LOOP_LAG, [((), self._loop_lag.seconds)])
        yield single(process.LOOP_TASKS, trio.lowlevel.current_statistics().tasks_living)


def _title(api_key: int) -> str:
    return ApiKey(api_key).title
