"""``ottla cluster balance`` on three brokers and a fourth that is empty, with records on the way."""

from __future__ import annotations

import itertools
import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from kafka import KafkaProducer

import ottla
from ottla.cli.tools.client import Admin
from ottla.cli.tools.replicas.moves import ClusterLayout
from ottla.compat_tests.session import eventually
from ottla.testing.cluster import Cluster

from ..helpers.command import Command
from ..helpers.replicas import replicas_of, throttles

pytestmark = pytest.mark.slow
SIZE = 10_000
BALANCE = ("cluster", "balance", "--disk-limit", "100")
"""Whatever else is on the disk of the machine that runs the tests."""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    properties = {"auto.leader.rebalance.enable": "false", "replica.fetch.max.bytes": str(2 * SIZE)}
    with ottla.Cluster(4, properties=properties) as running:
        yield running


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def topic(cluster: Cluster, admin: Admin) -> Iterator[Callable[..., str]]:
    """Makes a topic with these replicas and as many records in each partition. It goes with the test."""
    made = []

    def make(replicas: Sequence[Sequence[int]], records: Sequence[int]) -> str:
        name = f"skewed-{next(_numbers)}"
        admin.create_topics({name: {"assignments": {n: list(each) for n, each in enumerate(replicas)}}})
        made.append(name)
        cluster.wait_in_sync(name)
        with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for partition, count in enumerate(records):
                for _ in range(count):
                    producer.send(name, bytes(SIZE), partition=partition)
        cluster.wait_in_sync(name)
        return name

    yield make
    for name in made:
        cluster.delete_topic(name)


def within(loads: Sequence[int]) -> bool:
    mean = sum(loads) / len(loads)
    return all(abs(load - mean) <= 0.1 * mean for load in loads)


def loads(found: Any, which: str, when: str = "after") -> list[int]:
    return [broker[when][which] for broker in found["brokers"]]


