"""Finalized features: the znode ``/feature``, created by the controller and followed by every broker (KIP-584).

In ZooKeeper mode there are none, neither in Kafka 3.9 nor in Ottla: no broker supports any, the node says so, and a broker that
finds one there does not start, or stops (KafkaController ``enableFeatureVersioning``, FinalizedFeatureChangeListener).
Clients are told the node's version, as the epoch of what is finalized.
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.errors import ErrorCode, KafkaError
from ...metadata.delta import ClusterDelta
from ...metadata.types import UNKNOWN_EPOCH, FinalizedFeatures
from ...replication.metadata_cache import MetadataCache
from .nodes import znodes
from .nodes.decoding import NOT_UNDERSTOOD, decoded
from .nodes.watch_loop import WatchLoop
from .state.context import ControllerContext
from .state.partition_states import fenced_multi
from .store.cluster_store import (
    BadVersionError,
    ClusterStore,
    Create,
    NodeExistsError,
    NoNodeError,
    Set,
    StoreFailedError,
    ZnodeWithStat,
)


async def set_up_features(store: ClusterStore, context: ControllerContext) -> None:
    """Make the node, or bring it to its present layout. Raises StoreError, ControllerMovedError."""
    while True:
        (node,) = await store.get_many([znodes.FEATURE])
        try:
            if node is None:
                await fenced_multi(store, context, [Create(znodes.FEATURE, znodes.encode_features({}))])
                return
            finalized = decoded(znodes.FEATURE, node, znodes.decode_features)
            if finalized is not None and (wanted := znodes.encode_features(finalized)) != node.data:
                await fenced_multi(store, context, [Set(znodes.FEATURE, wanted, node.stat.version)])
            return
        except (NodeExistsError, NoNodeError, BadVersionError):
            continue


class FeatureStore:
    """``start`` once, then ``run`` in a task of its own. What is read goes to ``metadata``; ``on_unsupported`` is told why the
    broker cannot go on.
    """

    def __init__(self, store: ClusterStore, metadata: MetadataCache, on_unsupported: Callable[[str], None]) -> None:
        self._store = store
        self._metadata = metadata
        self._on_unsupported = on_unsupported
        self._watches = WatchLoop("finalized features")

    async def start(self) -> None:
        """Raises StoreError; KafkaError UNSUPPORTED_VERSION when something is finalized that this broker does not support."""
        node = await self._read()
        if node is None:
            self._metadata.publish(ClusterDelta(features=FinalizedFeatures(UNKNOWN_EPOCH)))
            return
        try:
            finalized = znodes.decode_features(node.data)
        except NOT_UNDERSTOOD as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{znodes.FEATURE} is not understood: {error!r}") from None
        if finalized:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has finalized features that this broker does not support: {', '.join(sorted(finalized))}",
            )
        self._metadata.publish(ClusterDelta(features=FinalizedFeatures(node.stat.version)))

    async def _read(self) -> ZnodeWithStat | None:
        """The node, watched in either case; None where there is none."""
        while True:
            (node,) = await self._store.get_many([znodes.FEATURE], self._watches.watch)
            if node is not None or await self._store.exists(znodes.FEATURE, self._watches.watch) is None:
                return node

    def resync(self) -> None:
        """Watches may have been lost."""
        self._watches.resync()

    async def run(self) -> None:
        """Follow the node, for as long as there is a store to follow."""
        try:
            await self._watches.run(self.start, self.start)
        except KafkaError as error:
            self._on_unsupported(error.message or error.code.name)
        except StoreFailedError:
            pass
