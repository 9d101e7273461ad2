"""``ottla serve --console``: the console on the broker's own loop, beside the broker.

It has no log-in yet. So it is refused where clients have to say who they are, or are told apart by access rules: whoever
reaches the console's address reads what the broker has.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.routing import Route

from ..base.addresses import join_host_port
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..broker.http.server import HttpServer
from ..broker.open_listeners import asks_everywhere, is_on_loopback
from ..broker.server import BrokerServer, StartError
from ..broker.view.requests import RequestsSeen
from ..broker.view.view import BrokerView
from ..security.authorizer_settings import AuthorizerSettings
from .application import make_application
from .decoding import SchemasError, read_decoding
from .entrance import OpenEntrance
from .guard import Guard
from .own_broker import OwnBroker
from .render import Renderer

logger = logging.getLogger(__name__)


class ConsoleSide:
    """The console of one broker, a ``broker.server.Side``. ``view`` is what it shows, ``routes`` where."""

    def __init__(self, server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> None:
        """Raises StartError where a console would let in whom the broker does not, or cannot read its schemas."""
        _check_open(server)
        self.view = BrokerView(server, clock, workers)
        self._workers = workers
        self._writes = server.settings.console_allow_writes
        self._renderer = Renderer(workers, clock, self.view, writes=self._writes)
        kafka = OwnBroker(server) if self._writes else None
        settings = server.settings
        try:
            decoding = read_decoding(settings.console_avro_schemas, settings.console_schema_registry_url)
        except SchemasError as error:
            raise StartError(f"the console cannot decode what it was told to: {error}") from None
        pages = make_application(self.view, self._renderer, kafka, decoding)
        self.routes = [route for route in pages.routes if isinstance(route, Route)]
        self._application = OpenEntrance(pages)
        self._make_http = partial(HttpServer, network=network, clock=clock)
        self._http: HttpServer | None = None

    @property
    def requests(self) -> RequestsSeen:
        return self.view.requests

    @property
    def host(self) -> str:
        return "" if self._http is None else self._http.host

    @property
    def port(self) -> int:
        return 0 if self._http is None else self._http.port

    async def bind(self, host: str, port: int) -> None:
        """Take the address; the pages are made ready, too. Raises OSError."""
        await self._workers.run(self._renderer.load)
        self._http = self._make_http(Guard(self._application, host, takes_forms=self._writes))
        await self._http.bind(host, port)
        if not is_on_loopback(host):
            logger.warning(
                "The console is at %s without a log-in: whoever reaches it reads all records%s",
                join_host_port(host or "*", self.port),
                ", and may delete them" if self._writes else "",
            )

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    async def run_beside(self, serve: Callable[[], Awaitable[None]]) -> None:
        assert self._http is not None
        await self._http.run_beside(serve, self.view.run)


def _check_open(server: BrokerServer) -> None:
    if server.config.settings(AuthorizerSettings).authorizer_class_name:
        raise StartError(
            "console.listener: the console has no log-in yet, so it is not served where there are access rules"
        )
    if asks_everywhere(server.config):
        raise StartError(
            "console.listener: the console has no log-in yet, so it is not served where every listener asks clients who they are"
        )
