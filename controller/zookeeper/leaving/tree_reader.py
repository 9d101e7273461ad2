"""A reader of the whole ZooKeeper tree of a stopped cluster, and the check that it can be migrated.

What is read is what Kafka's brokers keep: other nodes under the same path are nobody's here (``/zookeeper``, those of other
programs). Below ``/consumers`` are the offsets of consumers before Kafka 0.9, of which only the groups' names are read. A node in
between that this module does not know raises ``UnmovableStateError``: it would be lost without anybody having looked at it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import trio

from ....base.wording import listed
from ..nodes import acl_znodes, token_znodes, znodes
from ..nodes.decoding import NOT_UNDERSTOOD
from ..store.cluster_store import ClusterStore, NoNodeError, ZnodeWithStat
from ..store.znode_tree import Znode, ZnodeTree
from .migration_fence import MIGRATION
from .tree_image import UnmovableStateError

CONSUMERS = "/consumers"

_KAFKA_MIGRATION = "/migration"
_READ_AT_ONCE = 500
_LISTED_AT_ONCE = 100
_SHOWN = 10

_ONE = "/[^/]+"
_KNOWN = re.compile(
    "|".join(
        [
            f"/brokers(/ids({_ONE})?|/seqid|/topics({_ONE}(/partitions(/[0-9]+(/state)?)?)?)?)?",
            f"/config(/(changes|topics|brokers|clients|ips)({_ONE})?|/users({_ONE}(/clients({_ONE})?)?)?)?",
            f"/admin(/reassign_partitions|/preferred_replica_election|/delete_topics({_ONE})?)?",
            "/cluster(/id)?",
            f"(/isr_change_notification|/log_dir_event_notification)({_ONE})?",
            *map(
                re.escape,
                (
                    znodes.CONTROLLER,
                    znodes.CONTROLLER_EPOCH,
                    znodes.PRODUCER_ID_BLOCK,
                    znodes.FEATURE,
                    znodes.KNOWN_BROKERS,
                    MIGRATION,
                    _KAFKA_MIGRATION,
                ),
            ),
            f"{CONSUMERS}({_ONE})?",
            f"/kafka-acl({_ONE}({_ONE})?)?",
            f"/kafka-acl-extended(/prefixed({_ONE}({_ONE})?)?)?",
            f"({acl_znodes.LITERAL_CHANGES}|{acl_znodes.PREFIXED_CHANGES})({_ONE})?",
            f"{token_znodes.ROOT}(/tokens({_ONE})?|/token_changes({_ONE})?)?",
        ]
    )
)


async def read_tree(store: ClusterStore) -> ZnodeTree:
    """Every node that brokers keep; none where the cluster's path does not exist. Raises StoreError."""
    tree = ZnodeTree()
    level = [path for path in await _children(store, [""]) if _KNOWN.fullmatch(path)]
    while level:
        found: list[str] = []
        for start in range(0, len(level), _READ_AT_ONCE):
            paths = level[start : start + _READ_AT_ONCE]
            for path, node in zip(paths, await store.get_many(paths), strict=True):
                if node is not None:
                    tree.restore(path, _znode(node))
                    if node.stat.child_count and not path.startswith(f"{CONSUMERS}/"):
                        found.append(path)
        level = await _children(store, found)
    return tree


async def _children(store: ClusterStore, paths: Sequence[str]) -> list[str]:
    names: dict[str, list[str]] = {}

    async def list_some(some: Sequence[str]) -> None:
        for path in some:
            try:
                names[path] = await store.children(path or "/")
            except NoNodeError:
                names[path] = []

    async with trio.open_nursery() as nursery:
        for start in range(min(_LISTED_AT_ONCE, len(paths))):
            nursery.start_soon(list_some, paths[start::_LISTED_AT_ONCE])
    return [f"{path}/{name}" for path in paths for name in sorted(names[path])]


def _znode(node: ZnodeWithStat) -> Znode:
    stat = node.stat
    return Znode(
        node.data, stat.czxid, stat.mzxid, stat.created_ms, stat.modified_ms, stat.version, stat.ephemeral_owner
    )


def check_movable(tree: ZnodeTree) -> None:
    """Whether no broker runs, and nobody else moves the cluster. Raises UnmovableStateError."""
    running = sorted(tree.nodes[znodes.BROKER_IDS].children) if znodes.BROKER_IDS in tree.nodes else []
    if running:
        raise UnmovableStateError(
            f"brokers are running ({', '.join(running)}): stop all of them first. One that was killed is known until its "
            "session ends, zookeeper.session.timeout.ms later"
        )
    if znodes.CONTROLLER in tree.nodes:
        raise UnmovableStateError(f"{znodes.CONTROLLER} exists: a controller runs, or its session has not ended yet")
    if _is_moved_by_kafka(tree):
        raise UnmovableStateError(
            f"{_KAFKA_MIGRATION} exists: a KRaft controller of Apache Kafka has begun to move this cluster. Let it end "
            "the migration, or return to ZooKeeper as Kafka's documentation says"
        )
    unknown = sorted(path for path in tree.nodes if path != "/" and not _KNOWN.fullmatch(path))
    if unknown:
        shown = listed(unknown, _SHOWN)
        raise UnmovableStateError(f"these nodes are unknown, and would be lost: {shown}")


def _is_moved_by_kafka(tree: ZnodeTree) -> bool:
    """Kafka's brokers of 3.4 and newer make the node; only a KRaft controller names itself there (ZkMigrationState)."""
    node = tree.nodes.get(_KAFKA_MIGRATION)
    if node is None or not node.data:
        return False
    try:
        return int(json.loads(node.data).get("kraft_controller_id", -1)) >= 0
    except NOT_UNDERSTOOD:
        return True
