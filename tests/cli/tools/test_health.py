"""``ottla cluster health``: of one broker, and of two of which one is down."""

from __future__ import annotations

import json

import pytest

import ottla

from ..helpers.command import Command

pytestmark = pytest.mark.slow


def test_a_healthy_cluster(command: Command) -> None:
    healthy = command.json("cluster", "health")
    assert (healthy["healthy"], healthy["controller"], healthy["brokers"]) == (True, 1, [1])
    assert command("cluster", "health").startswith("healthy: true\ncontroller: 1\n")


def test_each_replica_tells_of_producers_and_a_broker_that_is_down_is_not_healthy() -> None:
    with ottla.Cluster(2) as cluster:
        command = Command(cluster.bootstrap_servers)
        command("topics", "create", "both", "-r", "2")
        command("topics", "create", "alone", "-r", "1")
        command("produce", "both", given="x\n")
        by_replica = [command.json("transactions", "producers", "both", "--broker", str(n)) for n in (1, 2)]
        assert [[row["last_sequence"] for row in rows] for rows in by_replica] == [[0], [0]]  # a follower tells, too
        (described,) = command.json("topics", "describe", "alone")
        gone = described["partitions"][0]["leader"]
        cluster.kill(gone)
        left = Command(cluster.brokers[3 - gone].bootstrap_servers)
        for _ in range(100):  # until the session of the one that is down has ended
            done = left.run("cluster", "health", "--json")
            found = json.loads(done.stdout)
            if found["offline_partitions"] and found["brokers_down"]:
                break
        assert (done.returncode, found["healthy"], found["brokers_down"]) == (1, False, [gone])
        assert "alone-0" in found["offline_partitions"] and "both-0" in found["under_replicated_partitions"]
        assert left.run("cluster", "health").stdout.splitlines()[0] == "healthy: false"
