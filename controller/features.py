"""The features that a cluster has finalized: ``/feature``, as the controller sets it up and every broker follows it (KIP-584).

In ZooKeeper mode there are none, of Kafka 3.9 as of Ottla: no broker supports any, the node says so, and a broker that finds
one there after all does not start, or stops (KafkaController ``enableFeatureVersioning``, FinalizedFeatureChangeListener).
Clients are told the node's version, as the epoch of what is finalized.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ..base.errors import ErrorCode, KafkaError
from . import znodes
from .context import ControllerContext
from .partition_states import fenced_multi
from .store import (
    BadVersionError,
    ClusterStore,
    Create,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    Set,
    StoreFailedError,
    WatchEvent,
)

logger = logging.getLogger(__name__)

UNKNOWN_EPOCH = -1


async def set_up_features(store: ClusterStore, context: ControllerContext) -> None:
    """Have the node say, in its present layout, that features are in use. Raises StoreError, ControllerMovedError."""
    while True:
        (node,) = await store.get_many([znodes.FEATURE])
        try:
            if node is None:
                await fenced_multi(store, context, [Create(znodes.FEATURE, znodes.encode_features({}))])
                return
            try:
                wanted = znodes.encode_features(znodes.decode_features(node.data))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                logger.error("%s is left as it is, for it is not understood: %r", znodes.FEATURE, error)
                return
            if wanted != node.data:
                await fenced_multi(store, context, [Set(znodes.FEATURE, wanted, node.stat.version)])
            return
        except (NodeExistsError, NoNodeError, BadVersionError):
            continue


class FinalizedFeatures:
    """``start`` once, then ``run`` in a task of its own. ``on_unsupported`` is told why the broker cannot go on."""

    def __init__(self, store: ClusterStore, on_unsupported: Callable[[str], None]) -> None:
        self._store = store
        self._on_unsupported = on_unsupported
        self._changed = trio.Event()
        self.epoch = UNKNOWN_EPOCH
        """The version of ``/feature``, while it is there."""

    async def start(self) -> None:
        """Raises StoreError; KafkaError UNSUPPORTED_VERSION when something is finalized that this broker does not support."""
        while True:
            if await self._store.exists(znodes.FEATURE, self._on_change) is None:
                self.epoch = UNKNOWN_EPOCH
                return
            try:
                node = await self._store.get(znodes.FEATURE, self._on_change)
            except NoNodeError:
                continue
            break
        try:
            finalized = znodes.decode_features(node.data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{znodes.FEATURE} is not understood: {error!r}") from None
        if finalized:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster has finalized features that this broker does not support: {', '.join(sorted(finalized))}",
            )
        self.epoch = node.stat.version

    def look_again(self) -> None:
        """Watches may have been lost."""
        self._changed.set()

    def _on_change(self, event: WatchEvent) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Follow the node, for as long as there is a store to follow."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            try:
                await self.start()
            except KafkaError as error:
                self._on_unsupported(error.message or error.code.name)
                return
            except SessionExpiredError:
                continue  # in the next session it is looked at again
            except StoreFailedError:
                return
