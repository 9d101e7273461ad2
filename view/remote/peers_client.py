"""Requests to the other brokers of the cluster, over the inter-broker listener."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...broker.assembly import Assembly
from ...replication.broker_client import BrokerClient, NoAnswerError, PeerUnavailableError
from ...wire.schema import Message
from ..own.broker_view import ViewedBroker
from .cluster_client import ASKING, Address, BaseBrokerClients

_SECONDS = 10.0


class PeersClient(BaseBrokerClients):
    """The ``BrokerClients`` of a broker: all that are alive, without the one in this process."""

    def __init__(self, broker: ViewedBroker) -> None:
        self._broker = broker

    @property
    def nodes(self) -> Mapping[int, Address]:
        assembly = self._broker.assembly
        if assembly is None or not assembly.is_started:
            return {}
        found = assembly.services.metadata.nodes(assembly.peers.listener)
        own = assembly.services.node_id
        return {broker_id: (node.host, node.port) for broker_id, node in found.items() if broker_id != own}

    async def ask_any(self, request: Message, *, lowest: int = 0, highest: int | None = None) -> Any:
        """The response of the first that responds. Raises OSError, KafkaError (UNSUPPORTED_VERSION)."""
        failure: OSError = PeerUnavailableError("there is no other broker to ask")
        for broker_id in self.nodes:
            try:
                return await self._ask(self._of(broker_id, ASKING), request, highest, lowest)
            except NoAnswerError as error:
                failure = error
        raise failure

    def _of(self, broker_id: int, purpose: str) -> BrokerClient:
        return self._assembly().peers.client(broker_id, f"console-{purpose}", timeout=_SECONDS)

    def _assembly(self) -> Assembly:
        assembly = self._broker.assembly
        if assembly is None or not assembly.is_started:
            raise PeerUnavailableError("the broker has not started yet")
        return assembly
