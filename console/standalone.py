"""``ottla console``: the console in a process of its own, as a client of a cluster.

Whoever reaches its address sees, and may change, what the user may that it logs in as: it has no log-in of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ..base.addresses import join_host_port
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..security.client_security import ClientSecurity
from ..view.connect_view import ConnectView
from ..view.remote.cluster_client import Address, ClusterClient
from ..view.remote.cluster_view import ClusterView
from ..view.remote.connection_security import entry
from .application import make_application
from .asked_cluster import RemoteKafkaRequests
from .copying import Copies
from .decoding import Decoding
from .entrance import OpenEntrance
from .render import Renderer
from .served import ServedConsole


class ConsoleAlone(ServedConsole):
    """A console of a cluster elsewhere, in a process of its own."""

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
        connect_urls: Sequence[str] = (),
    ) -> None:
        """``writes``: whether anything can be changed; ``decoding``: what records are read with; ``connect_urls``: workers of
        Kafka Connect. Raises SettingError, ValueError for a wrong URL.
        """
        connect = ConnectView(connect_urls, workers) if connect_urls else None
        client = ClusterClient(network, bootstrap, entry(security, workers))
        self.view = ClusterView(
            client, ",".join(join_host_port(*address) for address in bootstrap), clock, workers, connect
        )
        """What the pages show."""
        renderer = Renderer(workers, clock, self.view, writes=writes)
        kafka = RemoteKafkaRequests(client, self.view) if writes else None
        self._copies = Copies()
        pages = make_application(self.view, renderer, kafka, decoding, copies=self._copies)
        super().__init__(pages, OpenEntrance(pages), renderer, network, clock, workers, writes=writes)

    async def run(self) -> None:
        """Serve until cancelled; the cluster need not be there."""
        await self.http.run_beside(trio.sleep_forever, self._look)

    async def _look(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.view.run)
            nursery.start_soon(self._copies.run)
