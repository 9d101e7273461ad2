"""``ottla cluster drain`` on three brokers with a ZooKeeper: a broker that is about to stop hands its leaderships over."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.compat_tests.clusters import OttlaCluster
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from ...helpers.command import Command

pytestmark = pytest.mark.slow
_numbers = itertools.count()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess) -> Iterator[OttlaCluster]:
    properties = {"auto.leader.rebalance.enable": "false"}
    cluster = OttlaCluster(
        tmp_path_factory.mktemp("drain"), zookeeper=zookeeper_server, root="/drain", properties=properties
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def servers(brokers: OttlaCluster) -> str:
    return brokers.bootstrap


@pytest.fixture
def cluster(brokers: OttlaCluster) -> Iterator[OttlaCluster]:
    yield brokers
    brokers.start()


@pytest.fixture
def topic(cluster: OttlaCluster, command: Command) -> Iterator[Callable[..., str]]:
    """Makes topics, in sync; the name. They go with the test, when all brokers run again."""
    made = []

    def make(partitions: int = 1, replicas: int = 3, *options: str) -> str:
        made.append(name := f"drained-{next(_numbers)}")
        command("topics", "create", name, "-p", str(partitions), "-r", str(replicas), *options)
        command("cluster", "wait")
        return name

    yield make
    cluster.start()
    for name in made:
        command("topics", "delete", name)


def partitions(command: Command, name: str) -> list[dict[str, Any]]:
    (described,) = command.json("topics", "describe", name)
    found: list[dict[str, Any]] = described["partitions"]
    return found


def leaders(command: Command, name: str) -> dict[int, int | None]:
    return {each["partition"]: each["leader"] for each in partitions(command, name)}


def only_at(command: Command, topic: Callable[..., str], broker_id: int) -> str:
    """A topic whose only replica is at this broker."""
    return next(name for name in (topic(1, 1) for _ in range(60)) if leaders(command, name) == {0: broker_id})


def test_a_broker_is_drained_stopped_and_gets_its_leaderships_back(
    cluster: OttlaCluster, command: Command, topic: Callable[..., str]
) -> None:
    name = topic(6, 3, "-c", "min.insync.replicas=2")
    lone = only_at(command, topic, 2)
    before = leaders(command, name)

    drained: Any = command.json("cluster", "drain", "2")
    moved = {each["partition"]: each["leader"] for each in drained["moved"] if each["topic"] == name}
    assert moved.keys() == {number for number, leader in before.items() if leader == 2}
    assert moved.items() <= leaders(command, name).items()
    assert (drained["drained"], drained["left"]) == (True, [])
    assert {"topic": lone, "partition": 0} in drained["only_replica"]
    rows = command("topics", "describe", name, "--at-min-isr").splitlines()
    assert len(rows) == 1 + 6 and all(row.endswith("Health: under-replicated") for row in rows[1:])
    assert command("cluster", "drain", "2").startswith("Moved 0 leaderships of broker 2.\n")  # again does no harm

    why = command.refused("cluster", "drain", "3")
    assert "6 partitions would refuse acks=all" in why and f"{name}-0" in why and "--force" in why
    assert {*leaders(command, name).values()} == {1, 3}, "nothing was moved"

    cluster.restart_broker(2)
    command("cluster", "wait")
    elected = command.rows("cluster", "elect-leaders", "--topic", name)
    assert {int(row[1]): row[3:] for row in elected} == {
        number: [str(leader), "elected" if leader == 2 else "not needed"] for number, leader in before.items()
    }
    assert leaders(command, name) == before


def test_a_drain_that_leaves_something(cluster: OttlaCluster, command: Command, topic: Callable[..., str]) -> None:
    name = topic(1, 2)
    (described,) = partitions(command, name)
    leader = described["leader"]
    (other,) = {*described["replicas"]} - {leader}
    cluster.broker(other).kill()
    cluster.wait_joined()
    done = command.run("cluster", "drain", str(leader))
    assert done.returncode == 1
    assert f"{name}\t0\t" in done.stdout and f"\t{leader}\tbroker {other} is down\n" in done.stdout
    assert done.stderr == f"ottla: broker {leader} leads 1 partition still, which will have no leader without it\n"
    assert "there is no broker 4, only" in command.refused("cluster", "drain", "4")
    cluster.restart_broker(leader)


def test_a_drained_broker_gets_no_replicas_before_it_was_restarted(
    cluster: OttlaCluster, command: Command, topic: Callable[..., str]
) -> None:
    led_by_3, name = only_at(command, topic, 3), only_at(command, topic, 1)
    command("cluster", "add-replicas", "--topic", led_by_3, "--replication-factor", "2")
    command("cluster", "drain", "3")
    add = ("cluster", "add-replicas", "--topic", name, "--replication-factor", "3")
    why = command.refused(*add)
    assert "there are 2 brokers, too few for 3 replicas; broker 3 is in sync nowhere" in why
    cluster.restart_broker(3)
    command("cluster", "wait")
    command(*add)
    (described,) = partitions(command, name)
    assert {*described["replicas"]} == {1, 2, 3}
