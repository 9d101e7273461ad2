"""Brokers in processes of their own, of which one is stopped for longer than its session, and which are without ZooKeeper.

Nothing that was acknowledged is lost, no broker ends, and a controller that was away is none when it is back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ottla.compat_tests.clusters import OttlaCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator

pytestmark = pytest.mark.slow

SESSION_MS = 4000
PARTITIONS = 3
PATIENCE_S = 120.0


class Watched:
    """Three brokers, what is in their ZooKeeper, and a topic whose records are known."""

    def __init__(self, cluster: OttlaCluster, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.written: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        Operator(cluster.bootstrap).create_topic(topic, PARTITIONS, {"min.insync.replicas": "2"})

    def produce(self, count: int, servers: str | None = None) -> None:
        """``count`` more records in each partition, each acknowledged by all that are in sync."""
        producer = KafkaProducer(bootstrap_servers=servers or self.cluster.bootstrap, acks="all")
        try:
            for _ in range(count):
                sent = []
                for partition, values in self.written.items():
                    values.append(b"%d" % len(values))
                    sent.append(producer.send(self.topic, values[-1], partition=partition))
                for future in sent:
                    future.get(PATIENCE_S)
        finally:
            producer.close()

    def check_records(self) -> None:
        """Every record is read once, and in its place."""
        partitions = [TopicPartition(self.topic, partition) for partition in self.written]
        consumer = KafkaConsumer(bootstrap_servers=self.cluster.bootstrap, auto_offset_reset="earliest")
        try:
            consumer.assign(partitions)
            found: dict[int, list[bytes]] = {partition: [] for partition in self.written}
            deadline = time.monotonic() + PATIENCE_S
            while sum(map(len, found.values())) < sum(map(len, self.written.values())) and time.monotonic() < deadline:
                for key, records in consumer.poll(timeout_ms=500).items():
                    found[key.partition] += [record.value for record in records]
            assert found == self.written
        finally:
            consumer.close()

    def stored(self, path: str) -> Any:
        """The JSON of a node; None where there is none."""
        client = KazooClient(self.cluster.zookeeper.address)
        client.start(PATIENCE_S)
        try:
            return json.loads(client.get(path)[0])
        except NoNodeError:
            return None
        finally:
            client.stop()
            client.close()

    def states(self) -> list[Any]:
        """Leader and in-sync replicas of each partition, as stored."""
        return [self.stored(f"/brokers/topics/{self.topic}/partitions/{partition}/state") for partition in self.written]

    def until_all_in_sync(self) -> None:
        eventually(lambda: all(len(state["isr"]) == 3 for state in self.states()), PATIENCE_S)

    def log_bytes(self, broker_id: int) -> dict[str, bytes]:
        """The segments of the topic in a broker's folder, by name."""
        (folder,) = self.cluster.broker(broker_id).data_folders
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(f"{self.topic}-*/*.log")}

    def back(self) -> dict[int, int]:
        """How often each broker has had an answer again; a ZooKeeper that was paused may take up a session that was over."""
        answered = self.said("The cluster store answers again")
        expired = self.said("The session at the cluster store has expired")
        return {broker_id: count + expired[broker_id] for broker_id, count in answered.items()}

    def until_back(self, times: dict[int, int]) -> None:
        """Until each of these brokers has had one more often than so many times."""
        eventually(lambda: all(self.back()[broker_id] > count for broker_id, count in times.items()), PATIENCE_S)

    def until_said(self, text: str, times: dict[int, int]) -> None:
        """Until each of these brokers has said something more often than so many times."""
        eventually(lambda: all(self.said(text)[broker_id] > count for broker_id, count in times.items()), PATIENCE_S)

    def said(self, text: str) -> dict[int, int]:
        """How often each broker has."""
        return {broker_id: self.cluster.broker(broker_id).log().count(text) for broker_id in (1, 2, 3)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    properties = {"zookeeper.session.timeout.ms": str(SESSION_MS), "log.flush.scheduler.interval.ms": "100"}
    made = OttlaCluster(tmp_path_factory.mktemp("brokers"), 3, properties=properties)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_a_controller_that_was_stopped_for_longer_than_its_session_is_a_follower_with_all_of_its_log(
    cluster: OttlaCluster,
) -> None:
    watched = Watched(cluster, "stopped")
    watched.produce(20)
    stopped = watched.stored("/controller")["brokerid"]
    others = [broker_id for broker_id in (1, 2, 3) if broker_id != stopped]
    elections = cluster.broker(stopped).log().count("Controller with epoch")
    cluster.broker(stopped).pause()
    eventually(lambda: (watched.stored("/controller") or {}).get("brokerid") in others, PATIENCE_S)
    eventually(lambda: all(stopped not in state["isr"] for state in watched.states()), PATIENCE_S)
    assert watched.stored(f"/brokers/ids/{stopped}") is None
    epoch, leaders = watched.stored("/controller_epoch"), [state["leader"] for state in watched.states()]
    assert stopped not in leaders
    watched.produce(20, ",".join(cluster.broker(broker_id).address for broker_id in others))

    expired = watched.said("The session at the cluster store has expired")
    cluster.broker(stopped).resume()
    watched.until_said("The session at the cluster store has expired", {stopped: expired[stopped]})
    watched.until_all_in_sync()
    assert watched.stored("/controller")["brokerid"] in others
    assert watched.stored("/controller_epoch") == epoch
    assert cluster.broker(stopped).log().count("Controller with epoch") == elections
    watched.produce(20)
    watched.check_records()
    eventually(lambda: watched.log_bytes(stopped) == watched.log_bytes(others[0]) != {}, PATIENCE_S)
    assert all(broker.is_running for broker in cluster.brokers)


def test_brokers_serve_what_they_lead_without_zookeeper_and_are_members_when_it_is_back(cluster: OttlaCluster) -> None:
    watched = Watched(cluster, "away")
    watched.until_all_in_sync()
    suspected = watched.said("The cluster store does not respond")
    cluster.zookeeper.pause()
    watched.until_said("The cluster store does not respond", suspected)
    until = time.monotonic() + 2 * SESSION_MS / 1000  # so that it is over for ZooKeeper when that goes on
    while time.monotonic() < until:
        watched.produce(5)
    back = watched.back()
    cluster.zookeeper.resume()
    watched.until_back(back)
    cluster.wait_joined()
    watched.until_all_in_sync()
    watched.produce(5)

    suspected, back = watched.said("The cluster store does not respond"), watched.back()
    cluster.zookeeper.kill()
    watched.until_said("The cluster store does not respond", suspected)
    watched.produce(5)
    cluster.zookeeper.start()
    watched.until_back(back)
    Operator(cluster.bootstrap).create_topic("after", 3, {})
    watched.produce(5)
    watched.check_records()
    assert all(broker.is_running for broker in cluster.brokers)
