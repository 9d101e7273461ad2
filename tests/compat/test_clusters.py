"""The clusters of broker processes that tests use: both kinds come up, lose a broker, and take it in again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.clusters import KINDS, BrokerCluster, KafkaZooKeeperProcess
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator, connect, topic_metadata
from ottla.compat_tests.zookeeper import ZooKeeperProcess

pytestmark = pytest.mark.slow
SESSION_MS = 3_000
A_BROKER = """
import pathlib, socket, sys
starts = pathlib.Path(sys.argv[1])
starts.write_text(starts.read_text() + "." if starts.exists() else ".")
if len(starts.read_text()) < 2:
    sys.exit(sys.argv[3])
with socket.socket() as listener:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[2])))
    listener.listen()
    while True:
        listener.accept()
"""
"""A program that ends with what it is given the first time, and listens the second."""


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


class Broker(KafkaZooKeeperProcess):
    """Of Kafka nothing but how it begins."""

    last_words = ""

    def command(self) -> list[str]:
        return [sys.executable, "-c", A_BROKER, str(self.folder / "starts"), str(self.port), self.last_words]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path, {})
    yield made
    made.close()


def test_a_broker_whose_session_expires_while_it_starts_is_started_again(broker: Broker) -> None:
    broker.last_words = "SessionExpiredException: KeeperErrorCode = Session expired for /feature"
    broker.start()
    assert broker.is_running


def test_a_broker_that_ends_for_another_reason_is_not(broker: Broker) -> None:
    broker.last_words = "ConfigException"
    with pytest.raises(RuntimeError, match="ConfigException"):
        broker.start()
