"""A broker that was alone is started with a ZooKeeper: its state moves there, and others can join.

The order makes a crash harmless at any point (see ``state_move``): claim the ZooKeeper, copy everything to it, write the address
of the ZooKeeper into ``meta.properties`` of each folder, rename the folder with the old state, let other brokers in. Until
``meta.properties`` has the address, the broker can still be started without the ZooKeeper and goes on alone; from then on such a
start is refused. The old state stays in the data folder, as files that nothing reads any more: ``before-zookeeper.journal`` and
``.snapshot``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ...base.seams import Workers
from ...base.wording import counted
from ...log.data_folders import LogStartError
from ...log.disk import Disk, join
from ..zookeeper import znodes
from .state_move import begin_move, end_move, is_under_way, move, moved_nodes
from .store import journal
from .store.cluster_home import STATE_FOLDER
from .store.cluster_store import ClusterStore
from .store.state_files import DiskStateFiles
from .store.znode_tree import ZnodeTree

logger = logging.getLogger(__name__)

_MOVED_FOLDER = STATE_FOLDER + "_moved"
_MOVED_FILE = "before-zookeeper."


def has_state(disk: Disk, data_dir: str) -> bool:
    """Whether a broker that was alone has its cluster's state in this data folder."""
    return disk.is_dir(join(data_dir, STATE_FOLDER))


class Growth:
    """Moves the cluster's state in ``data_dir`` into ``store``, and finishes a move that a crash has interrupted.

    ``identify`` writes the cluster's id, which it is given, and the ZooKeeper into every data folder.
    """

    def __init__(
        self,
        store: ClusterStore,
        disk: Disk,
        workers: Workers,
        data_dir: str,
        broker_id: int,
        identify: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        self._disk = disk
        self._workers = workers
        self._data_dir = data_dir
        self._broker_id = broker_id
        self._identify = identify

    async def run(self, known_cluster_id: str | None) -> None:
        """``known_cluster_id``: that of the data folders.

        Raises KafkaError INCONSISTENT_CLUSTER_ID where the ZooKeeper is not empty, LogStartError, OSError, StoreError.
        """
        store = self._store
        if has_state(self._disk, self._data_dir):
            known_cluster_id = await self._move()
        await self._workers.run(self._take_files_out)
        if known_cluster_id is not None and await is_under_way(store, self._broker_id, known_cluster_id):
            await end_move(store)

    async def _move(self) -> str:
        tree = await self._workers.run(self._read)
        identity = tree.get(znodes.CLUSTER_ID)
        if identity is None:
            path = join(self._data_dir, STATE_FOLDER)
            raise LogStartError(
                f"{path} has no cluster id, because that start was not finished: start without ZooKeeper once"
            )
        cluster_id = znodes.decode_cluster_id(identity.data)
        await begin_move(self._store, self._broker_id, cluster_id)
        nodes = moved_nodes(tree)
        await move(self._store, nodes)
        logger.info("The state of cluster %s is in ZooKeeper now (%s)", cluster_id, counted(len(nodes), "node"))
        await self._identify(cluster_id)
        await self._workers.run(self._set_aside)
        return cluster_id

    def _read(self) -> ZnodeTree:
        files = DiskStateFiles(self._disk, join(self._data_dir, STATE_FOLDER))
        try:
            return journal.load(files)[0]
        finally:
            files.close()

    def _set_aside(self) -> None:
        """Rename the folder, in one step: a crash must not leave half of a state that looks like a whole one."""
        self._disk.rename(join(self._data_dir, STATE_FOLDER), join(self._data_dir, _MOVED_FOLDER))
        self._disk.sync_dir(self._data_dir)

    def _take_files_out(self) -> None:
        """Keep the files only: Apache Kafka does not start on a data folder with a folder in it that it does not know."""
        disk, moved = self._disk, join(self._data_dir, _MOVED_FOLDER)
        if disk.is_dir(moved):
            for name in disk.names(moved):
                disk.rename(join(moved, name), join(self._data_dir, _MOVED_FILE + name))
            disk.remove_dir(moved)
            disk.sync_dir(self._data_dir)
