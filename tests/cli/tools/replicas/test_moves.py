"""``ottla cluster reassign | add-replicas | drain --replicas`` on four brokers in three racks, with records on the way.

What ``kafka-reassign-partitions`` does is in tests/cli/processes/kafka-reassign-partitions.txt.
"""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

import ottla
from ottla.cli.tools.client import Admin
from ottla.cli.tools.replicas.moves import ClusterLayout
from ottla.compat_tests.session import eventually
from ottla.testing.cluster import Cluster

from ...helpers.command import Command
from ...helpers.replicas import replicas_of, throttles

pytestmark = pytest.mark.slow
RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
SESSION_S = 20
RECORDS = 60
SIZE = 10_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    own = {broker_id: {"broker.rack": rack} for broker_id, rack in RACKS.items()}
    properties = {"auto.leader.rebalance.enable": "false", "replica.fetch.max.bytes": str(2 * SIZE)}
    properties["broker.session.timeout.ms"] = str(1000 * SESSION_S)
    with ottla.Cluster(4, broker_properties=own, properties=properties) as running:
        yield running


@pytest.fixture
def cluster(brokers: Cluster) -> Cluster:
    return brokers


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def topic(cluster: Cluster, admin: Admin) -> Iterator[Callable[[dict[int, list[int]]], str]]:
    """Makes topics with these replicas and records in each partition; the name. All four run at the end, and the topics go.

    In this order: a broker that finds partitions on its disk waits until it is told of topics, and ten seconds if there are none.
    """
    made = []

    def make(replicas: dict[int, list[int]]) -> str:
        name = f"moved-{next(_numbers)}"
        admin.create_topics({name: {"assignments": replicas}})
        made.append(name)
        cluster.wait_in_sync(name)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(RECORDS):
                for partition in replicas:
                    producer.send(name, b"%d" % number + bytes(SIZE), partition=partition)
        return name

    yield make
    for broker in cluster.brokers.values():
        if not broker.is_running:
            broker.start()
    for name in made:
        cluster.delete_topic(name)


