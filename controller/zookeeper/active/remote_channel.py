"""The controller's channel to another broker: LeaderAndIsr, UpdateMetadata and StopReplica over one connection.

The versions are those of inter.broker.protocol.version; like Kafka's, the controller does not ask the broker for its own
(ControllerChannelManager: ``discoverBrokerVersions`` is false).
"""

from __future__ import annotations

from typing import Any

from ....base.network import Network
from ....metadata.types import BrokerRegistration
from ....replication.broker_client import BrokerClient, PeerUnavailableError, Secure
from ....replication.inter_broker_protocol import InterBrokerProtocol
from ....wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ....wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ....wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ....wire.schema import Message, replace
from .request_versions import request_versions

_RECOVERY_STATE_FROM = 6
"""The version of LeaderAndIsr that tells of leaders which were not in sync (KIP-704)."""


class RemoteChannel:
    """A ``BrokerChannel`` to the listener named ``listener`` of a registered broker.

    ``client_id`` is the name it gives itself; ``timeout``: seconds for each request (controller.socket.timeout.ms);
    ``secure``: what the connection goes through first, None where the listener is PLAINTEXT.
    """

    def __init__(
        self,
        network: Network,
        registration: BrokerRegistration,
        listener: str,
        client_id: str,
        timeout: float,
        protocol: InterBrokerProtocol,
        secure: Secure | None = None,
    ) -> None:
        self._versions = request_versions(protocol)
        self._broker = f"broker {registration.broker_id}"
        self._listener = listener
        endpoint = registration.endpoint(listener)
        self._client = (
            None
            if endpoint is None
            else BrokerClient(
                network,
                endpoint.host,
                endpoint.port,
                client_id,
                timeout=timeout,
                max_in_flight=1,
                secure=secure,
            )
        )

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Raises OSError."""
        version = self._versions.leader_and_isr
        if version < _RECOVERY_STATE_FROM:
            request = _without_recovery_states(request)
        response: LeaderAndIsrResponse = await self._ask(request, version)
        return response

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Raises OSError."""
        response: StopReplicaResponse = await self._ask(request, self._versions.stop_replica)
        return response

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Raises OSError."""
        response: UpdateMetadataResponse = await self._ask(request, self._versions.update_metadata)
        return response

    async def _ask(self, request: Message, version: int) -> Any:
        if self._client is None:
            raise PeerUnavailableError(f"{self._broker} has no listener {self._listener}")
        return await self._client.send(request, version)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _without_recovery_states(request: LeaderAndIsrRequest) -> LeaderAndIsrRequest:
    topics = [
        replace(topic, partition_states=[replace(state, leader_recovery_state=0) for state in topic.partition_states])
        for topic in request.topic_states
    ]
    return replace(request, topic_states=topics)
