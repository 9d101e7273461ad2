"""The metrics of a server in the loop of a test, as a scrape reads them."""

from __future__ import annotations

import time

from prometheus_client.core import Metric

from ottla.broker.controller_only import ControllerOnlyServer
from ottla.broker.metrics.collector import BrokerCollector
from ottla.broker.metrics.controller_only import ControllerCollector
from ottla.broker.metrics.loop_lag import LoopLag
from ottla.broker.metrics.request_metrics import RequestMetrics
from ottla.broker.server import BrokerServer


def collected(server: BrokerServer | ControllerOnlyServer) -> list[Metric]:
    """Every family that there is of it."""
    requests, loop_lag = RequestMetrics(time.perf_counter), LoopLag()
    if isinstance(server, BrokerServer):
        return list(BrokerCollector(server, requests, loop_lag).collect())
    return list(ControllerCollector(server, requests, loop_lag).collect())
