"""The controller's channel to its own broker: it calls the code that handles the same requests from another broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ...replication.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ...wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ...wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from .replica_requests import apply_leader_and_isr, apply_stop_replica, apply_update_metadata, new_topics


class LocalChannel:
    """A ``BrokerChannel`` without a connection. The broker epoch is not compared: the controller knows that of its own broker."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        refresh_topic_configs: Callable[[Iterable[str]], Awaitable[None]],
    ) -> None:
        self._replicas = replicas
        self._metadata = metadata
        self._refresh_topic_configs = refresh_topic_configs

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        await self._refresh_topic_configs(new_topics(request))
        return apply_leader_and_isr(request, self._replicas, self._metadata)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        return apply_stop_replica(request, self._replicas, self._metadata)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        return apply_update_metadata(request, self._metadata)

    def close(self) -> None:
        """There is nothing to close."""
