"""The migration fence, which keeps brokers in ZooKeeper mode out of a cluster that has moved to KRaft.

It is one transaction. It makes ``/ottla_migration``, which says whose log directory has the cluster's metadata from now on, and
gives ``/cluster/id`` another value. So a broker in ZooKeeper mode whose log directories name the cluster ends at its start: one
of Apache Kafka (``MetaPropertiesEnsemble.verify``) as one of Ottla. Nothing else in the tree changes: the way back is to take
the fence away.

====================  ======================================================================================
``/ottla_migration``  ``{"version":1,"node":1,"cluster_id":"...","controller_epoch_version":7}``
``/cluster/id``       ``{"version":"1","id":"MOVED_TO_KRAFT"}``
====================  ======================================================================================

``controller_epoch_version`` is the version of ``/controller_epoch``, which each controller raises. So no controller was elected
between the reading of the tree and the fence, and none has been since, or what was moved is not the newest any more.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ..nodes import znodes
from ..nodes.decoding import NOT_UNDERSTOOD
from ..store.cluster_store import (
    BadVersionError,
    Check,
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
)
from ..store.znode_tree import ZnodeTree
from .tree_image import UnmovableStateError

MIGRATION = "/ottla_migration"
FENCED_ID = "MOVED_TO_KRAFT"

_NO_EPOCH = -1


class Fence(NamedTuple):
    """What ``/ottla_migration`` holds."""

    node_id: int
    """The node whose metadata log the cluster begins with."""
    cluster_id: str
    """The id to which the cluster returns where the fence is lowered."""
    controller_epoch_version: int
    """The version of ``/controller_epoch`` when the fence was raised; -1 where there was none."""


def fence_in(tree: ZnodeTree) -> Fence | None:
    """The fence, if there is one. Raises UnmovableStateError where it is not understood."""
    node = tree.nodes.get(MIGRATION)
    return None if node is None else _decode(node.data)


async def read_fence(store: ClusterStore) -> Fence | None:
    """The fence, from the store. Raises UnmovableStateError where it is not understood, StoreError."""
    (node,) = await store.get_many([MIGRATION])
    return None if node is None else _decode(node.data)


def check_unchanged(tree: ZnodeTree, fence: Fence) -> None:
    """Whether no broker in ZooKeeper mode has changed anything since the fence. Raises UnmovableStateError."""
    if _epoch_version(tree) != fence.controller_epoch_version:
        raise UnmovableStateError(
            "a broker in ZooKeeper mode has been the controller since the metadata were moved: take the migration back on node "
            f"{fence.node_id} (ottla migrate --undo), and begin again"
        )


async def raise_fence(store: ClusterStore, tree: ZnodeTree, node_id: int, cluster_id: str) -> Fence:
    """Put it up, if the tree is still as it was read. Raises UnmovableStateError, StoreError."""
    fence = Fence(node_id, cluster_id, _epoch_version(tree))
    operations: list[Operation] = [
        Create(MIGRATION, _encode(fence)),
        Set(znodes.CLUSTER_ID, znodes.encode_cluster_id(FENCED_ID), tree.nodes[znodes.CLUSTER_ID].version),
    ]
    if fence.controller_epoch_version != _NO_EPOCH:
        operations.append(Check(znodes.CONTROLLER_EPOCH, fence.controller_epoch_version))
    try:
        await store.multi(operations)
    except (NodeExistsError, BadVersionError, NoNodeError, ConnectionLossError):
        if await read_fence(store) != fence:  # an answer may have been lost
            raise UnmovableStateError("the cluster's state has changed while it was read: begin again") from None
    return fence


async def lower_fence(store: ClusterStore, fence: Fence) -> None:
    """Take it away, if it is there. Raises StoreError."""
    while await read_fence(store) == fence:
        try:
            await store.multi([Delete(MIGRATION), Set(znodes.CLUSTER_ID, znodes.encode_cluster_id(fence.cluster_id))])
        except ConnectionLossError:
            continue


def _epoch_version(tree: ZnodeTree) -> int:
    node = tree.nodes.get(znodes.CONTROLLER_EPOCH)
    return _NO_EPOCH if node is None else node.version


def _encode(fence: Fence) -> bytes:
    fields = {
        "version": 1,
        "node": fence.node_id,
        "cluster_id": fence.cluster_id,
        "controller_epoch_version": fence.controller_epoch_version,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(data: bytes) -> Fence:
    """Raises UnmovableStateError."""
    try:
        fields = json.loads(data)
        return Fence(int(fields["node"]), str(fields["cluster_id"]), int(fields["controller_epoch_version"]))
    except NOT_UNDERSTOOD as error:
        raise UnmovableStateError(f"{MIGRATION} is not understood: {error!r}") from None
