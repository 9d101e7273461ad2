"""Stock clients that read from the replica in their rack (KIP-392), as the brokers see it by their fetches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.java.tools import KafkaTools
from ottla.testing.cluster import Cluster

from .helpers.cluster_calls import produce

pytestmark = pytest.mark.slow

LEADER, NEAR = 1, 2
RACKS = {LEADER: "north", NEAR: "south", 3: "west"}
CLIENT = "in-the-south"
COUNT = 12


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Brokers in three racks; broker 1 leads "t", in which there are some records, and all requests are recorded."""
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    racks = {broker: {"broker.rack": rack} for broker, rack in RACKS.items()}
    with ottla.Cluster(properties=selector, broker_properties=racks) as running:
        running.create_topic("t")
        running.wait_in_sync("t")
        if running.leader_of("t") != LEADER:
            running.move_leader("t", to=LEADER)
        write(running, 0)
        for broker in running.brokers.values():
            broker.requests.start()
        yield running


def write(cluster: Cluster, first: int) -> None:
    for number in range(first, first + COUNT):
        assert produce(cluster, "t", b"%d" % number) == ErrorCode.NONE


def offsets_asked(cluster: Cluster, broker: int) -> set[int]:
    """At which offsets the client has fetched from this broker."""
    fetches = cluster.brokers[broker].requests.where(api="Fetch", client_id=CLIENT, topic="t")
    return {asked.fetch_offset for sent in fetches for topic in sent.body.topics for asked in topic.partitions}


def test_confluent_kafka_reads_in_its_rack_and_at_the_leader_when_the_replica_is_gone(cluster: Cluster) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "client.id": CLIENT,
            "client.rack": RACKS[NEAR],
            "fetch.wait.max.ms": 20_000,
            "log_level": 0,
        }
    )
    read: list[bytes | None] = []

    def read_to(count: int) -> None:
        while len(read) < count:
            (message,) = consumer.consume(1, timeout=60)
            assert message.error() is None
            read.append(message.value())

    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        read_to(COUNT)
        write(cluster, COUNT)  # while it waits at the follower, which hears later that this is committed
        read_to(2 * COUNT)
        assert offsets_asked(cluster, LEADER) == {0}
        assert max(offsets_asked(cluster, NEAR)) >= COUNT
        assert not offsets_asked(cluster, 3)
        cluster.kill(NEAR)
        write(cluster, 2 * COUNT)
        read_to(3 * COUNT)
    finally:
        consumer.close()
    assert read == [b"%d" % number for number in range(3 * COUNT)]
    assert max(offsets_asked(cluster, LEADER)) >= 2 * COUNT


@pytest.mark.in_lane_only  # needs the jars of Kafka's tools, which `make test` does not fetch
def test_the_java_consumer_reads_in_its_rack(cluster: Cluster, tmp_path: Path) -> None:
    tools = KafkaTools(cluster.bootstrap_servers, tmp_path)
    settings = {"client.id": CLIENT, "client.rack": RACKS[NEAR], "max.partition.fetch.bytes": "100"}
    options = [word for name, value in settings.items() for word in ("--command-property", f"{name}={value}")]
    limits = ("--max-messages", str(COUNT), "--timeout-ms", "60000")
    shown = tools.run("console-consumer", "--topic", "t", "--from-beginning", *limits, *options)
    assert shown.split() == [str(number) for number in range(COUNT)]
    assert offsets_asked(cluster, LEADER) == {0}
    assert max(offsets_asked(cluster, NEAR)) > 0
