"""What a controller tells a broker in a test: its requests, applied at once, without a connection or a registration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast
from weakref import WeakKeyDictionary

from ottla.controller.zookeeper.replica_requests import ReplicaRequests
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.replica_manager import ReplicaManager
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ottla.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

_told: WeakKeyDictionary[MetadataCache, ReplicaRequests] = WeakKeyDictionary()


async def _refresh_nothing(topics: Iterable[str]) -> None:
    """What is set on topics is not kept anywhere here."""


def requests_to(metadata: MetadataCache, replicas: ReplicaManager | None = None) -> ReplicaRequests:
    """The broker with this metadata, as a controller reaches it."""
    if metadata not in _told or (replicas is not None and _told[metadata]._replicas is not replicas):
        _told[metadata] = ReplicaRequests(cast(ReplicaManager, replicas), metadata, lambda: -1, _refresh_nothing)
    return _told[metadata]


def _without_waiting(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("there is nothing to wait for")


def apply_leader_and_isr(
    request: LeaderAndIsrRequest, replicas: ReplicaManager, metadata: MetadataCache
) -> LeaderAndIsrResponse:
    answer: LeaderAndIsrResponse = _without_waiting(requests_to(metadata, replicas).leader_and_isr(request))
    return answer


def apply_stop_replica(
    request: StopReplicaRequest, replicas: ReplicaManager, metadata: MetadataCache
) -> StopReplicaResponse:
    answer: StopReplicaResponse = _without_waiting(requests_to(metadata, replicas).stop_replica(request))
    return answer


def apply_update_metadata(request: UpdateMetadataRequest, metadata: MetadataCache) -> UpdateMetadataResponse:
    answer: UpdateMetadataResponse = _without_waiting(requests_to(metadata).update_metadata(request))
    return answer
