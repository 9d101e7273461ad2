"""Three brokers of ZooKeeper mode on disks in memory, none of which runs, and the tree of their cluster."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

from ottla.base.seams import SimulatedClock
from ottla.broker.config_file import load_config
from ottla.broker.directories.migration import Migration
from ottla.broker.directories.migration_plan import Difference, MigratingNode
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Operation, Result, Stat, Watch, ZnodeWithStat
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction, ZnodeTree
from ottla.log.checkpoints import LOCK

from ...controller.helpers.old_state import OldState, topic_id
from .dying_disk import DiedError, DyingDisk
from .old_directories import add_log, own

DIRECTORIES = ("/a", "/b")
NODES = (1, 2, 3)


class Deaths:
    """Counts what is done in a process, and ends it at ``dies_at``."""

    def __init__(self) -> None:
        self.done = 0
        self.dies_at: int | None = None

    def count(self) -> None:
        if self.dies_at is not None and self.done >= self.dies_at:
            raise DiedError
        self.done += 1


class CountedDisk(DyingDisk):
    """A disk on which deaths are counted with those elsewhere."""

    deaths: Deaths | None = None

    def _count(self) -> None:
        if self.deaths is not None:
            self.deaths.count()


class TreeStore:
    """A session at a store. A process may die before a transaction, and after it, when nobody hears the answer."""

    session_id = 1

    def __init__(self, tree: ZnodeTree, deaths: Deaths) -> None:
        self.tree = tree
        self._deaths = deaths

    async def get(self, path: str, watch: Watch | None = None) -> ZnodeWithStat:
        raise NotImplementedError

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        raise NotImplementedError

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[ZnodeWithStat | None]:
        return [self.tree.get(path) for path in paths]

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return self.tree.children(path)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self._deaths.count()
        results, _ = self.tree.apply(ZnodeTransaction(self.tree.zxid + 1, 1, 1, operations))
        self._deaths.count()
        return results

    async def close(self) -> None:
        pass


def stopped_state() -> OldState:
    """Of the three nodes: all kinds of metadata, and a topic that has no id yet."""
    state = OldState()
    state.topic("orders", topic_id(1), {0: [1, 2, 3], 1: [2, 3, 1]}, {"retention.ms": "1000"}, epochs=(5, 3))
    state.topic("aged", bytes(16), {0: [3, 1]}, epochs=(2, 1))
    state.config("brokers", "1", {"log.cleaner.threads": "2", "min.insync.replicas": "2"})
    state.config("brokers", "<default>", {"log.retention.ms": "5000"})
    state.with_access()
    state.with_quotas()
    state.with_producer_ids(4000, 4999)
    state.write(Create(znodes.CONTROLLER_EPOCH, b"7"))
    return state


class MigratingNodes:
    """``tree`` and ``disks`` are what a migration changes. ``properties`` are of every node's new file, by node the old one's."""

    def __init__(self, tree: ZnodeTree | None = None) -> None:
        self.deaths = Deaths()
        self.tree = tree or stopped_state().tree
        self.disks: dict[int, CountedDisk] = {}
        for node_id in NODES:
            disk = self.disks[node_id] = CountedDisk()
            own(disk, *DIRECTORIES, broker_id=node_id)
            add_log(disk, "/a", "orders", 0, topic_id(1))
            add_log(disk, "/b", "orders", 1, topic_id(1))
            if node_id != 2:
                add_log(disk, "/b", "aged", 0, None)
            disk.settle()

    def copy(self) -> MigratingNodes:
        """The same, none of which has died."""
        made = MigratingNodes(copy.deepcopy(self.tree))
        for node_id, disk in self.disks.items():
            other = CountedDisk.of(disk)
            assert isinstance(other, CountedDisk)
            made.disks[node_id] = other
        return made

    def migration(
        self, node_id: int, *, roles: str = "broker,controller", old: dict[str, str] | None = None, **new: str
    ) -> Migration:
        """``new`` has _ for the dots."""
        disk = self.disks[node_id]
        disk.deaths = self.deaths
        log_dirs = {"log.dirs": ",".join(DIRECTORIES)}
        before = {"broker.id": str(node_id), "zookeeper.connect": "zk:2181/kafka", **log_dirs, **(old or {})}
        listeners = [f"PLAINTEXT://node{node_id}:9092"] * ("broker" in roles)
        listeners += [f"CONTROLLER://node{node_id}:9093"] * ("controller" in roles)
        after = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "node1:9093",
            **log_dirs,
            **{name.replace("_", "."): value for name, value in new.items()},
        }
        node = MigratingNode(load_config(before), load_config(after))
        store, randomness = TreeStore(self.tree, self.deaths), random.Random(self.deaths.done)
        return Migration(disk, store, node, randomness, SimulatedClock())

    async def migrate(self, node_id: int, **options: Any) -> Difference:
        with self.migration(node_id, **options) as migration:
            return await migration.run()

    async def undo(self, node_id: int) -> list[str]:
        with self.migration(node_id) as migration:
            return await migration.undo()

    def files(self, node_id: int) -> dict[str, bytes]:
        """Every file by its path, but the locks, and what a write that was interrupted leaves."""
        disk = self.disks[node_id]
        return {
            path: bytes(inode.data)
            for path, inode in disk._names.items()
            if inode is not None and not path.endswith((f"/{LOCK}", ".tmp"))
        }

    def restart(self, power_lost: random.Random | None) -> None:
        """What processes find after the one that died."""
        self.deaths = Deaths()
        for disk in self.disks.values():
            disk.restart(power_lost)
