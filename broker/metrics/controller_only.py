"""The metrics of a controller-only node, read when they are scraped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import Metric

from ...base.seams import Clock
from ..controller_role import ControllerRole
from ..listeners.monitor import Monitor
from .client_quotas import client_quota_metrics
from .control import control_metrics
from .logs import log_metrics
from .loop_lag import LoopLag
from .node import NodeMetrics
from .quorum import controller_metrics, metadata_log, quorum_metrics
from .request_metrics import RequestMetrics


class ObservedController(Protocol):
    """The part of a ``ControllerOnlyServer`` that is used here."""

    @property
    def clock(self) -> Clock: ...

    @property
    def monitor(self) -> Monitor: ...

    @property
    def role(self) -> ControllerRole | None: ...


class ControllerCollector:
    """The metrics of one controller."""

    def __init__(self, server: ObservedController, requests: RequestMetrics, loop_lag: LoopLag) -> None:
        self._server = server
        self._node = NodeMetrics(requests, loop_lag)

    def collect(self) -> Iterator[Metric]:
        """The families that a controller has, in the order of ``families``."""
        server, role = self._server, self._server.role
        now_ms = server.clock.now_ms()
        figures = None if role is None else role.figures()
        quorum = None if figures is None else figures.quorum
        yield from self._node.requests()
        yield from self._node.connections([server.monitor])
        yield from client_quota_metrics(None if role is None else role.services)
        yield from control_metrics(None, figures)
        yield from controller_metrics(figures, now_ms)
        yield from quorum_metrics(quorum, self._node.idle)
        yield from log_metrics(metadata_log(quorum))
        yield from self._node.process()
