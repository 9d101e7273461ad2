"""The take-over of the log directories of a broker before KRaft, step by step: what a crash at any step leaves goes on."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.partitions import TopicPartition
from ottla.broker.config_file import load_config
from ottla.broker.directories.format_directories import levels_of
from ottla.broker.directories.take_over import TakeOver
from ottla.controller.zookeeper.leaving.old_state import (
    LEADER_EPOCHS_AHEAD,
    PRODUCER_IDS_AHEAD,
    check_no_own_cluster,
    read_state,
)
from ottla.controller.zookeeper.leaving.tree_image import MoveRules, tree_image
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create
from ottla.controller.zookeeper.store.journal import CorruptStateError
from ottla.log.checkpoints import read_meta_properties, read_topic_id
from ottla.log.disk import Disk, OsDisk
from ottla.log.log_directories import LogStartError
from ottla.metadata.image import ClusterImage
from ottla.security.entities import USERS, Entity

from ...controller.helpers.old_state import CLUSTER_ID, OldState, topic_id
from ..helpers.dying_disk import DiedError, DyingDisk
from ..helpers.old_directories import (
    DIRECTORIES,
    GONE,
    add_log,
    change_state,
    check_formatted,
    directory_with,
    formatting,
    full_disk,
    full_state,
    image_of,
    kept_tree,
    own,
    plain,
    take_over,
    write_state,
)

LEVELS = levels_of(formatting())
_PAGE = Path(__file__).parents[3] / "docs/operations.md"


def expected(state: OldState) -> dict[str, object]:
    return plain(tree_image(state.tree, MoveRules(LEVELS, broker_id=1), random.Random(1)).image)


def check_taken_over(disk: Disk, state: OldState) -> None:
    """Everything that the state had is there, and what the broker had before is set aside."""
    assert plain(image_of(disk, "/a")) == plain(image_of(disk, "/b")) == expected(state)
    check_formatted(disk)
    assert not disk.is_dir("/a/__cluster_state") and not disk.is_dir("/a/__cluster_state_taken")
    assert b"before-kraft.journal" in disk.read_file("/a/__cluster_state")
    for place, known in (("/a/orders-0", 1), ("/b/orders-1", 1), ("/b/plain-0", 2)):
        assert read_topic_id(disk, f"{place}/partition.metadata") == topic_id(known)
        assert disk.read_file(f"{place}/00000000000000000000.log").startswith(b"records of")
    for directory in DIRECTORIES:
        assert [name for name in disk.names(directory) if name.startswith("gone")] == [
            name for name in disk.names(directory) if name.endswith("-delete")
        ]
    check_kept(disk, state)


def check_kept(disk: Disk, state: OldState) -> None:
    """What is set aside is what there was, except that nothing is given out a second time by who goes back to it."""
    kept, before = kept_tree(disk), state.tree
    assert kept.nodes.keys() == before.nodes.keys()
    for path, node in before.nodes.items():
        data = kept.nodes[path].data
        if path == znodes.PRODUCER_ID_BLOCK:
            assert znodes.decode_producer_id_block(data)[0] >= 4000 + PRODUCER_IDS_AHEAD
        elif path.endswith("/state"):
            now, then = znodes.decode_state(data), znodes.decode_state(node.data)
            assert now.leader_epoch >= then.leader_epoch + LEADER_EPOCHS_AHEAD
            assert now._replace(leader_epoch=0) == then._replace(leader_epoch=0)
        else:
            assert data == node.data


def operations_of_all() -> int:
    disk = full_disk(full_state())
    take_over(disk)
    return disk.operations


def test_everything_is_taken_over() -> None:
    state = full_state()
    disk = full_disk(state)
    take_over(disk)
    check_taken_over(disk, state)
    before = disk.operations
    take_over(disk, seed=1)
    assert disk.operations == before, "the second start has nothing to do"


@pytest.mark.parametrize("seed", range(20))
def test_all_of_it_is_on_stable_storage_at_the_end(seed: int) -> None:
    """The metadata log begins after it."""
    state = full_state()
    disk = full_disk(state)
    take_over(disk)
    disk.restart(random.Random(seed))
    check_taken_over(disk, state)


@pytest.mark.parametrize("mode", ["killed", *range(3)], ids=lambda mode: mode if mode == "killed" else f"power {mode}")
def test_a_crash_at_each_operation_loses_nothing(mode: int | str) -> None:
    state = full_state()
    for number in range(operations_of_all()):
        disk = full_disk(state)
        crash_at(disk, number, mode)
        take_over(disk, seed=number + 1)
        check_taken_over(disk, state)


def crash_at(disk: DyingDisk, number: int, mode: int | str) -> None:
    disk.dies_at = number
    with pytest.raises(DiedError):
        take_over(disk, seed=number)
    disk.restart(random.Random(f"{number} {mode}") if mode != "killed" else None)


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_of_the_start_after_a_crash_loses_nothing(seed: int) -> None:
    chance, state = random.Random(seed), full_state()
    disk = full_disk(state)
    for _ in range(chance.randint(2, 6)):
        disk.dies_at = disk.operations + chance.randrange(operations_of_all())
        try:
            take_over(disk, seed=chance.randrange(1 << 30))
        except DiedError:
            disk.restart(chance if chance.random() < 0.7 else None)
    disk.dies_at = None
    take_over(disk)
    check_taken_over(disk, state)


def test_what_an_older_ottla_does_after_a_crash_counts() -> None:
    """As long as it finds its state. Once that is set aside it does not start any more."""
    counts = set()
    for number in range(operations_of_all()):
        state = full_state()
        disk = full_disk(state)
        crash_at(disk, number, "killed")
        is_there = disk.is_dir("/a/__cluster_state")
        counts.add(is_there)
        if is_there:
            state.config("users", "carol", {"producer_byte_rate": "5"})
            change_state(disk, *state.transactions[-1].operations)
        take_over(disk, seed=1)
        check_taken_over(disk, state)
        assert (Entity(USERS, "carol") in image_of(disk, "/a").quotas) == is_there
    assert counts == {True, False}


def test_ids_of_directories_stay() -> None:
    disk = full_disk(full_state())
    own(disk, "/b", directory_id=topic_id(77))
    take_over(disk)
    meta = read_meta_properties(disk, "/b")
    assert meta is not None and meta.directory_id == topic_id(77)
    check_formatted(disk)


def test_a_torn_write_of_the_journal_was_never_acknowledged() -> None:
    state = full_state()
    disk = full_disk(state)
    file = disk.open("/a/__cluster_state/journal")
    file.write(b"\0\0\0\x10torn", file.size())
    take_over(disk)
    check_taken_over(disk, state)


def test_a_damaged_state_is_left_as_it_is() -> None:
    disk = full_disk(full_state())
    disk.open("/a/__cluster_state/journal").write(b"?", 10)
    before = {name: disk.read_file(f"/a/__cluster_state/{name}") for name in disk.names("/a/__cluster_state")}
    with pytest.raises(CorruptStateError, match="damaged at byte 0"):
        take_over(disk)
    assert before == {name: disk.read_file(f"/a/__cluster_state/{name}") for name in disk.names("/a/__cluster_state")}
    meta = read_meta_properties(disk, "/a")
    assert meta is not None and meta.version == 0


def test_a_topic_that_may_not_be_deleted_stays() -> None:
    state = full_state()
    disk = full_disk(state)
    take_over(disk, delete_topic_enable="false")
    assert image_of(disk, "/a").topics["gone"].topic_id == GONE
    assert directory_with(disk, TopicPartition("gone", 0)) == "/a"


def test_a_log_of_an_older_topic_of_that_name_is_not_deleted() -> None:
    disk = full_disk(full_state())
    add_log(disk, "/b", "gone", 5, topic_id(123))
    take_over(disk)
    assert disk.is_dir("/b/gone-5")


def test_a_metadata_log_of_another_cluster_is_set_aside() -> None:
    """An Ottla before KRaft has adopted the logs of a node of Apache Kafka, and left its metadata log where it was."""
    state = full_state()
    disk = full_disk(state)
    own(disk, *DIRECTORIES[:1], version=1, directory_id=topic_id(50))
    disk.make_dir("/a/__cluster_metadata-0")
    disk.write_file("/a/__cluster_metadata-0/00000000000000000000.log", b"of Kafka")
    disk.settle()
    take_over(disk)
    check_taken_over(disk, state)
    assert disk.names("/a/__cluster_metadata-0") == ["00000000000000000000-0000000000.checkpoint"]
    (aside,) = (name for name in disk.names("/a") if name.startswith("__cluster_metadata-0.") and "stray" in name)
    assert disk.read_file(f"/a/{aside}/00000000000000000000.log") == b"of Kafka"


def test_users_that_were_added_before_the_first_start_stay() -> None:
    disk = DyingDisk()
    disk.make_dir("/a")
    quota = znodes.encode_config({"producer_byte_rate": "5"})
    change_state(disk, Create("/config"), Create("/config/users"), Create("/config/users/alice", quota))
    take_over(disk, directories=("/a",))
    check_formatted(disk, ("/a",))
    assert dict(image_of(disk, "/a").quotas.items()) == {Entity(USERS, "alice"): {"producer_byte_rate": 5.0}}


def test_the_way_back_of_the_page(tmp_path: Path) -> None:
    """What docs/operations.md says is done in the first log directory."""
    state, disk = full_state(), OsDisk()
    directories = (str(tmp_path / "a"), str(tmp_path / "b"))
    own(disk, *directories)
    write_state(disk, state, snapshot_after=20, directory=directories[0])
    before = read_state(disk, directories[0])
    take_over(disk, directories=directories)
    (steps,) = re.findall(r"<!-- the way back -->\n```sh\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    subprocess.run(["sh", "-eu", "-c", steps], cwd=directories[0], check=True)
    assert read_state(disk, directories[0]).nodes.keys() == before.nodes.keys()
    assert not [name for name in disk.names(directories[0]) if name.startswith("before-kraft")]


# --- what is refused --------------------------------------------------------------------------------------------------


def of_a_zookeeper(disk: Disk) -> None:
    own(disk, "/b", zookeeper="zk:2181")


def with_an_older_ottla_since(disk: Disk) -> None:
    take_over(disk)
    disk.remove("/a/__cluster_state")
    write_state(disk, full_state())


def with_two_states(disk: Disk) -> None:
    disk.make_dir("/b/__cluster_state")


def of_another_cluster(disk: Disk) -> None:
    own(disk, "/b", cluster_id="another")


def of_another_node(disk: Disk) -> None:
    own(disk, "/b", broker_id=2)


def with_a_topic_that_is_not_understood(disk: Disk) -> None:
    change_state(disk, Create(znodes.topic_path("broken"), b"?"))


REFUSED: dict[str, tuple[Callable[[Disk], None], str]] = {
    "ZooKeeper": (
        of_a_zookeeper,
        r"belongs to broker 1 of a cluster whose state is in the ZooKeeper zk:2181: it is started",
    ),
    "an older Ottla since": (with_an_older_ottla_since, "an older Ottla has run here without them"),
    "two states": (with_two_states, "the cluster's state is in more than one log directory: /a, /b"),
    "another cluster": (of_another_cluster, f"Invalid cluster.id in: /b/meta.properties. Expected {CLUSTER_ID}"),
    "another node": (of_another_node, "Invalid node.id in: /b/meta.properties. Expected 1, but read 2"),
    "not understood": (with_a_topic_that_is_not_understood, "/brokers/topics/broken is not understood"),
}


@pytest.mark.parametrize(("prepare", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(prepare: Callable[[Disk], None], why: str) -> None:
    disk = full_disk(full_state())
    prepare(disk)
    metas = [read_meta_properties(disk, directory) for directory in DIRECTORIES]
    with pytest.raises(LogStartError, match=why):
        take_over(disk)
    assert metas == [read_meta_properties(disk, directory) for directory in DIRECTORIES]


def test_a_node_whose_metadata_log_is_not_there_is_no_older_broker() -> None:
    """Its topics would be guessed by the logs of the other directories."""
    disk = full_disk(full_state())
    take_over(disk)
    disk.remove_dir("/a")
    disk.make_dir("/a")
    with pytest.raises(
        LogStartError, match="/b belongs to a KRaft node, and /a, where its metadata log should be"
    ) as why:
        take_over(disk)
    assert why.value.may_pass


def test_a_node_of_a_quorum_of_others_is_no_older_broker() -> None:
    disk = full_disk(full_state())
    take_over(disk)
    for directory in DIRECTORIES:
        meta = read_meta_properties(disk, directory)
        assert meta is not None
        own(disk, directory, version=1, broker_id=2, directory_id=meta.directory_id)
    with pytest.raises(LogStartError, match="node 2 of a cluster with the controllers 1: it is started"):
        take_over(disk)


def test_a_zookeeper_is_no_place_for_what_a_lone_broker_has() -> None:
    disk = full_disk(full_state())
    with pytest.raises(LogStartError, match="/a has the metadata of a cluster, and zookeeper"):
        check_no_own_cluster(disk, DIRECTORIES)
    take_over(disk)
    check_no_own_cluster(disk, DIRECTORIES)  # ``meta.properties`` tells of KRaft, which is refused there


# --- whose directories they are ---------------------------------------------------------------------------------------


def plan_of(disk: Disk) -> TakeOver:
    return TakeOver(disk, load_config({}), DIRECTORIES, DIRECTORIES[0])


def test_new_directories_are_nobodys() -> None:
    disk = DyingDisk()
    assert not plan_of(disk).is_due
    disk.make_dir("/a")
    disk.make_dir("/b")
    plan = plan_of(disk)
    assert (plan.is_due, plan.needs_logs, plan.broker_id, plan.cluster_id) == (False, False, None, None)


def test_whose_they_are() -> None:
    disk = full_disk(full_state())
    plan = plan_of(disk)
    assert (plan.is_due, plan.needs_logs, plan.broker_id, plan.cluster_id) == (True, False, 1, CLUSTER_ID)


def test_a_broker_of_zookeeper_mode_that_had_no_topics_becomes_a_new_cluster() -> None:
    disk = DyingDisk()
    own(disk, *DIRECTORIES)
    plan = plan_of(disk)
    assert (plan.is_due, plan.needs_logs, plan.cluster_id) == (True, False, CLUSTER_ID)
    plan.run(formatting(), random.Random(1), 1)
    check_formatted(disk)
    assert plain(image_of(disk, "/a"))["topics"] == plain(ClusterImage())["topics"]


def test_logs_without_metadata_are_asked_for() -> None:
    disk = DyingDisk()
    own(disk, *DIRECTORIES)
    add_log(disk, "/b", "t", 0, topic_id(1))
    assert plan_of(disk).needs_logs
