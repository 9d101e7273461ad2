"""``ottla serve --console``: the console on the broker's own loop, beside the broker.

Where the broker has users with passwords, visitors log in as one of them. Where clients have to say who they are by other means
(certificates, tokens), or are told apart by access rules, and there are no passwords, the console is refused: it could not tell
who looks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ..base.network import Network
from ..base.seams import Clock, Workers
from ..broker.listeners.open_listeners import asks_everywhere
from ..broker.server import BrokerServer, StartError
from ..security.authorizer_settings import AuthorizerSettings
from ..view.connect_view import ConnectView
from ..view.own.broker_view import BrokerView
from ..view.own.requests import RequestsSeen
from ..view.whole_cluster import WholeCluster
from .application import make_application
from .copying import Copies
from .decoding import SchemasError, read_decoding
from .entrance import OpenEntrance
from .login import LogIn
from .own_broker import OwnBroker
from .passwords import Passwords
from .render import Renderer
from .served import ServedConsole
from .visitor_rights import VisitorRights


class ConsoleSide(ServedConsole):
    """The console of one broker, a ``broker.server.Side``."""

    def __init__(self, server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> None:
        """Raises StartError where a console would let in whom the broker does not, or cannot do as its settings say."""
        passwords = _passwords(server, workers)
        self.view = BrokerView(server, clock, workers)
        """What the broker itself knows."""
        settings = server.settings
        try:
            connect = ConnectView(settings.console_connect_urls, workers) if settings.console_connect_urls else None
        except ValueError as error:
            raise StartError(f"console.connect.urls: {error}") from None
        self.source = WholeCluster(server, self.view, connect)
        """What the pages show."""
        writes = settings.console_allow_writes
        renderer = Renderer(workers, clock, self.source, writes=writes)
        kafka = OwnBroker(server) if writes else None
        try:
            decoding = read_decoding(settings.console_avro_schemas, settings.console_schema_registry_url)
        except SchemasError as error:
            raise StartError(f"the console cannot use its settings for decoding: {error}") from None
        self._copies = Copies()
        pages = make_application(self.source, renderer, kafka, decoding, VisitorRights(server), self._copies)
        entrance = OpenEntrance(pages) if passwords is None else LogIn(pages, renderer, server, passwords)
        super().__init__(pages, entrance, renderer, network, clock, workers, writes=writes, asks=passwords is not None)

    @property
    def requests(self) -> RequestsSeen:
        return self.view.requests

    async def run_beside(self, serve: Callable[[], Awaitable[None]]) -> None:
        await self.http.run_beside(serve, self._look)

    async def _look(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.view.run)
            nursery.start_soon(self.source.run)
            nursery.start_soon(self._copies.run)


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
            f"console.listener: {why}, and no listener has users with passwords (PLAIN, SCRAM), which the console "
            "needs for its log-in"
        )
    return None
