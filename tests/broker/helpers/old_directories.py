"""Log directories as a lone broker before KRaft has left them, on a disk in memory, and what a take-over makes of them."""

from __future__ import annotations

import random
from typing import Any

from ottla.base.partitions import TopicPartition
from ottla.broker.config_file import load_config
from ottla.broker.directories.format_directories import Formatting
from ottla.broker.directories.take_over import TakeOver
from ottla.controller.quorum.bootstrap import read_bootstrap
from ottla.controller.quorum.replay import RecordReplay
from ottla.controller.raft.voters import InitialVoter
from ottla.controller.zookeeper.leaving.old_state import KEPT_PREFIX
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store import journal
from ottla.controller.zookeeper.store.cluster_store import Create, Operation
from ottla.controller.zookeeper.store.state_files import DiskStateFiles
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction, ZnodeTree
from ottla.log.checkpoints import MetaProperties, read_meta_properties, write_meta_properties, write_topic_id
from ottla.log.disk import Disk
from ottla.log.files import file_name
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotReader
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition

from ...controller.helpers.old_state import CLUSTER_ID, OldState, rich_state, topic_id
from ...controller.quorum.helpers.images import contents
from .dying_disk import DyingDisk

DIRECTORIES = ("/a", "/b")
GONE = topic_id(9)
"""Of a topic whose deletion is under way."""


def write_state(disk: Disk, state: OldState, *, snapshot_after: int = 0, directory: str = "/a") -> None:
    """The state as a broker has written it: the first transactions are in a snapshot, the others in the journal."""
    files = DiskStateFiles(disk, f"{directory}/__cluster_state")
    if snapshot_after:
        tree = ZnodeTree()
        for transaction in state.transactions[:snapshot_after]:
            tree.apply(transaction)
        files.replace(journal.SNAPSHOT, journal.encode_snapshot(tree))
    for transaction in state.transactions[snapshot_after:]:
        files.append(journal.JOURNAL, journal.encode_transactions([transaction]))
    files.close()


def change_state(disk: Disk, *operations: Operation) -> None:
    """What a broker before KRaft does with its state when it runs once more."""
    files = DiskStateFiles(disk, "/a/__cluster_state")
    tree, _ = journal.load(files)
    files.append(journal.JOURNAL, journal.encode_transactions([ZnodeTransaction(tree.zxid + 1, 0, 1, operations)]))
    files.close()


def add_log(disk: Disk, directory: str, topic: str, partition: int, topic_id: bytes | None) -> None:
    """The folder of a log, with one segment of some bytes; None: ``partition.metadata`` is missing."""
    folder = f"{directory}/{topic}-{partition}"
    disk.make_dir(folder)
    disk.write_file(f"{folder}/{file_name(0, '.log')}", f"records of {topic}-{partition}".encode())
    if topic_id is not None:
        write_topic_id(disk, f"{folder}/partition.metadata", topic_id, sync=True)


def own(disk: Disk, *directories: str, **fields: Any) -> None:
    """Write ``meta.properties``, as a broker before KRaft does unless ``fields`` say something else."""
    for directory in directories:
        disk.make_dir(directory)
        write_meta_properties(disk, directory, MetaProperties(**({"broker_id": 1, "cluster_id": CLUSTER_ID} | fields)))


def take_over(disk: Disk, seed: int = 0, directories: tuple[str, ...] = DIRECTORIES, **properties: str) -> None:
    """As a start does it: if there is anything to take over."""
    config = load_config({name.replace("_", "."): value for name, value in properties.items()})
    plan = TakeOver(disk, config, directories, directories[0])
    if plan.is_due:
        assert not plan.needs_logs
        plan.run(formatting(directories), random.Random(seed), 1)


def formatting(directories: tuple[str, ...] = DIRECTORIES) -> Formatting:
    """That of a new node that is its own quorum."""
    voter = InitialVoter(1, "localhost", 9093, bytes(range(1, 17)))
    return Formatting(
        1, CLUSTER_ID, directories, directories[0], "CONTROLLER", is_dynamic=True, voters=[voter], is_controller=True
    )


def image_of(disk: Disk, directory: str) -> ClusterImage:
    """What the cluster begins with that has this log directory."""
    replay = RecordReplay(ClusterImage())
    replay.replay_all(record for record, _ in read_bootstrap(disk, directory))
    return ClusterImage().apply(replay.delta(LogPosition(-1, 0, 0)))


def plain(image: ClusterImage) -> dict[str, Any]:
    """The content of an image but for what differs by chance: ids of access rules, and of directories."""
    found = contents(image)
    for name in ("topics", "topics_by_id"):
        found[name] = {
            key: (topic, topic_id, {number: each._replace(directories=()) for number, each in partitions.items()})
            for key, (topic, topic_id, partitions) in found[name].items()
        }
    found["acl_ids"] = sorted(found["acl_ids"].values())
    return found | {"position": None}


def check_formatted(disk: Disk, directories: tuple[str, ...] = DIRECTORIES) -> None:
    """The directories are those of one node of KRaft that is its own quorum."""
    ids = []
    for directory in directories:
        meta = read_meta_properties(disk, directory)
        assert meta is not None and meta.directory_id is not None
        assert (meta.version, meta.broker_id, meta.cluster_id) == (1, 1, CLUSTER_ID)
        ids.append(meta.directory_id)
    assert len(set(ids)) == len(ids)
    path = f"{directories[0]}/__cluster_metadata-0/{BOOTSTRAP_ID.file_name}"
    voters = SnapshotReader(disk.read_file(path), path).head.voters
    assert voters is not None
    assert [(voter.voter_id, voter.voter_directory_id) for voter in voters.voters] == [(1, ids[0])]
    for topic in image_of(disk, directories[0]).topics.values():
        for number, partition in topic.partitions.items():
            place = directory_with(disk, TopicPartition(topic.name, number), directories)
            if place is not None:
                assert partition.directories == (ids[directories.index(place)],)


def directory_with(disk: Disk, partition: TopicPartition, directories: tuple[str, ...] = DIRECTORIES) -> str | None:
    return next((each for each in directories if disk.is_dir(f"{each}/{partition}")), None)


def kept_tree(disk: Disk) -> ZnodeTree:
    """What was set aside, as a broker before KRaft reads it after it was put back."""
    disk.make_dir("/back")
    for name in (journal.JOURNAL, journal.SNAPSHOT):
        if disk.exists(f"/a/{KEPT_PREFIX}{name}"):
            disk.write_file(f"/back/{name}", disk.read_file(f"/a/{KEPT_PREFIX}{name}"))
    return journal.load(DiskStateFiles(disk, "/back"))[0]


def full_state() -> OldState:
    """With a deletion under way, beside all the rest."""
    state = rich_state()
    state.topic("gone", GONE, {0: [1], 1: [1]})
    state.write(Create(znodes.delete_topic_path("gone")))
    return state


def full_disk(state: OldState, *, snapshot_after: int = 20) -> DyingDisk:
    """Logs in both directories: one without its topic's id, one with half a file for that, and those of a deleted topic."""
    disk = DyingDisk()
    own(disk, *DIRECTORIES)
    write_state(disk, state, snapshot_after=snapshot_after)
    add_log(disk, "/a", "orders", 0, topic_id(1))
    add_log(disk, "/b", "orders", 1, None)
    add_log(disk, "/b", "plain", 0, None)
    disk.write_file("/b/plain-0/partition.metadata", b"vers")
    add_log(disk, "/a", "gone", 0, GONE)
    add_log(disk, "/b", "gone", 1, None)
    disk.settle()
    return disk
