"""``ottla cluster describe`` on one broker."""

from __future__ import annotations

import pytest

import ottla

from ..helpers.command import Command

pytestmark = pytest.mark.slow


def test_the_cluster(command: Command, broker: ottla.Broker, topic: str) -> None:
    cluster = command.json("cluster", "describe")
    assert (cluster["cluster_id"], cluster["controller"]) == (broker.cluster_id, 1)
    assert (cluster["under_replicated_partitions"], cluster["offline_partitions"]) == (0, 0)
    (row,) = cluster["brokers"]
    assert f"{row['host']}:{row['port']}" == broker.bootstrap_servers
    assert f"cluster id: {broker.cluster_id}\n" in command("cluster", "describe")
