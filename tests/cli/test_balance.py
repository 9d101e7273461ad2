"""``ottla cluster balance`` on three brokers and a fourth that is empty, with records on the way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from kafka import KafkaProducer

import ottla
from ottla.cli.tools.client import Admin
from ottla.cli.tools.moves import Layout
from ottla.testing.cluster import Cluster

from .conftest import Command

pytestmark = pytest.mark.slow
SIZE = 10_000
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    properties = {"auto.leader.rebalance.enable": "false", "replica.fetch.max.bytes": str(2 * SIZE)}
    with ottla.Cluster(4, properties=properties) as running:
        yield running


@pytest.fixture
def command(cluster: Cluster) -> Command:
    return Command(cluster.bootstrap_servers)


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    client = Admin(bootstrap_servers=cluster.bootstrap_servers)
    yield client
    client.close()


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
    dry = command.json("cluster", "balance", "--dry-run", "--window", "0")
    assert not Layout(admin).moves
    done = command.run("cluster", "balance", "--window", "0", "--throttle", "50000000", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["moves"] == dry["moves"] and found["moves"]
    assert not within(loads(found, "bytes", "before"))
    assert within(loads(found, "bytes")) and within(loads(found, "leaders"))
    again = command.json("cluster", "balance", "--dry-run", "--window", "0")
    assert again["balanced"], again
    assert cluster.isr_of(name, 0)
