"""``ottla cluster balance`` with 3,000 partitions, and on brokers with several log directories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import ottla
from ottla.balance.folders import FolderMove
from ottla.cli.balance.execution import move_folders
from ottla.cli.balance.stopping import Stop
from ottla.cli.tools.client import Admin
from ottla.testing.cluster import Cluster

from ..helpers.command import Command

pytestmark = pytest.mark.slow
PARTITIONS = 3_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers with a folder, and one with two."""
    folder: Path = tmp_path_factory.mktemp("folders")
    own = {3: {"log.dirs": f"{folder}/one,{folder}/two"}}
    with ottla.Cluster(3, broker_properties=own, properties={"log.segment.bytes": "1048576"}) as running:
        yield running


def folders_of(admin: Admin, broker: int) -> dict[str, set[tuple[str, int]]]:
    (told,) = admin.describe_log_dirs(None, brokers=[broker])
    return {
        folder["log_dir"]: {(t["name"], p["partition_index"]) for t in folder["topics"] for p in t["partitions"]}
        for folder in told["log_dirs"]
    }


def test_three_thousand_partitions_on_a_cluster_with_an_empty_broker(cluster: Cluster) -> None:
    """Broker 3 gets a third of them, spread over its folders; then one of these goes to the other folder."""
    command = Command(cluster.bootstrap_servers)
    with closing(Admin(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        admin.create_topics({"many": {"assignments": {n: [1 + n % 2] for n in range(PARTITIONS)}}}, timeout_ms=100_000)
        options = ("--window", "0", "--disk-limit", "100", "--at-once", "1000", "--json")
        done = command.run("cluster", "balance", *options)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert [broker["after"]["replicas"] for broker in found["brokers"]] == [1045, 1045, 910], (
            "within 9 %, and no more"
        )
        assert len(found["moved"]) == 910
        there = folders_of(admin, 3)
        assert all(len(partitions) > 300 for partitions in there.values())
        (one, first), (two, _) = sorted(there.items())
        key = min(first)
        with Stop() as stop:
            assert move_folders(admin, [FolderMove(key, 3, one, two, 0, "it is asked for")], stop)
        assert key in folders_of(admin, 3)[two] - folders_of(admin, 3)[one]
