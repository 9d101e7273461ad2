"""The controller's channel to its own broker: it calls the code that handles the same requests from another broker."""

from __future__ import annotations

from ..controller.zookeeper.replica_requests import apply_stop_replica, apply_update_metadata
from ..handlers.leader_and_isr import apply
from ..handlers.services import Services
from ..wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


class LocalChannel:
    """A ``BrokerChannel`` without a connection. The broker epoch is not compared: the controller knows that of its own broker."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        return await apply(self._broker, request)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        return apply_stop_replica(request, self._broker.replicas, self._broker.metadata)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        return apply_update_metadata(request, self._broker.metadata)

    def close(self) -> None:
        """There is nothing to close."""
