"""``ottla console``: the console in a process of its own, of a cluster that it asks as a client does.

Whoever reaches its address sees, and may change, what the user may that it logs in as: it has no log-in of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio

from ..base.addresses import join_host_port
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..broker.http.server import HttpServer
from ..broker.open_listeners import is_on_loopback
from ..security.client_security import ClientSecurity
from .application import make_application
from .decoding import Decoding
from .elsewhere.asked_cluster import AskedCluster
from .elsewhere.cluster_client import Address, ClusterClient
from .elsewhere.entry import entry
from .elsewhere.view import ClusterView
from .entrance import OpenEntrance
from .guard import Guard
from .render import Renderer

logger = logging.getLogger(__name__)


class ConsoleAlone:
    """``view`` is what it shows; ``host`` and ``port`` are what was bound."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        security: ClientSecurity,
        network: Network,
        clock: Clock,
        workers: Workers,
        *,
        writes: bool = False,
        decoding: Decoding | None = None,
    ) -> None:
        """``writes``: whether anything can be changed; ``decoding``: what records are read with. Raises SettingError."""
        client = ClusterClient(network, bootstrap, entry(security, workers))
        self.view = ClusterView(client, ",".join(join_host_port(*address) for address in bootstrap), clock, workers)
        self._workers = workers
        self._network = network
        self._clock = clock
        self._writes = writes
        self._renderer = Renderer(workers, clock, self.view, writes=writes)
        kafka = AskedCluster(client, self.view) if writes else None
        self._application = OpenEntrance(make_application(self.view, self._renderer, kafka, decoding))
        self._http: HttpServer | None = None

    @property
    def host(self) -> str:
        return "" if self._http is None else self._http.host

    @property
    def port(self) -> int:
        return 0 if self._http is None else self._http.port

    async def bind(self, host: str, port: int) -> None:
        """Take the address; the pages are made ready, too. Raises OSError."""
        await self._workers.run(self._renderer.load)
        self._http = HttpServer(Guard(self._application, host, takes_forms=self._writes), self._network, self._clock)
        await self._http.bind(host, port)
        if not is_on_loopback(host):
            logger.warning(
                "The console is at %s without a log-in: whoever reaches it reads all records%s",
                join_host_port(host or "*", self.port),
                ", and may delete them" if self._writes else "",
            )

    async def run(self) -> None:
        """Serve until cancelled; the cluster need not be there."""
        assert self._http is not None
        await self._http.run_beside(trio.sleep_forever, self.view.run)
