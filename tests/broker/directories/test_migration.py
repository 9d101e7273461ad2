"""A cluster leaves its ZooKeeper, node by node; processes die at each step of it, on the way there and back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.base.partitions import NO_LEADER
from ottla.broker.directories.migration_plan import KEPT_META, MigrationError
from ottla.controller.zookeeper.leaving.migration_fence import FENCED_ID, MIGRATION
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Set
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction
from ottla.log.checkpoints import read_meta_properties, read_topic_id
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotReader
from ottla.security.entities import BROKERS, DEFAULT, Entity

from ...controller.helpers.old_state import CLUSTER_ID, TOKEN, topic_id
from ..helpers.dying_disk import DiedError
from ..helpers.migrating_nodes import DIRECTORIES, NODES, MigratingNodes
from ..helpers.old_directories import add_log, image_of, own, plain

Step = Callable[[MigratingNodes], Awaitable[None]]
MODES = ["killed", 0]


def write(nodes: MigratingNodes, *operations: Any) -> None:
    nodes.tree.apply(ZnodeTransaction(nodes.tree.zxid + 1, 1, 1, operations))


def version(nodes: MigratingNodes, node_id: int, directory: str = "/a") -> int:
    meta = read_meta_properties(nodes.disks[node_id], directory)
    assert meta is not None
    return meta.version


async def there(nodes: MigratingNodes) -> None:
    for node_id in NODES:
        await nodes.migrate(node_id)


async def back(nodes: MigratingNodes) -> None:
    for node_id in NODES:
        try:
            await nodes.undo(node_id)
        except MigrationError as error:
            assert "nothing to take back" in str(error)


def check_moved(nodes: MigratingNodes) -> None:
    """Each node is one of the same cluster, and only the first one votes and has the metadata."""
    aged = znodes.decode_topic(nodes.tree.nodes[znodes.topic_path("aged")].data).topic_id
    for node_id, disk in nodes.disks.items():
        metas = [read_meta_properties(disk, directory) for directory in DIRECTORIES]
        assert [(meta.version, meta.broker_id, meta.cluster_id) for meta in metas if meta] == [
            (1, node_id, CLUSTER_ID)
        ] * 2
        path = f"/a/__cluster_metadata-0/{BOOTSTRAP_ID.file_name}"
        assert disk.exists(path) == (node_id == 1)
        for name, where, expected in (
            ("orders-0", "/a", topic_id(1)),
            ("orders-1", "/b", topic_id(1)),
            ("aged-0", "/b", aged),
        ):
            if disk.is_dir(f"{where}/{name}"):
                assert read_topic_id(disk, f"{where}/{name}/partition.metadata") == expected
        assert set(image_of(disk, "/a").topics) == ({"orders", "aged"} if node_id == 1 else set())
    voters = SnapshotReader(nodes.disks[1].read_file(path), path).head.voters
    assert voters is not None
    first = read_meta_properties(nodes.disks[1], "/a")
    assert first is not None
    assert [(each.voter_id, each.voter_directory_id) for each in voters.voters] == [(1, first.directory_id)]


def check_one_mode(nodes: MigratingNodes) -> None:
    """A node that starts as one of KRaft has the metadata, or finds who has them: then none starts on the ZooKeeper."""
    cluster_id = znodes.decode_cluster_id(nodes.tree.nodes[znodes.CLUSTER_ID].data)
    is_fenced = MIGRATION in nodes.tree.nodes
    assert (cluster_id == FENCED_ID) == is_fenced
    if version(nodes, 1) == 1:
        assert is_fenced


async def die_at_each_step(whole: MigratingNodes, step: Step, then: Step, mode: int | str) -> int:
    """Interrupt ``step`` everywhere; each time the same is done again, and ``then`` looks. How many places there are."""
    number = 0
    while True:
        nodes = whole.copy()
        nodes.deaths.dies_at = number
        try:
            await step(nodes)
        except DiedError:
            pass
        else:
            return number
        nodes.restart(random.Random(f"{number} {mode}") if mode != "killed" else None)
        check_one_mode(nodes)
        await then(nodes)
        number += 1


async def test_everything_is_in_the_first_metadata() -> None:
    nodes = MigratingNodes()
    await there(nodes)
    check_moved(nodes)
    image = image_of(nodes.disks[1], "/a")
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (NO_LEADER, 5, 3)
    assert (partition.replicas, partition.isr) == ((1, 2, 3), (1, 2, 3))
    assert image.configs[Entity(BROKERS, "1")] == {"log.cleaner.threads": "2", "min.insync.replicas": "2"}
    assert image.configs[Entity(BROKERS, DEFAULT)] == {"log.retention.ms": "5000"}
    assert image.next_producer_id == 5000
    assert [*image.tokens] == [TOKEN.token_id] and len(image.acl_ids) == 3 and len(image.scram) >= 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_death_at_each_step_there_loses_nothing(mode: int | str) -> None:
    whole, expected = MigratingNodes(), MigratingNodes()
    await there(expected)
    image = plain(image_of(expected.disks[1], "/a"))

    async def again(nodes: MigratingNodes) -> None:
        await there(nodes)
        check_moved(nodes)
        found = plain(image_of(nodes.disks[1], "/a"))
        for what in ("configs", "quotas", "scram", "acl_ids", "tokens"):
            assert found[what] == image[what]

    assert await die_at_each_step(whole, there, again, mode) > 60


@pytest.mark.parametrize("mode", MODES)
async def test_a_death_at_each_step_there_leaves_the_way_back_open(mode: int | str) -> None:
    whole = MigratingNodes()
    before = {node_id: whole.files(node_id) for node_id in NODES}

    async def take_back(nodes: MigratingNodes) -> None:
        await back(nodes)
        check_gone_back(nodes, before)

    await die_at_each_step(whole, there, take_back, mode)


@pytest.mark.parametrize("mode", MODES)
async def test_a_death_at_each_step_back(mode: int | str) -> None:
    whole = MigratingNodes()
    before = {node_id: whole.files(node_id) for node_id in NODES}
    await there(whole)
    whole.deaths.done = 0

    async def again(nodes: MigratingNodes) -> None:
        await back(nodes)
        check_gone_back(nodes, before)

    assert await die_at_each_step(whole, back, again, mode) > 20


def check_gone_back(nodes: MigratingNodes, before: dict[int, dict[str, bytes]]) -> None:
    """Files are what they were, but for the id of a topic that had none, which is in the ZooKeeper, too."""
    assert MIGRATION not in nodes.tree.nodes
    assert znodes.decode_cluster_id(nodes.tree.nodes[znodes.CLUSTER_ID].data) == CLUSTER_ID
    for node_id, files in before.items():
        found = nodes.files(node_id)
        found.pop("/b/aged-0/partition.metadata", None)
        assert found == files


# --- what is refused ---------------------------------------------------------------------------------------------------


async def refused(nodes: MigratingNodes, node_id: int = 1, **options: Any) -> str:
    """Why a node is not moved; nothing has changed."""
    files, zxid = nodes.files(node_id), nodes.tree.zxid
    with pytest.raises(MigrationError) as raised:
        await nodes.migrate(node_id, **options)
    assert (nodes.files(node_id), nodes.tree.zxid) == (files, zxid)
    return str(raised.value)


async def test_a_cluster_that_runs() -> None:
    nodes = MigratingNodes()
    write(nodes, Create("/brokers/ids/2", b"{}", ephemeral=True))
    assert "brokers are running (2)" in await refused(nodes)
    write(nodes, Delete("/brokers/ids/2"), Create(znodes.CONTROLLER, b"{}", ephemeral=True))
    assert "/controller exists" in await refused(nodes)


async def test_a_broker_that_is_no_controller_is_not_the_first() -> None:
    nodes = MigratingNodes()
    assert "begin with a node that has controller" in await refused(nodes, roles="broker")
    await nodes.migrate(1)
    await nodes.migrate(2, roles="broker")
    assert version(nodes, 2) == 1


async def test_voters_that_are_a_property() -> None:
    nodes = MigratingNodes()
    with pytest.raises(MigrationError, match=r"the new file has controller\.quorum\.voters"):
        nodes.migration(1, controller_quorum_voters="1@node1:9093", controller_quorum_bootstrap_servers="")


async def test_directories_of_another_cluster() -> None:
    nodes = MigratingNodes()
    own(nodes.disks[1], *DIRECTORIES, cluster_id="another")
    assert "belong to cluster another" in await refused(nodes)


async def test_directories_that_are_empty() -> None:
    nodes = MigratingNodes()
    nodes.disks[1]._names.clear()
    with pytest.raises(MigrationError, match="the cluster has replicas on node 1, and its log directories are empty"):
        await nodes.migrate(1)


async def test_replicas_that_are_being_moved() -> None:
    nodes = MigratingNodes()
    wanted = znodes.encode_reassignments([("orders", 0, [2, 3])])
    write(nodes, Create(znodes.REASSIGN_PARTITIONS, wanted))
    assert "replicas are being moved (orders-0)" in await refused(nodes)


async def test_a_topic_that_is_being_deleted() -> None:
    nodes = MigratingNodes()
    write(nodes, Create(znodes.delete_topic_path("orders")))
    assert "topics are being deleted (orders)" in await refused(nodes)


async def test_nodes_that_are_not_known() -> None:
    nodes = MigratingNodes()
    write(nodes, Create("/config/gadgets"), Create("/hbase"))
    assert await refused(nodes) == "these nodes are unknown, and would be lost: /config/gadgets"


async def test_a_migration_of_kafkas_own() -> None:
    nodes = MigratingNodes()
    write(nodes, Create("/migration", b'{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":2}'))
    assert "has begun to move this cluster" in await refused(nodes)


async def test_what_would_be_lost_has_to_be_accepted() -> None:
    nodes = MigratingNodes()
    add_log(nodes.disks[1], "/a", "orders", 7, topic_id(1))
    add_log(nodes.disks[1], "/a", "unknown", 0, topic_id(9))
    write(nodes, Create("/consumers/of-old"))
    write(nodes, Set("/config/brokers/1", znodes.encode_config({"ssl.key.password": "cannot be decrypted"})))
    why = await refused(nodes)
    assert why.startswith("this would be lost: ssl.key.password of broker 1")
    assert "keep in ZooKeeper: of-old" in why and "sets aside: orders-7, unknown-0" in why
    with nodes.migration(1) as migration:
        assert len((await migration.run(may_leave_behind=True)).left_behind) == 3
    assert version(nodes, 1) == 1


async def test_a_directory_that_was_formatted_by_somebody_else() -> None:
    nodes = MigratingNodes()
    own(nodes.disks[1], *DIRECTORIES, version=1, directory_id=topic_id(1))
    assert "has been formatted as one of a node of KRaft already" in await refused(nodes)


async def test_a_node_that_has_been_started() -> None:
    nodes = MigratingNodes()
    await there(nodes)
    nodes.disks[1].write_file("/a/__cluster_metadata-0/00000000000000000000.log", b"")
    for attempt in (nodes.migrate, nodes.undo):
        with pytest.raises(MigrationError, match="the node has been started as one of KRaft"):
            await attempt(1)
    with pytest.raises(MigrationError, match="node 1 has the cluster's metadata: take it back there first"):
        await nodes.undo(2)


async def test_a_controller_of_the_old_mode_behind_the_fence() -> None:
    """It had read the cluster's id before; what it has changed since is not in the metadata that were moved."""
    nodes = MigratingNodes()
    await nodes.migrate(1)
    write(nodes, Set(znodes.CONTROLLER_EPOCH, b"8"))
    assert "a broker in ZooKeeper mode has been the controller since" in await refused(nodes, 2)


