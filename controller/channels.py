"""How a controller reaches the brokers: one ``BrokerChannel`` each, the local one a call, a remote one a socket."""

from __future__ import annotations

from typing import Protocol

from ..wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


class BrokerChannel(Protocol):
    """One broker, as its controller talks to it. Each method raises OSError when the broker cannot be reached."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...
