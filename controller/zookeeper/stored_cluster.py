"""What the store says of a cluster now: its controller, and the assignment and the state of each partition of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...metadata.types import LeaderState, ReplicaAssignment
from . import znodes
from .store.cluster_store import ClusterStore, NoNodeError


class StoredPartition(NamedTuple):
    """``state`` is None as long as the controller has elected no leader."""

    assignment: ReplicaAssignment
    state: LeaderState | None


class StoredCluster:
    """Reads it. Every method raises StoreError."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store

    async def controller_id(self) -> int | None:
        """The broker that is the controller."""
        try:
            return znodes.decode_controller((await self._store.get(znodes.CONTROLLER)).data)
        except NoNodeError:
            return None

    async def topics(self) -> Sequence[str]:
        """The names of all topics."""
        return await self._store.children(znodes.TOPICS)

    async def has_topic(self, topic: str) -> bool:
        """Whether there is a topic of that name, or what a deletion has left of it."""
        return await self._store.exists(znodes.topic_path(topic)) is not None

    async def partitions(self, topic: str) -> dict[int, StoredPartition]:
        """The partitions of a topic by number; none, if there is no such topic."""
        try:
            assigned = znodes.decode_topic((await self._store.get(znodes.topic_path(topic))).data).partitions
        except NoNodeError:
            return {}
        nodes = await self._store.get_many([znodes.state_path(topic, number) for number in assigned])
        return {
            number: StoredPartition(assignment, None if node is None else znodes.decode_state(node.data))
            for (number, assignment), node in zip(assigned.items(), nodes, strict=True)
        }
