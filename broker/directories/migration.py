"""Migration of a stopped node from ZooKeeper mode to KRaft, while no broker of its cluster runs.

The cluster's metadata go into the log directory of one node, which is the first voter of the quorum and at first the only one.
The others follow it, and those that are controllers are made voters then. So no node without the metadata can be elected.

On the first node, which has to be a controller, each step is on stable storage before the next one:

1. a topic without an id gets one in ZooKeeper, as from an upgrade of ``inter.broker.protocol.version`` to 2.8;
2. the fence is put up (``migration_fence``): no broker in ZooKeeper mode starts any more;
3. ``partition.metadata`` is written where a log lacks it;
4. the ``meta.properties`` of each log directory is kept beside as ``before-kraft.meta.properties``;
5. the log directories are formatted (``format_folders``), with the records in ``bootstrap.checkpoint``.

Eligible leader replicas (KIP-966) are off at first. With them a broker that registers for the first time counts as one that may
have lost records, and leaves the in-sync replicas, even as the last of them.

The other nodes find the fence, and do steps 3 to 5, without records. A node that was interrupted does all of it again; the file
that makes it a node of KRaft is written last. The way back is open until a node has begun its metadata log: on the first node
first, where the fence goes last.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

from ...base.errors import KafkaError
from ...base.seams import Clock, InlineWorkers
from ...controller.configs.broker_passwords import BrokerPasswords
from ...controller.quorum.metadata_version import ELR
from ...controller.quorum.snapshot_records import records_beside_levels
from ...controller.settings import ControllerSettings
from ...controller.zookeeper.leaving.leaving_cluster import LeavingCluster
from ...controller.zookeeper.leaving.migration_fence import lower_fence, read_fence
from ...controller.zookeeper.leaving.tree_image import MoveRules, UnmovableStateError
from ...controller.zookeeper.store.cluster_store import ClusterStore
from ...log.checkpoints import META_PROPERTIES, MetaProperties
from ...log.disk import Disk, join
from ...log.files import BOOTSTRAP_CHECKPOINT, LOG_SUFFIX, METADATA_PARTITION_DIR
from ...log.log_directories import LogDirectories, LogStartError
from ...log.log_directory import LogDirectory
from ...log.metadata_snapshots import known_voters
from ..identity import log_directories
from ..settings import BrokerSettings
from .directory_ids import random_directory_id
from .format_directories import FormatError, Formatting, format_folders, levels_of, standalone_voter
from .found_logs import FoundLog, found_logs, known_topic_id, write_topic_ids
from .migration_plan import KEPT_META, Difference, MigratingNode, MigrationError, MigrationPlan

_QUORUM_STATE = "quorum-state"


class Migration:
    """One node's part. Use it in a ``with`` block, in which the log directories are locked."""

    def __init__(
        self, disk: Disk, store: ClusterStore, node: MigratingNode, randomness: random.Random, clock: Clock
    ) -> None:
        node.check()
        self._disk = disk
        self._store = store
        self._node = node
        self._randomness = randomness
        self._clock = clock
        metadata_directory = node.metadata_directory
        folders = [LogDirectory(disk, each, clock, InlineWorkers()) for each in log_directories(node.new)]
        apart = metadata_directory not in log_directories(node.new)
        self._folders = LogDirectories(
            folders, LogDirectory(disk, metadata_directory, clock, InlineWorkers()) if apart else None
        )

    def __enter__(self) -> Migration:
        """Raises MigrationError."""
        try:
            self._folders.take(self._node.node_id)
        except LogStartError as error:
            self.__exit__()
            raise MigrationError(str(error)) from None
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._folders.all_parts:
            part.release()

    async def examine(self, release: str | None = None) -> Difference:
        """What ``run`` would do; nothing is changed. Raises MigrationError, StoreError, OSError."""
        with _one_error():
            return (await self._plan(release)).difference()

    async def run(self, release: str | None = None, *, may_leave_behind: bool = False) -> Difference:
        """Do it. Raises MigrationError, StoreError, OSError."""
        with _one_error():
            plan = await self._plan(release)
            difference = plan.difference()
            if difference.left_behind and not may_leave_behind:
                raise MigrationError(f"this would be lost: {'; '.join(difference.left_behind)}")
            if plan.is_first and plan.cluster.fence is None:
                if plan.cluster.topics_without_id:
                    await plan.cluster.complete_topic_ids(plan.moved.image)
                    # Read again: the fence is raised only if the tree is still as the plan was made from.
                    plan = await self._plan(release)
                await plan.cluster.raise_fence(self._node.node_id)
            self._form(plan)
            return difference

    async def undo(self) -> list[str]:
        """Make the node one of ZooKeeper mode again; a line for each thing that was done.

        Raises MigrationError, StoreError, OSError.
        """
        with _one_error():
            fence = await read_fence(self._store)
            if fence is not None and fence.node_id != self._node.node_id:
                raise MigrationError(f"node {fence.node_id} has the cluster's metadata: take it back there first")
            self._check_not_started()
            if fence is None and not any(self._disk.exists(join(each, KEPT_META)) for each in self._node.directories):
                raise MigrationError("there is nothing to take back")
            done = [*self._restore_folders()]
            if fence is not None:
                await lower_fence(self._store, fence)
                done.append("Brokers of ZooKeeper mode may start again")
            return done

    # --- what there is ------------------------------------------------------------------------------------------------

    async def _plan(self, release: str | None) -> MigrationPlan:
        self._check_not_started()
        cluster = await LeavingCluster.read(self._store)
        cluster_id, fence = cluster.cluster_id, cluster.fence
        if self._folders.cluster_id not in (None, cluster_id):
            raise MigrationError(
                f"the log directories belong to cluster {self._folders.cluster_id}, the ZooKeeper to {cluster_id}"
            )
        node = self._node
        is_first = fence is None or fence.node_id == node.node_id
        if is_first and not node.is_controller:
            raise MigrationError(
                "the cluster's metadata go to a controller: begin with a node that has controller in process.roles"
            )
        found = found_logs(self._disk, log_directories(node.new)) if node.is_broker else []
        wanted = self._formatting(cluster_id, release)
        moved = cluster.moved(self._rules(levels_of(wanted), found), self._randomness)
        plan = MigrationPlan(node, cluster, is_first, wanted, moved, found, self._metas())
        self._check_directories(plan)
        return plan

    def _check_directories(self, plan: MigrationPlan) -> None:
        """Whether the directories can be this node's, and were formatted here if at all. Raises MigrationError, OSError."""
        has_replicas = any(
            self._node.node_id in partition.replicas
            for topic in plan.moved.image.topics.values()
            for partition in topic.partitions.values()
        )
        if self._node.is_broker and has_replicas and not any(plan.metas.values()):
            raise MigrationError(
                f"the cluster has replicas on node {self._node.node_id}, and its log directories are empty: log.dirs may be wrong"
            )
        directory = self._node.metadata_directory
        if plan.is_done and (plan.cluster.fence is None or (not plan.is_first and known_voters(self._disk, directory))):
            raise MigrationError(
                f"{directory} has been formatted as one of a node of KRaft already: it has to be emptied first"
            )

    def _metas(self) -> dict[str, MetaProperties | None]:
        return {part.folder.path: part.meta for part in self._folders.all_parts}

    def _formatting(self, cluster_id: str, release: str | None) -> Formatting:
        node, metas = self._node, self._metas()
        listener = node.new.settings(BrokerSettings).controller_listener_names[0].upper()
        ids = {
            directory: meta.directory_id
            for directory, meta in metas.items()
            if meta is not None and meta.directory_id is not None
        }
        return Formatting(
            node_id=node.node_id,
            cluster_id=cluster_id,
            folders=node.directories,
            metadata_log_dir=node.metadata_directory,
            controller_listener=listener,
            is_dynamic=True,
            is_controller=True,  # the levels are those of the quorum, whatever this node is in it
            release=release,
            levels={ELR: 0},
            is_anew=True,
            directory_ids=ids,
        )

    def _rules(self, levels: Mapping[str, int], found: Sequence[FoundLog]) -> MoveRules:
        passwords = BrokerPasswords(self._node.old)
        return MoveRules(
            levels=levels,
            clear=lambda broker, stored: passwords.decoded(passwords.with_new_secret(stored)),
            may_delete_topics=self._node.old.settings(ControllerSettings).delete_topic_enable,
            known_id=lambda topic: known_topic_id(found, topic),
        )

    def _check_not_started(self) -> None:
        """Raises MigrationError."""
        directory = self._node.metadata_directory
        folder = join(directory, METADATA_PARTITION_DIR)
        names = self._disk.names(folder) if self._disk.is_dir(folder) else []
        if any(name.endswith(LOG_SUFFIX) or name == _QUORUM_STATE for name in names):
            raise MigrationError(f"{directory} has a metadata log: the node has been started as one of KRaft")

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _form(self, plan: MigrationPlan) -> None:
        """Raises FormatError, OSError."""
        disk, wanted = self._disk, plan.wanted
        if plan.is_done:
            return
        write_topic_ids(disk, plan.found, plan.moved.image)
        for directory, meta in plan.metas.items():
            if meta is not None and meta.version == 0 and not disk.exists(join(directory, KEPT_META)):
                disk.write_file(join(directory, KEPT_META), disk.read_file(join(directory, META_PROPERTIES)))
        if plan.is_first:
            voter = standalone_voter(
                self._node.new.settings(BrokerSettings),
                wanted.controller_listener,
                wanted.directory_ids.get(wanted.metadata_log_dir) or random_directory_id(self._randomness),
            )
            records = list(records_beside_levels(plan.moved.image))
            wanted = dataclasses.replace(wanted, voters=[voter], records=records)
        format_folders(disk, wanted, self._randomness, self._clock.now_ms(), lambda line: None)

    def _restore_folders(self) -> Iterator[str]:
        """What was kept goes last: it is the sign that there is something to take back. Raises OSError."""
        disk, metas = self._disk, self._metas()
        for directory, meta in metas.items():
            kept, path = join(directory, KEPT_META), join(directory, META_PROPERTIES)
            if disk.exists(kept):
                disk.write_file(path, disk.read_file(kept))
            elif meta is not None and meta.version == 1:
                disk.remove(path)
                disk.sync_dir(directory)
            else:
                continue
            yield f"{directory} is of no node of KRaft any more"
        for directory in metas:
            self._remove_first_metadata(directory)
        for directory in metas:
            if disk.exists(join(directory, KEPT_META)):
                disk.remove(join(directory, KEPT_META))
                disk.sync_dir(directory)

    def _remove_first_metadata(self, directory: str) -> None:
        disk, folder = self._disk, join(directory, METADATA_PARTITION_DIR)
        if disk.exists(join(directory, BOOTSTRAP_CHECKPOINT)):
            disk.remove(join(directory, BOOTSTRAP_CHECKPOINT))
        if disk.is_dir(folder):
            for name in disk.names(folder):
                disk.remove(join(folder, name))
            disk.remove_dir(folder)
        disk.sync_dir(directory)


@contextlib.contextmanager
def _one_error() -> Iterator[None]:
    """What makes a migration impossible, as MigrationError."""
    try:
        yield
    except (UnmovableStateError, FormatError) as error:
        raise MigrationError(str(error)) from None
    except KafkaError as error:
        raise MigrationError(error.message or error.code.name) from None