async def test_a_broker_that_starts_while_the_fence_is_put_up() -> None:
    nodes = MigratingNodes()
    migration = nodes.migration(1)
    multi = migration._store.multi

    async def late(operations: Any) -> Any:
        results = await multi(operations)
        if MIGRATION in nodes.tree.nodes and "/brokers/ids/3" not in nodes.tree.nodes:
            write(nodes, Create("/brokers/ids/3", b"{}", ephemeral=True))
        return results

    migration._store.multi = late  # type: ignore[method-assign]
    with migration, pytest.raises(MigrationError, match=r"brokers have started meanwhile \(3\)"):
        await migration.run()
    assert MIGRATION not in nodes.tree.nodes and version(nodes, 1) == 0


async def test_a_controller_that_is_elected_while_the_tree_is_read() -> None:
    nodes = MigratingNodes()
    migration = nodes.migration(1)
    multi = migration._store.multi

    async def late(operations: Any) -> Any:
        if any(isinstance(each, Create) and each.path == MIGRATION for each in operations):
            write(nodes, Set(znodes.CONTROLLER_EPOCH, b"8"))
        return await multi(operations)

    migration._store.multi = late  # type: ignore[method-assign]
    with migration, pytest.raises(MigrationError, match="the cluster's state has changed while it was read"):
        await migration.run()
    assert MIGRATION not in nodes.tree.nodes and version(nodes, 1) == 0


