"""``BrokerChannel``: the interface of the controller to a broker, which is its own or another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ....wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ....wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ....wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ..state.context import LiveBroker


class BrokerChannel(Protocol):
    """The controller's way to one registration of a broker. Requests raise OSError when it cannot be reached."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...

    def close(self) -> None:
        """The registration has ended, or this broker is no longer the controller: nothing is sent after this."""
        ...


Connect = Callable[[LiveBroker], BrokerChannel]
"""The channel of a registration; it connects when the first request is sent."""
