"""``ServedConsole``: the console bound to an address, beside its broker or in a process of its own."""

from __future__ import annotations

import logging
from functools import partial

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from ..base.addresses import join_host_port
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..broker.http.server import HttpServer
from ..broker.listeners.open_listeners import is_on_loopback
from .guard import Guard
from .render import Renderer

logger = logging.getLogger(__name__)


class ServedConsole:
    """A console and its HTTP server. ``host`` and ``port`` are those that were bound."""

    def __init__(
        self,
        pages: Starlette,
        entrance: ASGIApp,
        renderer: Renderer,
        network: Network,
        clock: Clock,
        workers: Workers,
        *,
        writes: bool,
        asks: bool = False,
    ) -> None:
        """``entrance`` stands before the pages. ``writes``: whether anything can be changed; ``asks``: whether they log in."""
        self.routes = [route for route in pages.routes if isinstance(route, Route)]
        """The addresses of its pages."""
        self._entrance = entrance
        self._renderer = renderer
        self._workers = workers
        self._writes = writes
        self._asks = asks
        self._make_http = partial(HttpServer, network=network, clock=clock)
        self._http: HttpServer | None = None

    @property
    def host(self) -> str:
        return "" if self._http is None else self._http.host

    @property
    def port(self) -> int:
        return 0 if self._http is None else self._http.port

    @property
    def http(self) -> HttpServer:
        """Once it is bound."""
        assert self._http is not None
        return self._http

    async def bind(self, host: str, port: int) -> None:
        """Bind the address, and load the pages. Raises OSError."""
        await self._workers.run(self._renderer.load)
        self._http = self._make_http(Guard(self._entrance, host, takes_forms=self._writes or self._asks))
        await self._http.bind(host, port)
        if is_on_loopback(host):
            return
        address = join_host_port(host or "*", self.port)
        if self._asks:
            logger.warning("The console is at %s without TLS: passwords and records go there as they are", address)
        else:
            may_delete = ", and may delete them" if self._writes else ""
            logger.warning(
                "The console is at %s without a log-in: everyone who reaches it can read all records%s",
                address,
                may_delete,
            )

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
