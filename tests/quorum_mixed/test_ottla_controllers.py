"""Brokers of Apache Kafka 4.3.1 and of Ottla on a quorum of three controllers of Ottla, each in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.kraft_cluster import CLUSTER_ID, KafkaNode, OttlaNode
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import cluster_view, connect
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

from .helpers.controller_process import ControllerProcess

pytestmark = pytest.mark.slow

PATIENCE_S = 90.0
KAFKA, OTTLA = 11, 12


class Cluster:
    """``controllers`` by id, and ``brokers``: one of Apache Kafka, one of Ottla."""

    def __init__(self, folder: Path) -> None:
        ports: list[int] = []
        self.controllers = {
            node_id: ControllerProcess(folder / f"controller-{node_id}", node_id, ports) for node_id in (1, 2, 3)
        }
        servers = ",".join(each.address for each in self.controllers.values())
        self.brokers: dict[int, KafkaNode | OttlaNode] = {}
        for broker_id, kind in ((KAFKA, KafkaNode), (OTTLA, OttlaNode)):
            own = folder / f"broker-{broker_id}"
            own.mkdir()
            broker = self.brokers[broker_id] = kind(own, {})
            properties = {
                "process.roles": "broker",
                "node.id": str(broker_id),
                "controller.quorum.bootstrap.servers": servers,
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "listeners": f"PLAINTEXT://{broker.address}",
                "log.dirs": broker.log_dirs,
                "offsets.topic.replication.factor": "2",
                "offsets.topic.num.partitions": "3",
                "transaction.state.log.replication.factor": "2",
                "transaction.state.log.num.partitions": "3",
                "transaction.state.log.min.isr": "1",
                "group.initial.rebalance.delay.ms": "0",
            }
            broker.file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
            command = [sys.executable, "-m", "ottla", "format", "-c", str(broker.file), "-t", CLUSTER_ID, "-N"]
            subprocess.run(command, check=True, capture_output=True)

    @property
    def bootstrap(self) -> str:
        return ",".join(each.address for each in self.brokers.values())

    def start(self) -> None:
        for controller in self.controllers.values():
            controller.start()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_ready()
        eventually(lambda: all(self.knows_all(each) for each in self.brokers.values()), PATIENCE_S)

    @staticmethod
    def knows_all(broker: KafkaNode | OttlaNode) -> bool:
        view = cluster_view(broker.address)
        return view is not None and set(view.brokers) == {KAFKA, OTTLA}

    def described(self) -> Any:
        """The quorum as the active controller describes it; None while there is none."""
        topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        for controller in self.controllers.values():
            if controller.is_running:
                with contextlib.suppress(OSError), connect(controller.address) as connection:
                    response = connection.call(DescribeQuorumRequest(topics=[topic]), 1)
                    if not response.error_code and not response.topics[0].partitions[0].error_code:
                        return response.topics[0].partitions[0]
        return None

    def close(self) -> None:
        for each in (*self.brokers.values(), *self.controllers.values()):
            each.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("ottla-controllers"))
    with contextlib.closing(cluster):
        cluster.start()
        yield cluster


def create(cluster: Cluster, name: str) -> None:
    """A topic whose two partitions are led by the broker of Kafka and by that of Ottla, and followed by the other."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    topic = NewTopic(name, 2, replica_assignment=[[KAFKA, OTTLA], [OTTLA, KAFKA]])
    admin.create_topics([topic])[name].result(PATIENCE_S)


def write(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for partition in (0, 1):
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * 2 * len(values)


def read(cluster: Cluster, topic: str, count: int) -> list[list[bytes]]:
    """The values of both partitions."""
    found: list[list[bytes]] = [[], []]
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "readers", "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in (0, 1)])
    while sum(map(len, found)) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, f"{found} and no more"
        assert message.error() is None
        found[message.partition()].append(message.value())
    consumer.close()
    return found


def test_brokers_of_both_kinds_follow_the_log_to_its_end(cluster: Cluster) -> None:
    create(cluster, "followed")
    write(cluster, "followed", [b"a", b"b"])
    assert read(cluster, "followed", 4) == [[b"a", b"b"]] * 2

    def ends() -> bool:
        quorum = cluster.described()
        if quorum is None:
            return False
        replicas = {each.replica_id: each.log_end_offset for each in (*quorum.current_voters, *quorum.observers)}
        return set(replicas) == {1, 2, 3, KAFKA, OTTLA} and set(replicas.values()) == {quorum.high_watermark}

    eventually(ends, PATIENCE_S)


def test_transactions_and_groups(cluster: Cluster) -> None:
    create(cluster, "transacted")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(PATIENCE_S)
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce("transacted", value, partition=partition)
        producer.commit_transaction(PATIENCE_S) if commits else producer.abort_transaction(PATIENCE_S)
    assert read(cluster, "transacted", 4) == [[b"a", b"c"]] * 2


def test_the_active_controller_is_killed_and_then_a_broker(cluster: Cluster) -> None:
    create(cluster, "survived")
    write(cluster, "survived", [b"a"])
    active = cluster.described().leader_id
    cluster.controllers[active].kill()
    create(cluster, "made-without-it")
    write(cluster, "survived", [b"b"])
    cluster.controllers[active].start()
    ottla = cluster.brokers[OTTLA]
    ottla.kill()

    def leaders() -> set[int]:
        metadata = AdminClient({"bootstrap.servers": cluster.brokers[KAFKA].address, "log_level": 0}).list_topics(
            "survived", PATIENCE_S
        )
        return {each.leader for each in metadata.topics["survived"].partitions.values()}

    eventually(lambda: leaders() == {KAFKA}, PATIENCE_S)
    write(cluster, "survived", [b"c"])
    ottla.start()
    eventually(lambda: cluster.knows_all(cluster.brokers[KAFKA]), PATIENCE_S)
    assert read(cluster, "survived", 6) == [[b"a", b"b", b"c"]] * 2


def test_brokers_stop_cleanly(cluster: Cluster) -> None:
    """The active controller moves what they lead, and lets them go."""
    for broker in cluster.brokers.values():
        broker.stop()
        broker.start()
        eventually(lambda: all(cluster.knows_all(each) for each in cluster.brokers.values()), PATIENCE_S)
    assert "ERROR" not in cluster.brokers[KAFKA].log()
    for controller in cluster.controllers.values():
        assert "Traceback" not in controller.log()
