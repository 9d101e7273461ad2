"""``/ottla_known_brokers``: the broker registrations that earlier controllers have handled.

A controller that sees a broker registered again takes its replicas out of the in-sync ones, as far as there are others (see
``leadership``). If it dies before it has looked, the next one has to find out which brokers were away. The states of partitions
do not tell: they may have been written after the registration and before the look, because a leader asked for other in-sync
replicas, or another broker died. So each controller stores here which registrations it has handled, after it has written what
follows from them, and fenced by its epoch: a broker with another registration than the stored one was away.

Kafka has no such node, and its controllers ignore a restart that none of them has seen. For a state that one of them has
written, the order of transactions decides: a broker that had registered before it had not been away then.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..nodes import znodes
from ..nodes.decoding import decoded
from ..nodes.znodes import KnownRegistrations
from ..state.context import ControllerContext, LiveBroker, PartitionState
from ..state.partition_states import fenced_multi
from ..store.cluster_store import ClusterStore, Create, Set, Stat


class KnownBrokers:
    """The node, as one controller finds and keeps it: ``load`` once, then the rest. Async methods raise StoreError."""

    def __init__(self, store: ClusterStore, context: ControllerContext) -> None:
        self._store = store
        self._context = context
        self._known: KnownRegistrations | None = None
        self._version: int | None = None
        """That of the node; None where there is none."""

    async def load(self) -> None:
        """Read which registrations the controllers before this one have handled."""
        (node,) = await self._store.get_many([znodes.KNOWN_BROKERS])
        if node is not None:
            self._known = decoded(znodes.KNOWN_BROKERS, node, znodes.decode_known_brokers)
            self._version = node.stat.version

    def stayed(self, partition: PartitionState) -> set[int]:
        """The brokers that are alive and have not been away unseen, as far as the partition's replicas are concerned."""
        known, brokers = self._known, self._context.brokers
        if known is not None and _covers(known, partition):
            return {b for b, broker in brokers.items() if known.epochs.get(b) == broker.epoch}
        return {b for b, broker in brokers.items() if broker.epoch < partition.modified_zxid}

    async def begin(self) -> None:
        """Called before a new controller's first write, which must not hide from the next controller who was away."""
        known, context = self._known, self._context
        if known is not None and all(_covers(known, partition) for _, partition in context.undeleted_partitions()):
            stayed = {b: broker for b, broker in context.brokers.items() if known.epochs.get(b) == broker.epoch}
            await self._write(stayed)

    async def save(self) -> None:
        """The controller has written all that follows from the registrations that it knows."""
        await self._write(self._context.brokers)

    async def _write(self, brokers: Mapping[int, LiveBroker]) -> None:
        """Store these in the node; the entry of a dead broker may stay, for the broker comes back with another epoch."""
        epochs = {broker_id: broker.epoch for broker_id, broker in sorted(brokers.items())}
        known = KnownRegistrations(self._context.epoch, epochs)
        before = self._known
        if (
            before is not None
            and before.controller_epoch == known.controller_epoch
            and epochs.items() <= before.epochs.items()
        ):
            return
        path, data = znodes.KNOWN_BROKERS, znodes.encode_known_brokers(known)
        operation = Create(path, data) if self._version is None else Set(path, data, self._version)
        (result,) = await fenced_multi(self._store, self._context, [operation])
        self._known, self._version = known, result.version if isinstance(result, Stat) else 0


def _covers(known: KnownRegistrations, partition: PartitionState) -> bool:
    """Whether the partition's state was not written after the node by a controller of Kafka, which does not keep the node."""
    return partition.state is None or partition.state.controller_epoch <= known.controller_epoch