def test_an_empty_broker_gets_its_share(
    cluster: Cluster, command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    brokers = [[1, 2], [2, 3], [1, 3], [1, 2]]
    name = topic([brokers[n % 4] for n in range(40)], [1 + n % 4 for n in range(40)])
    dry = command.json(*BALANCE, "--dry-run", "--window", "0")
    assert not ClusterLayout(admin).moves
    done = command.run(*BALANCE, "--window", "0", "--throttle", "50000000", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["moves"] == dry["moves"] and found["moves"]
    assert not within(loads(found, "bytes", "before"))
    assert within(loads(found, "bytes")) and within(loads(found, "leaders"))
    again = command.json(*BALANCE, "--dry-run", "--window", "0")
    assert again["balanced"], again
    assert cluster.isr_of(name, 0)


def test_into_a_pipe_it_says_what_it_found(command: Command, topic: Callable[..., str]) -> None:
    name = topic([[1, 2]] * 4, [3] * 4)
    options = (*BALANCE, "--dry-run", "--window", "0")
    found = command.run(*options, "--goals", "replicas")
    assert found.returncode == 0, found.stderr
    moves = [line.split("\t") for line in found.stdout.splitlines()]
    assert moves and {move[0] for move in moves} == {name}
    copied = sum(set(move[2].split(",")) != set(move[3].split(",")) for move in moves)
    assert re.fullmatch(rf"{copied} partitions? to move with .* to copy, .* to change, in \d+ steps?\.\n", found.stderr)
    balanced = command.run(*options, "--goals", "racks")
    assert (balanced.returncode, balanced.stdout, balanced.stderr) == (0, "", "The cluster is balanced.\n")


def test_a_broker_is_drained_and_a_rack_is_kept(command: Command, admin: Admin, topic: Callable[..., str]) -> None:
    name = topic([[1, 2], [2, 3], [3, 4], [4, 1]] * 4, [2] * 16)
    found = command.run(*BALANCE, "--drain", "3", "--window", "0", "--json")
    assert found.returncode == 0, found.stderr
    after = json.loads(found.stdout)
    assert loads(after, "replicas")[2] == 0
    assert all(3 not in replicas for replicas in replicas_of(admin, name).values())
    assert all(move["why"] for move in after["moves"])
    assert "there is no broker 9" in command.refused(*BALANCE, "--drain", "9", "--window", "0")


def test_ctrl_c_ends_it_after_the_step_and_the_same_command_goes_on(
    command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    name = topic([[1, 2]] * 12, [3] * 12)
    options = (*BALANCE, "--window", "0", "--goals", "replicas", "--at-once", "1")
    whole = command.json(*options, "--dry-run")
    began = command.start(*options, "--throttle", "20000", "--json")
    eventually(lambda: bool(ClusterLayout(admin).moves))
    began.send_signal(signal.SIGINT)
    output, errors = began.communicate(timeout=60)
    assert (began.returncode, json.loads(output)["stopped"]) == (130, True), errors
    assert "the same command continues" in errors.decode()
    assert not ClusterLayout(admin).moves and not throttles(admin, name)
    rest = command.json(*options, "--dry-run")
    assert 0 < len(rest["moves"]) < len(whole["moves"])
    assert rest["bytes"] < whole["bytes"]
    done = command.run(*options, "--json")
    assert done.returncode == 0, done.stderr
    assert within(loads(json.loads(done.stdout), "replicas"))


def test_a_second_ctrl_c_cancels_what_is_on_its_way(command: Command, admin: Admin, topic: Callable[..., str]) -> None:
    name = topic([[1, 2]] * 4, [3] * 4)
    before = replicas_of(admin, name)
    began = command.start(*BALANCE, "--window", "0", "--goals", "replicas", "--throttle", "1")
    eventually(lambda: bool(ClusterLayout(admin).moves))
    began.send_signal(signal.SIGINT)
    assert began.stderr is not None
    while b"a second Ctrl-C" not in began.stderr.readline():
        pass
    began.send_signal(signal.SIGINT)
    _, errors = began.communicate(timeout=60)
    assert began.returncode == 130, errors
    assert not ClusterLayout(admin).moves and not throttles(admin, name)
    assert {n: {*replicas} for n, replicas in replicas_of(admin, name).items()} == {n: {*r} for n, r in before.items()}


def test_the_run_after_one_that_was_killed_goes_on_and_removes_its_throttle(
    command: Command, admin: Admin, topic: Callable[..., str]
) -> None:
    name = topic([[1, 2]] * 4, [3] * 4)
    options = (*BALANCE, "--window", "0", "--goals", "replicas")
    began = command.start(*options, "--throttle", "1")
    eventually(lambda: bool(ClusterLayout(admin).moves))
    began.kill()
    began.communicate(timeout=60)
    assert throttles(admin, name)
    done = command.run(*options, "--throttle", "100000000", "--json")
    assert done.returncode == 0, done.stderr
    assert "on the way already" in done.stderr
    assert within(loads(json.loads(done.stdout), "replicas"))
    assert not ClusterLayout(admin).moves and not throttles(admin, name)


def test_a_throttle_without_a_move_is_removed(command: Command, admin: Admin, topic: Callable[..., str]) -> None:
    """It was killed after the moves had ended."""
    name = topic([[1]], [1])
    command("configs", "set", "--topic", name, "leader.replication.throttled.replicas=0:1")
    command("configs", "set", "--broker", "1", "leader.replication.throttled.rate=1")
    done = command.run(*BALANCE, "--window", "0", "--goals", "leaders")
    assert done.returncode == 0 and "removes the throttle" in done.stderr
    assert not throttles(admin, name)


def test_rates_are_measured(cluster: Cluster, command: Command, topic: Callable[..., str]) -> None:
    name = topic([[1, 2], [1, 2]], [1, 1])
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer.send(name, bytes(SIZE), partition=0).get(timeout=20)
        began = command.start(*BALANCE, "--dry-run", "--window", "4", "--json")
        while began.poll() is None:
            producer.send(name, bytes(SIZE), partition=0).get(timeout=20)
            time.sleep(0.05)
    output, errors = began.communicate(timeout=60)
    assert began.returncode == 0, errors
    leader, follower, *others = loads(json.loads(output), "network_in", "before")
    assert leader == follower > 0
    assert max(others) == 0


def test_goals_that_are_none(command: Command) -> None:
    assert "there is no goal cpu" in command.refused(*BALANCE, "--goals", "racks,cpu", code=2)
