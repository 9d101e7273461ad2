"""The clusters of broker processes that tests use: both kinds come up, lose a broker, and take it in again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.clusters import KINDS, BrokerCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator, connect, topic_metadata
from ottla.compat_tests.zookeeper import ZooKeeperProcess

pytestmark = pytest.mark.slow
SESSION_MS = 3_000


@pytest.fixture(params=["ottla", "kafka"])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, zookeeper_server: ZooKeeperProcess, zookeeper: str
) -> Iterator[BrokerCluster]:
    root = zookeeper.removeprefix(zookeeper_server.address)
    properties = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
    made = KINDS[request.param](tmp_path, 2, zookeeper=zookeeper_server, root=root, properties=properties)
    try:
        made.start()
        yield made
    finally:
        made.close()


def isr(cluster: BrokerCluster, broker_id: int) -> list[int]:
    """The in-sync replicas of the topic, as this broker tells."""
    with connect(cluster.broker(broker_id).address) as connection:
        return sorted(topic_metadata(connection, "log").partitions[0].isr_nodes)


def test_a_broker_is_killed_and_comes_back(cluster: BrokerCluster) -> None:
    Operator(cluster.bootstrap).create_topic("log", 1, {})
    assert isr(cluster, 1) == [1, 2]
    killed = cluster.controller()
    assert killed is not None
    other = 3 - killed
    cluster.broker(killed).kill()
    eventually(lambda: isr(cluster, other) == [other])
    eventually(lambda: cluster.controller() == other)
    cluster.start_broker(killed)
    eventually(lambda: isr(cluster, other) == isr(cluster, killed) == [1, 2])
    cluster.restart_broker(other)
    eventually(lambda: isr(cluster, killed) == [1, 2])
