"""How a controller reaches the brokers: one ``BrokerChannel`` each, its own broker by calls, another one over the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from .context import LiveBroker


class BrokerChannel(Protocol):
    """One registration of a broker, as its controller talks to it. Requests raise OSError when it cannot be reached."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...

    def close(self) -> None:
        """The registration has ended, or this broker is the controller no more: nothing is sent after."""
        ...


Connect = Callable[[LiveBroker], BrokerChannel]
"""The channel of a registration; it connects when the first request is sent."""