async def test_a_dry_run_changes_nothing() -> None:
    nodes = MigratingNodes()
    files, zxid = nodes.files(1), nodes.tree.zxid
    with nodes.migration(1) as migration:
        shown = await migration.examine()
    assert (nodes.files(1), nodes.tree.zxid) == (files, zxid)
    assert shown.left_behind == []
    assert f"cluster {CLUSTER_ID}, node 1" in shown.stays
    assert "2 topics with 3 partitions: ids, replicas, in-sync replicas, epochs" in shown.stays
    assert "1 topic without an id get one: aged" in shown.changes
    assert f"/a: meta.properties gets version 1; the previous file is kept as {KEPT_META}" in shown.changes
    assert "node 1 is the first voter" in shown.changes


async def test_a_node_that_is_moved_already() -> None:
    nodes = MigratingNodes()
    await there(nodes)
    files = nodes.files(1)
    assert (await nodes.migrate(1)).changes == []
    assert nodes.files(1) == files


async def test_a_controller_that_was_no_broker() -> None:
    """Its directories are empty before, and not there."""
    nodes = MigratingNodes()
    for directory in DIRECTORIES:
        nodes.disks[1].remove(f"{directory}/meta.properties")
    nodes.disks[1]._names.clear()
    await nodes.migrate(1, roles="controller")
    await nodes.migrate(2, roles="broker")
    assert {*image_of(nodes.disks[1], "/a").topics} == {"orders", "aged"}
