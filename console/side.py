"""``ottla serve --console``: the console on the broker's own loop, beside the broker.

Where the broker has users with passwords, visitors log in as one of them. Where clients have to say who they are by other means
(certificates, tokens), or are told apart by access rules, and there are no passwords, the console is refused: it could not tell
who looks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.routing import Route
from starlette.types import ASGIApp

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
from .login import LogIn
from .own_broker import OwnBroker
from .passwords import Passwords
from .render import Renderer
from .rights import Rights

logger = logging.getLogger(__name__)


class ConsoleSide:
    """The console of one broker, a ``broker.server.Side``. ``view`` is what it shows, ``routes`` where."""

    def __init__(self, server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> None:
        """Raises StartError where a console would let in whom the broker does not, or cannot read its schemas."""
        passwords = _passwords(server, workers)
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
        pages = make_application(self.view, self._renderer, kafka, decoding, Rights(server))
        self.routes = [route for route in pages.routes if isinstance(route, Route)]
        self._asks = passwords is not None
        self._application: ASGIApp = OpenEntrance(pages)
        if passwords is not None:
            self._application = LogIn(pages, self._renderer, server, passwords)
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
        self._http = self._make_http(Guard(self._application, host, takes_forms=self._writes or self._asks))
        await self._http.bind(host, port)
        if is_on_loopback(host):
            return
        address = join_host_port(host or "*", self.port)
        if self._asks:
            logger.warning("The console is at %s without TLS: passwords and records go there as they are", address)
        else:
            may_delete = ", and may delete them" if self._writes else ""
            logger.warning(
                "The console is at %s without a log-in: whoever reaches it reads all records%s", address, may_delete
            )

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    async def run_beside(self, serve: Callable[[], Awaitable[None]]) -> None:
        assert self._http is not None
        await self._http.run_beside(serve, self.view.run)


def _passwords(server: BrokerServer, workers: Workers) -> Passwords | None:
    """By which visitors log in; None where everybody may look. Raises StartError where neither can be."""
    passwords = Passwords(server.config, workers)
    if passwords.are_there:
        return passwords
    why = ""
    if server.config.settings(AuthorizerSettings).authorizer_class_name:
        why = "there are access rules"
    elif asks_everywhere(server.config):
        why = "every listener asks clients who they are"
    if why:
        raise StartError(
            f"console.listener: {why}, and no listener has users with passwords (PLAIN, SCRAM), by whom the console tells "
            "who looks"
        )
    return None
