"""The state of a cluster of one broker moves into a ZooKeeper that is empty, so that others can join it.

What is moved are topics with ids, assignments and leaders, configs, access rules, delegation tokens, deletions under way, the
block of producer ids and the epoch of the controller; sessions and notifications stay behind. It does not fit into one
transaction, so the first one makes ``/ottla_move`` together with ``/cluster/id``, and the last one removes it:

- while the mark is there no other broker joins (``ensure_cluster``), and after a crash the broker itself goes on: it makes what
  is there equal to the source once more, since it may have run alone in between;
- before the mark is removed the broker's own state is set aside, and its folders say where their cluster is, so that the
  cluster has at every moment one state that a broker can start with.

A ZooKeeper counts as empty when there is neither a cluster's id nor anything that would be moved.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...base.errors import ErrorCode, KafkaError
from . import acl_znodes, token_znodes, znodes
from .partition_states import transactions
from .registration import find_cluster
from .store.cluster_store import ClusterStore, Create, Delete, Operation, Set, ensure_paths
from .store.znode_tree import ZnodeTree

_FOLDERS = (
    znodes.TOPICS,
    *map(znodes.config_path, znodes.ENTITY_KINDS),
    znodes.DELETE_TOPICS,
)
"""Nodes that are moved with all that is below them."""

_NODES = (znodes.CONTROLLER_EPOCH, znodes.PRODUCER_ID_BLOCK)
_OWN_TREES = (*acl_znodes.ROOTS, token_znodes.ROOT)
"""Nodes that are moved with all that is below them, and are not there in every cluster."""


def moved_nodes(tree: ZnodeTree) -> dict[str, bytes]:
    """The nodes to move, by path."""
    return {path: node.data for path, node in tree.entries() if not node.ephemeral_owner and _is_moved(path)}


def _is_moved(path: str) -> bool:
    if path.startswith(token_znodes.CHANGES + "/"):
        return False
    return path in (*_NODES, *_OWN_TREES) or any(path.startswith(folder + "/") for folder in (*_FOLDERS, *_OWN_TREES))


async def begin_move(store: ClusterStore, broker_id: int, cluster_id: str) -> None:
    """Claim the store for the cluster, unless an earlier attempt of this broker has. Raises StoreError.

    Raises KafkaError INCONSISTENT_CLUSTER_ID when there is anything else in it.
    """
    await ensure_paths(store, znodes.PERSISTENT_PATHS)
    found = await find_cluster(store)
    if found is None:
        await _check_empty(store)
        mark = znodes.encode_state_move(broker_id, cluster_id)
        claim = Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(cluster_id))
        await store.multi([Create(znodes.STATE_MOVE, mark), claim])
    elif found != cluster_id:
        raise _refusal(f"it has cluster {found}, and this is broker {broker_id} of cluster {cluster_id}")
    elif not await is_under_way(store, broker_id, cluster_id):
        raise _refusal(f"cluster {cluster_id} is there already, and not from this data folder, which must be a copy")


async def is_under_way(store: ClusterStore, broker_id: int, cluster_id: str) -> bool:
    """Whether a move of this broker and cluster has begun and not ended. Raises StoreError."""
    (mark,) = await store.get_many([znodes.STATE_MOVE])
    return mark is not None and znodes.decode_state_move(mark.data) == (broker_id, cluster_id)


async def move(store: ClusterStore, source: Mapping[str, bytes]) -> None:
    """Make the store equal to ``source``, which is what ``moved_nodes`` gives. Raises StoreError."""
    there = await _read(store)
    operations: list[Operation] = []
    for path, data in sorted(source.items()):
        if path not in there:
            operations.append(Create(path, data))
        elif there[path] != data:
            operations.append(Set(path, data))
    operations += [Delete(path) for path in sorted(there.keys() - source.keys(), reverse=True) if path not in _NODES]
    for transaction in transactions(operations):
        await store.multi(transaction)


async def end_move(store: ClusterStore) -> None:
    """Let others join. Raises StoreError."""
    await store.multi([Delete(znodes.STATE_MOVE)])


async def _check_empty(store: ClusterStore) -> None:
    for folder in (znodes.BROKER_IDS, *_FOLDERS):
        if await store.children(folder):
            raise _refusal(f"there is something in {folder} already, and no cluster id")
    for folder in _OWN_TREES:
        if await store.exists(folder) is not None:
            raise _refusal(f"there is {folder} already, and no cluster id")
    if await store.exists(znodes.CONTROLLER_EPOCH) is not None:
        raise _refusal("it has had a controller, and has no cluster id")


async def _read(store: ClusterStore) -> dict[str, bytes]:
    """What the store has of the nodes that are moved, by path."""
    own_trees = [path for path in _OWN_TREES if await store.exists(path) is not None]
    paths = [*_NODES, *own_trees]
    folders = [*_FOLDERS, *own_trees]
    while folders:
        folder = folders.pop()
        below = [f"{folder}/{name}" for name in await store.children(folder)]
        paths += below
        folders += below
    nodes = await store.get_many(paths)
    return {path: node.data for path, node in zip(paths, nodes, strict=True) if node is not None}


def _refusal(why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INCONSISTENT_CLUSTER_ID, f"the state of this broker's cluster cannot move into this ZooKeeper: {why}"
    )
