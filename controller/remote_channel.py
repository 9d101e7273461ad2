"""The controller's way to another broker: LeaderAndIsr, UpdateMetadata and StopReplica over one connection.

The versions are those of Kafka 3.9's inter.broker.protocol.version; the broker is not asked for its own (ApiVersions), as
Kafka's controller does not ask either (ControllerChannelManager: ``discoverBrokerVersions`` is false). Versions, and what
decides them, are in ``ControllerChannelManager`` and ``AbstractControllerBrokerRequestBatch``.
"""

from __future__ import annotations

from typing import Any

from ..base.network import Network
from ..replication.broker_client import BrokerClient, PeerUnavailableError
from ..wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ..wire.schema import Message
from .znodes import BrokerRegistration

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4


class RemoteChannel:
    """A ``BrokerChannel`` to the listener named ``listener`` of a registered broker.

    ``client_id`` is the name it gives itself; ``timeout``: seconds for each request (controller.socket.timeout.ms).
    """

    def __init__(
        self, network: Network, registration: BrokerRegistration, listener: str, client_id: str, timeout: float
    ) -> None:
        self._broker = f"broker {registration.broker_id}"
        self._listener = listener
        endpoint = registration.endpoint(listener)
        self._client = (
            None
            if endpoint is None
            else BrokerClient(network, endpoint.host, endpoint.port, client_id, timeout=timeout, max_in_flight=1)
        )

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Raises OSError."""
        response: LeaderAndIsrResponse = await self._ask(request, LEADER_AND_ISR_VERSION)
        return response

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Raises OSError."""
        response: StopReplicaResponse = await self._ask(request, STOP_REPLICA_VERSION)
        return response

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Raises OSError."""
        response: UpdateMetadataResponse = await self._ask(request, UPDATE_METADATA_VERSION)
        return response

    async def _ask(self, request: Message, version: int) -> Any:
        if self._client is None:
            raise PeerUnavailableError(f"{self._broker} has no listener {self._listener}")
        return await self._client.send(request, version)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
