"""The listeners of one broker while it runs: bound at the start, closed at the end."""

from __future__ import annotations

import dataclasses
import errno

from ..base.addresses import join_host_port
from ..base.config import Config
from ..base.network import Network
from .listener_plan import ListenerPlan, PeerListener
from .listener_security import ListenerSecurity, ServedListener
from .listeners import Endpoint, advertised_endpoints
from .settings import BrokerSettings


class CannotListenError(Exception):
    """An address cannot be bound; ``str()`` is one line for people."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        super().__init__(f"cannot listen on {join_host_port(host, port)}: {why}")


class BoundListeners:
    """Those of one broker, in the order in which they are set. ``advertised``: the addresses that clients are told."""

    def __init__(self, config: Config, network: Network) -> None:
        self._config = config
        self._network = network
        self.served: list[ServedListener] = []
        self.advertised: list[Endpoint] = []
        self.inter_broker = PeerListener("")
        self.control_plane = PeerListener("")

    async def bind(self, plan: ListenerPlan) -> None:
        """Raises CannotListenError, and has then bound nothing."""
        self.inter_broker, self.control_plane = plan.inter_broker, plan.control_plane
        try:
            for endpoint, security in zip(plan.endpoints, plan.securities, strict=True):
                self.served.append(await self._bind(endpoint, security))
        except BaseException:
            self.close()
            raise
        self.advertised = advertised_endpoints([served.endpoint for served in self.served], plan.named, "127.0.0.1")

    async def _bind(self, endpoint: Endpoint, security: ListenerSecurity) -> ServedListener:
        backlog = self._config.settings(BrokerSettings).socket_listen_backlog_size
        try:
            listener = await self._network.listen(endpoint.host, endpoint.port, backlog)
        except OSError as error:
            raise CannotListenError(endpoint.host, endpoint.port, error) from None
        address = dataclasses.replace(endpoint, port=listener.port)
        return ServedListener(address, listener, security, endpoint.name == self.inter_broker.name)

    def names(self) -> set[str]:
        return {served.name for served in self.served}

    def close(self) -> None:
        """Accept nothing any more; safe to call twice."""
        for served in self.served:
            served.listener.close()