def read(cluster: Cluster, name: str, partitions: int = 1) -> int:
    """How many records can be read."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, consumer_timeout_ms=5000)
    consumer.assign([TopicPartition(name, number) for number in range(partitions)])
    consumer.seek_to_beginning()
    found = sum(1 for _ in itertools.islice(consumer, RECORDS * partitions))
    consumer.close()
    return found


def plan_file(folder: Path, name: str, replicas: dict[int, list[int]]) -> str:
    partitions = [{"topic": name, "partition": number, "replicas": to} for number, to in replicas.items()]
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_replicas_go_where_a_file_says(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic({0: [1, 2], 1: [2, 3]})
    path = plan_file(tmp_path, name, {0: [3, 4], 1: [2, 3]})
    assert command.rows("cluster", "reassign", path) == [[name, "0", "1,2", "3,4", "moved"]]
    assert replicas_of(admin, name) == {0: (3, 4), 1: (2, 3)}
    assert cluster.isr_of(name) == {3, 4}
    assert read(cluster, name, 2) == 2 * RECORDS
    assert command("cluster", "reassign", path) == "Every replica is in place.\n"
    assert command("cluster", "reassign") == "No replicas are on their way.\n"


def test_a_file_that_cannot_be_done_moves_nothing(
    command: Command, admin: Admin, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic({0: [1]})
    assert "there is no broker 7, only 1, 2, 3, 4" in command.refused(
        "cluster", "reassign", plan_file(tmp_path, name, {0: [7]})
    )
    assert f"there is no {name}-5" in command.refused("cluster", "reassign", plan_file(tmp_path, name, {5: [1]}))
    partitions = [{"topic": name, "partition": 0, "replicas": [2], "log_dirs": ["/nowhere"]}]
    (tmp_path / "folder.json").write_text(json.dumps({"partitions": partitions}))
    assert f"{name}-0 on broker 2: " in command.refused("cluster", "reassign", str(tmp_path / "folder.json"))
    assert replicas_of(admin, name) == {0: (1,)}


def test_a_generated_file_spreads_a_topic(
    command: Command, admin: Admin, topic: Callable[..., str], tmp_path: Path
) -> None:
    name = topic({number: [1, 2] for number in range(4)})
    generated = command("cluster", "reassign", "--generate", "--topic", name, "--brokers", "2,3,4")
    path = tmp_path / "generated.json"
    path.write_text(generated)
    command("cluster", "reassign", str(path))
    now = replicas_of(admin, name)
    assert sorted(broker for replicas in now.values() for broker in replicas).count(1) == 0
    assert all(len(set(replicas)) == 2 for replicas in now.values())


def test_replicas_are_added_in_other_racks(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    name = topic({0: [1], 1: [4]})
    command("cluster", "add-replicas", "--topic", name, "--replication-factor", "3")
    now = replicas_of(admin, name)
    assert {number: sorted(RACKS[broker] for broker in replicas) for number, replicas in now.items()} == {
        0: ["a", "b", "c"],
        1: ["a", "b", "c"],
    }
    assert (now[0][0], now[1][0]) == (1, 4), "what was there leads still"
    assert cluster.isr_of(name) == set(now[0])
    again = command("cluster", "add-replicas", "--topic", name, "--replication-factor", "3")
    assert again == "Every partition has 3 replicas already.\n"
    why = command.refused("cluster", "add-replicas", "--topic", name, "--replication-factor", "5")
    assert why == "there are 4 brokers, too few for 5 replicas"


def test_a_drain_is_throttled_interrupted_and_taken_up_again(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    name = topic({0: [1, 2], 1: [2, 4], 2: [3, 2]})
    began = command.start("cluster", "drain", "1", "--replicas", "--throttle", "1")
    eventually(lambda: bool(ClusterLayout(admin).moves))
    assert throttles(admin, name) == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
        "leader.replication.throttled.rate": "1",
        "follower.replication.throttled.rate": "1",
    }
    began.send_signal(signal.SIGINT)
    _, errors = began.communicate(timeout=60)
    assert began.returncode == 130
    assert errors.decode() == "ottla: the cluster continues; the same command waits for the end again\n"

    done = command.run("cluster", "drain", "1", "--replicas", "--timeout-ms", "300")
    assert (done.returncode, "still on the way: 1 partition of 1" in done.stderr) == (1, True)
    drained: Any = command.json("cluster", "drain", "1", "--replicas", "--throttle", "100000000")
    assert drained["drained"]
    assert all(row["outcome"] == "moved" for row in drained["partitions"])
    assert not throttles(admin, name)
    assert replicas_of(admin, name) == {0: (3, 2), 1: (2, 4), 2: (3, 2)}
    assert read(cluster, name, 3) == 3 * RECORDS
    assert command("cluster", "drain", "1", "--replicas").endswith("broker 1, which has none any more.\n")


def test_a_drain_without_room_moves_nothing(command: Command, admin: Admin, topic: Callable[..., str]) -> None:
    name = topic({0: [1, 2, 3, 4]})
    why = command.refused("cluster", "drain", "2", "--replicas")
    assert f"no other broker for 1 replica, of {name}-0" in why and "add one first" in why
    assert replicas_of(admin, name) == {0: (1, 2, 3, 4)}
    assert "--force" in command.refused("cluster", "drain", "2", "--replicas", "--force", code=2)
    assert "--replicas" in command.refused("cluster", "drain", "2", "--throttle", "7", code=2)


def test_a_broker_that_is_down_is_drained(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    name = topic({0: [4, 2], 1: [3, 4]})
    cluster.kill(4)
    cluster.clock.advance(seconds=SESSION_S + 1)
    cluster.wait_in_sync(name)
    drained: Any = command.json("cluster", "drain", "4", "--replicas", "--throttle", "100000000")
    assert (drained["drained"], len(drained["partitions"])) == (True, 2)
    assert replicas_of(admin, name) == {0: (1, 2), 1: (3, 1)}, "broker 1 is in the rack that broker 4 was in"
    assert read(cluster, name, 2) == 2 * RECORDS


def test_a_controller_that_dies_ends_no_wait(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str], tmp_path: Path
) -> None:
    controller = cluster.controller()
    assert controller is not None
    one, other, third = (broker for broker in RACKS if broker != controller)
    name = topic({0: [one, other]})
    path = plan_file(tmp_path, name, {0: [third, other]})
    began = command.start("cluster", "reassign", path, "--throttle", "1")
    eventually(lambda: bool(ClusterLayout(admin).moves))
    cluster.kill(controller)
    cluster.clock.advance(seconds=SESSION_S + 1)
    eventually(lambda: cluster.controller() not in (controller, None))
    replicas = [f"{side}.replication.throttled.replicas" for side in ("leader", "follower")]
    Command(cluster.brokers[one].bootstrap_servers)("configs", "unset", "--topic", name, *replicas)
    shown, errors = began.communicate(timeout=60)
    assert (began.returncode, b"ottla: " in errors) == (0, False), errors
    assert shown.decode() == f"{name}\t0\t{one},{other}\t{third},{other}\tmoved\n"
    assert replicas_of(admin, name) == {0: (third, other)}


def test_moves_are_cancelled(command: Command, admin: Admin, topic: Callable[..., str], tmp_path: Path) -> None:
    name = topic({0: [1, 2]})
    path = plan_file(tmp_path, name, {0: [3, 4]})
    began = command.run("cluster", "reassign", path, "--throttle", "1", "--timeout-ms", "200")
    assert "still on the way" in began.stderr
    assert command("cluster", "reassign", "--cancel") == f"Cancelled 1 move: {name}-0.\n"
    assert set(replicas_of(admin, name)[0]) == {1, 2}
    assert not throttles(admin, name)
    assert command("cluster", "reassign", "--cancel", path) == "No replicas are on their way.\n"
