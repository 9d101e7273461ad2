"""The on-disk metadata of a standalone broker from before KRaft: its location, and its renaming after a take-over.

Such a broker had a tree of nodes in a folder of its first log directory. After a take-over nothing reads that any more:

==============================  ===================================================================================
``__cluster_state/``            the tree: ``journal`` and ``snapshot``, as ``store.journal`` has them
``__cluster_state_taken/``      the same, while it is being set aside
``before-kraft.journal``        the same, set aside; ``before-kraft.snapshot`` beside it, if there was one
``__cluster_state``             a file with two lines for people: an Ottla before KRaft does not start beside it
==============================  ===================================================================================

What is set aside are files, because Apache Kafka starts on no log directory with a folder in it that it does not know. The folder
is renamed in one step before: a crash leaves no half of a tree that looks like a whole one.

The tree that is kept is moved ahead: producer ids and leader epochs begin far above those that the cluster goes on with. So who
goes back to it gives no producer an id that another one has, and consumers meet no leader that is older than one they have seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....log.disk import Disk, join
from ....log.files import OLD_STATE_DIR, OLD_STATE_TAKEN_DIR
from ....log.log_directories import LogStartError
from ..nodes import znodes
from ..nodes.decoding import NOT_UNDERSTOOD
from ..store import journal
from ..store.cluster_store import Operation, Set
from ..store.state_files import DiskStateFiles
from ..store.znode_tree import ZnodeTransaction, ZnodeTree

StateTree = ZnodeTree

KEPT_PREFIX = "before-kraft."
STATE_FILES = (journal.JOURNAL, journal.SNAPSHOT)

PRODUCER_IDS_AHEAD = 1_000_000_000_000
LEADER_EPOCHS_AHEAD = 1_000_000

_GUARD = (
    "The cluster's metadata is in __cluster_metadata-0 now. The metadata of an Ottla before KRaft is in before-kraft.journal\n"
    "and before-kraft.snapshot. The page 'Operating Ottla' says how to return to that version.\n"
)


def has_state(disk: Disk, directory: str) -> bool:
    """Whether a broker before KRaft has its cluster's metadata in this log directory."""
    return disk.is_dir(join(directory, OLD_STATE_DIR))


def is_being_set_aside(disk: Disk, directory: str) -> bool:
    """Whether a take-over has come as far as that, and not to its end."""
    return disk.is_dir(join(directory, OLD_STATE_TAKEN_DIR))


def has_kept_state(disk: Disk, directory: str) -> bool:
    """Whether a take-over has set something aside."""
    return any(disk.exists(join(directory, KEPT_PREFIX + name)) for name in STATE_FILES)


def check_no_own_cluster(disk: Disk, directories: Iterable[str]) -> None:
    """For a start with ``zookeeper.connect``: that no metadata of a lone broker are left behind. Raises LogStartError."""
    for directory in directories:
        if disk.is_dir(directory) and (has_state(disk, directory) or is_being_set_aside(disk, directory)):
            raise LogStartError(
                f"{directory} has the metadata of a cluster, and zookeeper.connect names another place for them. "
                "Start it without zookeeper.connect: it becomes a quorum of KRaft, which other nodes can join. Only "
                "an Ottla before KRaft moves the metadata into a ZooKeeper"
            )


def read_state(disk: Disk, directory: str) -> StateTree:
    """The tree as it was last acknowledged; the end of a write that a crash has interrupted is cut off.

    Raises CorruptStateError, OSError.
    """
    return _read(disk, join(directory, OLD_STATE_DIR))


def _read(disk: Disk, folder: str) -> ZnodeTree:
    files = DiskStateFiles(disk, folder)
    try:
        return journal.load(files)[0]
    finally:
        files.close()


def examine_state(disk: Disk, prefix: str) -> tuple[StateTree, bool]:
    """The tree in the files whose paths begin so, and whether the last write was interrupted. Writes nothing.

    Raises CorruptStateError, OSError.
    """
    files = _FilesToRead(disk, prefix)
    tree, _ = journal.load(files)
    return tree, files.is_torn


class _FilesToRead:
    """``journal.StateFiles`` that are only read."""

    def __init__(self, disk: Disk, prefix: str) -> None:
        self._disk = disk
        self._prefix = prefix
        self.is_torn = False
        """Whether something would be cut off."""

    def read(self, name: str) -> bytes | None:
        path = self._prefix + name
        return self._disk.read_file(path) if self._disk.exists(path) else None

    def truncate(self, name: str, size: int) -> None:
        self.is_torn = True

    def append(self, name: str, data: bytes) -> None:
        raise AssertionError("nothing is written")

    def replace(self, name: str, data: bytes) -> None:
        raise AssertionError("nothing is written")


def set_state_aside(disk: Disk, directory: str) -> None:
    """From now on no start finds the tree. Raises OSError."""
    disk.rename(join(directory, OLD_STATE_DIR), join(directory, OLD_STATE_TAKEN_DIR))
    disk.sync_dir(directory)
    finish_setting_aside(disk, directory)


def finish_setting_aside(disk: Disk, directory: str) -> None:
    """What comes after the folder has another name; it may have been begun before. Raises CorruptStateError, OSError."""
    folder = join(directory, OLD_STATE_TAKEN_DIR)
    disk.write_file(join(directory, OLD_STATE_DIR), _GUARD.encode())
    if not has_kept_state(disk, directory):
        _move_ahead(disk, folder)
    for name in STATE_FILES:
        if disk.exists(join(folder, name)):
            disk.rename(join(folder, name), join(directory, KEPT_PREFIX + name))
    disk.sync_dir(directory)
    disk.remove_dir(folder)
    disk.sync_dir(directory)


def _move_ahead(disk: Disk, folder: str) -> None:
    tree = _read(disk, folder)
    operations = _steps_ahead(tree)
    if operations:
        transaction = ZnodeTransaction(tree.zxid + 1, 0, 0, operations)
        files = DiskStateFiles(disk, folder)
        try:
            files.append(journal.JOURNAL, journal.encode_transactions([transaction]))
        finally:
            files.close()


def _steps_ahead(tree: ZnodeTree) -> list[Operation]:
    """The operations that move producer ids and leader epochs ahead; nodes that are not understood stay as they are."""
    operations: list[Operation] = []
    for path, node in tree.entries():
        data = None
        try:
            if path == znodes.PRODUCER_ID_BLOCK:
                first, last = znodes.decode_producer_id_block(node.data) if node.data else (-1, -1)
                ahead = PRODUCER_IDS_AHEAD
                data = znodes.encode_producer_id_block(-1, first + ahead, last + ahead)
            elif path.startswith(znodes.TOPICS + "/") and path.endswith("/state"):
                state = znodes.decode_state(node.data)
                data = znodes.encode_state(state._replace(leader_epoch=state.leader_epoch + LEADER_EPOCHS_AHEAD))
        except NOT_UNDERSTOOD:
            continue
        if data is not None:
            operations.append(Set(path, data))
    return operations
