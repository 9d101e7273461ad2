"""Requests that tools up to Kafka 2.4 write into ZooKeeper for the controller, as Kafka 3.9 still executes them.

``/admin/reassign_partitions`` has replicas by partition. Its moves begin, in place of what is under way, and each is taken
out of the node when it has ended, or was refused or replaced; then the node is removed (KafkaController
``processZkPartitionReassignment``, ``maybeRemoveFromZkReassignment``). Invalid replicas are refused as those of a request
are, which Kafka does for requests only. ``/admin/preferred_replica_election`` names partitions to be led by their preferred
replicas, and is removed once that was tried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from ....base.partitions import TopicPartition
from ....metadata.rules.election import ElectionType
from ..nodes import znodes
from ..nodes.decoding import decoded
from ..state.context import ControllerContext
from ..state.partition_states import fenced_multi
from ..store.cluster_store import ClusterStore, Delete, NoNodeError, Operation, Set, Watch
from .reassignment import Reassignments
from .replica_elections import ReplicaElections

logger = logging.getLogger(__name__)

T = TypeVar("T")


class AdminNodes:
    """For the controller's term; its methods are called one at a time. Each raises StoreError."""

    def __init__(
        self,
        store: ClusterStore,
        context: ControllerContext,
        reassignments: Reassignments,
        elections: ReplicaElections,
        on_reassignments: Watch,
        on_elections: Watch,
    ) -> None:
        self._store = store
        self._context = context
        self._reassignments = reassignments
        self._elections = elections
        self._on_reassignments = on_reassignments
        self._on_elections = on_elections
        self._asked: dict[TopicPartition, tuple[int, ...]] | None = None
        """The moves in the node, as far as they have not ended; None without the node."""

    async def follow_reassignments(self) -> None:
        """Begin with the moves that are asked for there."""
        path = znodes.REASSIGN_PARTITIONS
        found = await self._read(path, znodes.decode_reassignments, self._on_reassignments)
        self._asked = None
        if found is None:
            return
        self._asked = {TopicPartition(topic, number): replicas for (topic, number), replicas in found.items()}
        outcome = await self._reassignments.alter(self._asked)
        for key, error in outcome.items():
            if error is not None:
                logger.warning("%s is not moved as %s asks: %s", key, path, error.message)
        await self.forget_reassignments()

    async def forget_reassignments(self) -> None:
        """Take out of the node what is not under way any more."""
        if self._asked is None:
            return
        path = znodes.REASSIGN_PARTITIONS
        left = {key: replicas for key, replicas in self._asked.items() if self._is_under_way(key, replicas)}
        if not left:
            self._asked = None
            await self._write([Delete(path)])
            # The watch is set again, as the deletion has used it up: a tool may write the node anew.
            await self._store.exists(path, self._on_reassignments)
        elif left != self._asked:
            self._asked = left
            await self._write(
                [Set(path, znodes.encode_reassignments((*key, replicas) for key, replicas in left.items()))]
            )

    def _is_under_way(self, key: TopicPartition, replicas: Sequence[int]) -> bool:
        partition = self._context.find(key)
        return partition is not None and partition.assignment.is_moving and partition.assignment.target == replicas

    async def follow_elections(self) -> None:
        """Let preferred replicas lead the partitions that are named there, where they can."""
        path = znodes.PREFERRED_ELECTION
        found = await self._read(path, znodes.decode_elections, self._on_elections)
        if found is not None:
            await self._elections.elect(ElectionType.PREFERRED, [TopicPartition(*key) for key in found])
            await self._write([Delete(path)])
            await self._store.exists(path, self._on_elections)

    async def _read(self, path: str, decode: Callable[[bytes], T], watch: Watch) -> T | None:
        """What a node says, None if there is none; ``watch`` hears when there is one, or another one."""
        if await self._store.exists(path, watch) is None:
            return None
        (node,) = await self._store.get_many([path])
        return None if node is None else decoded(path, node, decode)

    async def _write(self, operations: Sequence[Operation]) -> None:
        try:
            await fenced_multi(self._store, self._context, operations)
        except NoNodeError:  # an administrator has removed it
            pass
