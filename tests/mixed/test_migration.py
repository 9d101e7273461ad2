"""``ottla migrate``: clusters of Apache Kafka 3.9 and of Ottla leave their ZooKeeper, and go on under either program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource

from ottla.compat_tests.session import eventually
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from ..quorum_mixed.helpers.either_quorum import OTHER, PATIENCE_S
from ..quorum_mixed.helpers.metadata_walk import MetadataWalk
from .helpers.migrating import KAFKA, OTTLA, MigratingCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@contextlib.contextmanager
def cluster_of(before: str, folder: Path, zookeeper: ZooKeeperProcess) -> Iterator[MigratingCluster]:
    cluster = MigratingCluster(folder / "nodes", zookeeper, f"/{folder.name}", before)
    with contextlib.closing(cluster):
        cluster.start_old()
        yield cluster


def without_mode(seen: dict[str, Any]) -> dict[str, Any]:
    """What clients are told, but for what is KRaft's own: features, and the one value of min.insync.replicas (KIP-966)."""
    configs = {
        resource: {name: value for name, value in values.items() if name != "min.insync.replicas"}
        for resource, values in seen["configs"].items()
    }
    return {**seen, "features": None, "configs": configs}


def told_of(walk: MetadataWalk) -> dict[str, Any]:
    """What clients are told, once every broker on the ZooKeeper has heard of what is set on all of them."""
    seen: dict[str, Any] = {}

    def is_heard() -> bool:
        seen.update(without_mode(walk.seen()))
        of_brokers = [values for (kind, _), values in seen["configs"].items() if kind == ConfigResource.Type.BROKER]
        return all("message.max.bytes" in values for values in of_brokers)

    eventually(is_heard, PATIENCE_S)
    return seen


def await_told(walk: MetadataWalk, told: dict[str, Any]) -> None:
    """Wait until clients are told the same as before."""
    seen: dict[str, Any] = {}

    def is_same() -> bool:
        seen.update(without_mode(walk.seen()))
        return seen == told

    with contextlib.suppress(AssertionError):
        eventually(is_same, PATIENCE_S)
    for what, before in told.items():
        assert seen[what] == before, what


@pytest.mark.parametrize("after", [OTTLA, KAFKA])
@pytest.mark.parametrize("before", [KAFKA, OTTLA])
def test_everything_goes_along(before: str, after: str, tmp_path: Path, zookeeper_server: ZooKeeperProcess) -> None:
    """Both programs read what there is, and what the other one has written since."""
    with cluster_of(before, tmp_path, zookeeper_server) as cluster:
        walk = MetadataWalk(cluster)
        walk.change("first")
        told = told_of(walk)
        cluster.stop()
        [*cluster.migrate_all()]
        for program in (after, OTHER[after]):
            for node in cluster.nodes.values():
                node.run_by(program)
            cluster.start()
            await_told(walk, told)
            walk.read_all()
            eventually(lambda: cluster.voter_ids() == {1, 2, 3}, PATIENCE_S)
            walk.change(f"by {program}".replace(" ", "-"))
            walk.read_all()
            told = told_of(walk)
            cluster.stop()


@pytest.mark.parametrize("before", [KAFKA, OTTLA])
def test_the_way_back(before: str, tmp_path: Path, zookeeper_server: ZooKeeperProcess) -> None:
    """It is open until the first start, which nothing in ZooKeeper mode can make once the migration has begun."""
    with cluster_of(before, tmp_path, zookeeper_server) as cluster:
        walk = MetadataWalk(cluster)
        walk.change("first")
        told = told_of(walk)
        used = cluster.migrate(1)
        assert used.returncode == 1 and "in use by another process" in used.stderr
        cluster.nodes[1].stop()
        refused = cluster.migrate(1)
        assert refused.returncode == 1 and "brokers are running (2, 3)" in refused.stderr
        cluster.stop()
        shown = cluster.migrate(1, "--dry-run")
        assert shown.returncode == 0, shown.stderr
        assert "left behind: nothing" in shown.stdout
        assert cluster.migrate(1).returncode == 0
        second = cluster.nodes[2]
        second.launch()
        eventually(lambda: not second.is_running, PATIENCE_S)
        assert "MOVED_TO_KRAFT" in second.log()
        assert cluster.migrate(2).returncode == 0
        early = cluster.migrate(2, "--undo")
        assert early.returncode == 1 and "node 1 has the cluster's metadata" in early.stderr
        for node_id in (1, 2):
            undone = cluster.migrate(node_id, "--undo")
            assert undone.returncode == 0, undone.stderr
        nothing = cluster.migrate(3, "--undo")
        assert nothing.returncode == 1 and "there is nothing to take back" in nothing.stderr
        cluster.start_old()
        await_told(walk, told)
        walk.read_all()
        walk.change("second")
