"""Clients for requests to the other brokers, at their inter-broker listeners as the metadata cache gives them.

Each purpose (a fetcher, transaction markers, the controller) has a connection of its own to each broker, so that none waits
behind the requests of another. When a broker has left the cluster, or is back at another address, its clients are closed, so
that no request goes on waiting for an answer that does not come.
"""

from __future__ import annotations

from ..base.network import Network
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from .broker_client import BrokerClient, PeerUnavailableError, Secure
from .metadata_cache import MetadataCache


class Peers:
    """Clients of the brokers that are alive, as the metadata has them.

    ``listener``: the name of the one at which they are reached; ``secure``: what their connections go through first, None where
    that is PLAINTEXT.
    """

    def __init__(
        self,
        network: Network,
        broker_id: int,
        listener: str,
        metadata: MetadataCache,
        secure: Secure | None = None,
    ) -> None:
        self._network = network
        self._broker_id = broker_id
        self.listener = listener
        self._metadata = metadata
        self._secure = secure
        self._clients: dict[tuple[int, str], tuple[tuple[str, int], BrokerClient]] = {}
        self._is_closed = False
        metadata.publishers.append(self._close_those_gone)

    def client(
        self, broker_id: int, purpose: str, *, timeout: float = 30.0, max_in_flight: int = 5, software: str = ""
    ) -> BrokerClient:
        """The way to a broker; ``timeout`` (seconds for a request), ``max_in_flight`` and ``software`` are those of the purpose.

        Ask again for each request: the address may have changed. Raises PeerUnavailableError for a broker that is not known
        to be alive, or has no such listener.
        """
        key = broker_id, purpose
        known = self._clients.get(key)
        if known is not None:
            return known[1]
        address = self._address(broker_id)
        if address is None or self._is_closed:
            raise PeerUnavailableError(f"broker {broker_id} is not known to be alive")
        name = f"broker-{self._broker_id}-{purpose}"
        client = BrokerClient(
            self._network,
            *address,
            name,
            timeout=timeout,
            max_in_flight=max_in_flight,
            secure=self._secure,
            software=software,
        )
        self._clients[key] = address, client
        return client

    def _address(self, broker_id: int) -> tuple[str, int] | None:
        node = self._metadata.nodes(self.listener).get(broker_id)
        return None if node is None else (node.host, node.port)

    def _close_those_gone(self, delta: ClusterDelta, image: ClusterImage) -> None:
        if delta.brokers is None:
            return
        for key, (address, client) in list(self._clients.items()):
            if self._address(key[0]) != address:
                del self._clients[key]
                client.close()

    def close(self) -> None:
        """End every connection, and open no more."""
        self._is_closed = True
        for _, client in self._clients.values():
            client.close()
        self._clients.clear()
