"""``ottla cluster …`` and ``ottla topics describe`` on three brokers: what is wrong, who leads, and a broker that is drained."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

import ottla
from ottla.testing.cluster import Cluster
from ottla.testing.held_port import HeldPort

from ..helpers.command import LIMIT_S, Command

pytestmark = pytest.mark.slow
ALL = [1, 2, 3]
SESSION_S = 20
_numbers = itertools.count()


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    """Their sessions last for so long that what a command says just after a kill does not depend on how quick it is."""
    with ottla.Cluster(3, properties={"broker.session.timeout.ms": str(SESSION_S * 1000)}) as cluster:
        yield cluster


@pytest.fixture
def cluster(brokers: Cluster) -> Iterator[Cluster]:
    yield brokers
    for broker in brokers.brokers.values():
        if not broker.is_running:
            brokers.clock.advance(seconds=SESSION_S + 1)
            broker.start()


@pytest.fixture
def servers(cluster: Cluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def topic(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes topics, in sync with as many replicas as there can be; the name. They go with the test."""
    made = []

    def make(partitions: int = 1, replicas: int = 3, **configs: str) -> str:
        made.append(name := f"made-{next(_numbers)}")
        cluster.create_topic(name, partitions, replicas, {key.replace("_", "."): v for key, v in configs.items()})
        cluster.wait_in_sync(name)
        return name

    yield make
    for name in made:
        cluster.delete_topic(name)


def end_session(cluster: Cluster, name: str) -> None:
    """What was killed is missed, and the topic is as well as it can be."""
    cluster.clock.advance(seconds=SESSION_S + 1)
    cluster.wait_in_sync(name)


def test_a_cluster_that_is_well(cluster: Cluster, command: Command, topic: Callable[..., str]) -> None:
    name = topic(6, min_insync_replicas="2")
    described = command.json("cluster", "describe")
    assert [(b["broker"], b["leaders"], b["replicas"], b["out_of_sync"]) for b in described["brokers"]] == [
        (number, 2, 6, 0) for number in ALL
    ]
    assert [b["broker"] for b in described["brokers"] if b["controller"]] == [cluster.controller()]
    assert described["partitions"] == 6
    assert not any(described[f"{what}_partitions"] for what in ("under_replicated", "under_min_isr", "offline"))
    (of_topic,) = command.json("topics", "describe", name)
    assert of_topic["min_insync_replicas"] == 2
    assert {partition["health"] for partition in of_topic["partitions"]} == {"ok"}
    assert command("cluster", "elect-leaders") == ""


def test_brokers_that_know_no_drain(command: Command) -> None:
    why = command.refused("cluster", "drain", "1")
    assert "ControlledShutdown" in why and "SIGTERM" in why


def test_leaderships_go_back_to_a_broker_that_was_stopped(
    cluster: Cluster, command: Command, topic: Callable[..., str]
) -> None:
    name = topic(6)
    leaders = {number: cluster.leader_of(name, number) for number in range(6)}
    cluster.restart(2)
    cluster.wait_in_sync(name)
    assert {cluster.leader_of(name, number) for number in range(6)} == {1, 3}
    elected = command.rows("cluster", "elect-leaders", "--topic", name)
    assert {int(row[1]): row[3:] for row in elected} == {
        number: [str(leader), "elected" if leader == 2 else "not needed"] for number, leader in leaders.items()
    }
    assert {number: cluster.leader_of(name, number) for number in range(6)} == leaders


def test_a_broker_that_is_down(cluster: Cluster, command: Command, topic: Callable[..., str]) -> None:
    name, lone = topic(3), next(n for n in (topic(1, 1) for _ in range(60)) if cluster.leader_of(n) == 3)
    strict = topic(1, min_insync_replicas="3")
    cluster.kill(3)
    (described,) = command.json("topics", "describe", name)
    offsets = {partition["leader"]: partition["end_offset"] for partition in described["partitions"]}
    assert offsets == {1: 0, 2: 0, 3: None}, "its session lasts, and it does not answer"

    end_session(cluster, name)
    quick = [f"--command-property={what}.timeout.ms={time}" for what, time in (("delivery", 1500), ("request", 1000))]
    why = command.refused("produce", strict, *quick, given="x\n")
    assert why.startswith(
        f"a record was not written to {strict}: {strict}-0 has 2 replicas in sync, fewer than min.insync"
    )
    last = command.json("cluster", "describe")["brokers"][-1]
    assert (last["broker"], last["host"], last["leaders"], last["out_of_sync"]) == (3, None, 0, 5), (
        "KIP-966: the lone one too"
    )
    (described,) = command.json("topics", "describe", "--under-replicated", name)
    assert [(sorted(p["isr"]), p["offline"]) for p in described["partitions"]] == [([1, 2], [3])] * 3
    (described,) = command.json("topics", "describe", "--offline")
    assert (described["topic"], described["partitions"][0]["health"]) == (lone, "offline")
    done = command.run("cluster", "elect-leaders", "--topic", name)
    assert done.returncode == 1
    assert "failed: broker 3, which is preferred, is down" in done.stdout
    assert done.stderr == "ottla: 1 election of 1 failed\n"


def test_an_unclean_election_has_to_be_asked_for(cluster: Cluster, command: Command, topic: Callable[..., str]) -> None:
    name = topic()
    last = cluster.leader_of(name)
    others = [number for number in ALL if number != last]
    for number in others:
        cluster.kill(number)
    end_session(cluster, name)
    assert cluster.isr_of(name) == {last}
    cluster.kill(last)
    cluster.clock.advance(seconds=SESSION_S + 1)
    for number in others:
        cluster.brokers[number].start()
    assert cluster.leader_of(name) is None
    assert "say where" in command.refused("cluster", "elect-leaders", "--unclean", code=2)
    assert command.run("cluster", "elect-leaders").returncode == 1
    ((*key, before, leader, outcome),) = command.rows("cluster", "elect-leaders", "--unclean", "--topic", f"{name}:0")
    assert (key, before, outcome) == ([name, "0"], "-", "elected")
    assert int(leader) in others


@pytest.fixture
def port() -> Iterator[HeldPort]:
    """Where nothing listens, unless the test starts it."""
    held = HeldPort()
    yield held
    held.close()


def test_a_wait_begins_before_the_broker(port: HeldPort) -> None:
    address = f"127.0.0.1:{port.number}"
    waiting = Command(address).start("cluster", "wait", "--debug")
    try:
        assert waiting.stderr is not None
        assert next(line for line in waiting.stderr if b"trying again" in line).endswith(b": trying again\n")
        with ottla.Broker(listen=address):
            shown, _ = waiting.communicate(timeout=LIMIT_S)
    finally:
        waiting.kill()
    assert (shown, waiting.returncode) == (b"Every partition has all its replicas in sync.\n", 0)


def test_a_wait_for_a_broker_that_does_not_come(port: HeldPort) -> None:
    why = Command(f"127.0.0.1:{port.number}").refused("cluster", "wait", "--timeout-ms", "300")
    assert why.startswith(f"no broker answers at 127.0.0.1:{port.number} (connection refused); ")


def test_a_wait_ends_where_this_client_is_not_let_in() -> None:
    with ottla.Broker(users={"alice": "secret"}) as broker:
        why = Command(broker.bootstrap_servers).refused("cluster", "wait", "--timeout-ms", str(10_000 * LIMIT_S))
    assert "SASL" in why
