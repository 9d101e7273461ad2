"""The server of metrics and health: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for Kubernetes and the like.

It runs on the node's own event loop, from before the node starts until it has stopped. So a response of ``/healthz`` means
that the loop runs; ``/readyz`` is 503 until clients are served, and again as soon as a stop has begun.

A scrape reads the metrics on the loop, one family at a time, and formats them in a worker thread.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Protocol

import trio
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ...base.network import Network
from ...base.seams import Clock, Workers
from ..http.server import HttpServer
from .loop_lag import LoopLag
from .machine import MachineMetrics
from .request_metrics import RequestMetrics


class ObservedNode(Protocol):
    """The part of a server that is used here."""

    def readiness(self) -> Mapping[str, bool]: ...


class Collector(Protocol):
    """Reads the metrics of a node."""

    def collect(self) -> Iterator[Metric]: ...


class MetricsServer:
    """Serves the metrics of ``node``. ``requests`` is the observer to give to its connections."""

    def __init__(
        self,
        node: ObservedNode,
        make_collector: Callable[[RequestMetrics, LoopLag], Collector],
        network: Network,
        clock: Clock,
        workers: Workers,
        machine: MachineMetrics | None = None,
    ) -> None:
        """``machine`` knows the other brokers of the machine whose metrics are served here, too."""
        self._node = node
        self._machine = machine
        self._workers = workers
        self.requests = RequestMetrics(clock.elapsed)
        self._loop_lag = LoopLag()
        self._collector = make_collector(self.requests, self._loop_lag)
        routes = [
            Route("/metrics", self._metrics),
            Route("/healthz", self._health),
            Route("/readyz", self._readiness),
        ]
        self._http = HttpServer(Starlette(routes=routes), network, clock)

    @property
    def host(self) -> str:
        return self._http.host

    @property
    def port(self) -> int:
        return self._http.port

    async def bind(self, host: str, port: int) -> None:
        """Bind the address. Raises OSError."""
        await self._http.bind(host, port)

    def close(self) -> None:
        """Close the listener; safe to call twice."""
        self._http.close()

    async def run_beside(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Serve HTTP until ``serve`` ends; raises what it raises."""
        await self._http.run_beside(serve, self._loop_lag.run)

    async def _metrics(self, request: Request) -> Response:
        snapshot = Snapshot()
        for collector in (self._collector, PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
            for family in collector.collect():
                snapshot.families.append(family)
                await trio.lowlevel.checkpoint()
        if self._machine is not None:
            snapshot.families = await self._machine.joined(snapshot.families)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = await self._workers.run(functools.partial(encode, snapshot))
        return Response(body, media_type=None, headers={"content-type": content_type})

    async def _health(self, _: Request) -> Response:
        return _json(200, {"status": "ok", "loop_lag_ms": round(self._loop_lag.latest * 1000, 3)})

    async def _readiness(self, _: Request) -> Response:
        checks = self._node.readiness()
        is_ready = all(checks.values())
        return _json(200 if is_ready else 503, {"status": "ready" if is_ready else "not ready", "checks": checks})


class Snapshot:
    """What a scrape has read, in the form of a registry, which the encoders of prometheus-client expect."""

    def __init__(self) -> None:
        self.families: list[Metric] = []

    def collect(self) -> Iterable[Metric]:
        return self.families


def _json(status: int, content: dict[str, object]) -> Response:
    return JSONResponse(content, status_code=status)
