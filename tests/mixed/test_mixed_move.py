"""A live cluster is moved from Apache Kafka to Ottla and back, as docs/mixed-cluster.md says, while clients write and read.

What they wrote is checked against what they were told, and audited by Spark, as the page says.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.bench.failover.checks import has_read, read_all, wrong_in_group, wrong_in_log
from ottla.bench.failover.loads import ConfluentGroup, ConfluentProducer, ConfluentTransactions, GroupLoad, ProducerLoad
from ottla.bench.failover.outages import is_back
from ottla.compat_tests.clusters import MixedCluster
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import eventually
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .helpers.mixed import KAFKA, OTTLA, PATIENCE_S, Mixed
from .helpers.on_zookeeper import PROPERTIES, ZooKeeperMixed

pytestmark = pytest.mark.slow

OF_KAFKA, OF_OTTLA = [1, 2], [3, 4]
TWO_REPLICAS = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}
MOVED_S = 240.0
AUDITED_S = 300.0
PAGE = Path(__file__).resolve().parents[2] / "docs" / "mixed-cluster.md"
COMMANDS = re.compile(r"```sh\n(export OTTLA_BOOTSTRAP_SERVERS=.*?)```", re.DOTALL)


class Moved(MixedCluster):
    """Brokers 1 and 2 of Kafka, 3 and 4 of Ottla."""

    def kind(self, broker_id: int) -> str:
        return KAFKA if broker_id in OF_KAFKA else OTTLA


def move_there(mixed: Mixed, folder: Path) -> None:
    """Have all replicas of all topics on Ottla's brokers, by the page's own commands; only brokers and addresses are others."""
    (commands,) = COMMANDS.findall(PAGE.read_text())
    for theirs, ours in (
        ("kafka-1.example.org:9092,ottla-4.example.org:9092", mixed.bootstrap),
        ("--brokers 1,2,3", "--brokers 1,2"),
        ("--brokers 4,5,6", "--brokers 3,4"),
    ):
        assert theirs in commands
        commands = commands.replace(theirs, ours)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run("sh", "-e", "-c", commands, timeout=MOVED_S, folder=folder, PATH=path)
    wait_moved(mixed, OF_OTTLA)


def move_back(mixed: Mixed, tools: KafkaTools) -> None:
    """Have them where they were, by Kafka's tool, with the file that the page's commands have made."""
    plan = ("--reassignment-json-file", str(tools.folder / "back.json"))
    tools.run("reassign-partitions", "--execute", *plan)
    ottla("cluster", "reassign", "-b", mixed.bootstrap, timeout=MOVED_S)  # waits for what is under way
    assert "in progress" not in tools.run("reassign-partitions", "--verify", *plan)
    wait_moved(mixed, OF_KAFKA)


def wait_moved(mixed: Mixed, to: Sequence[int]) -> None:
    """Return when these brokers have everything, and no other has anything."""

    def is_moved() -> bool:
        described = mixed.admin.list_topics(timeout=PATIENCE_S).topics
        return all(
            sorted(partition.replicas) == sorted(partition.isrs) == sorted(to)
            for topic in described.values()
            for partition in topic.partitions.values()
        )

    eventually(is_moved, PATIENCE_S)


def audit(bootstrap: str, producer: ProducerLoad) -> None:
    """Each number that the producer has sent is there once, and in its order: else the command's status is 1."""
    sent = max(ack.number for ack in producer.acks) + 1
    assert len(producer.acks) == sent
    numbered = ["--topics", producer.topic, "--number", "value", "--expected", str(sent)]
    ottla("spark", "audit", "--bootstrap-server", bootstrap, *numbered, "--master", "local[2]", timeout=AUDITED_S)


def ottla(*words: str, timeout: float) -> str:
    """What the ``ottla`` command prints, which must end well."""
    return run(sys.executable, "-m", "ottla", *words, timeout=timeout)


def run(*command: str, timeout: float, folder: Path | None = None, **environment: str) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, cwd=folder, env=os.environ | environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_live_cluster_moves_from_kafka_to_ottla_and_back(
    tmp_path: Path, zookeeper_server: ZooKeeperProcess, zookeeper: str
) -> None:
    root = zookeeper.removeprefix(zookeeper_server.address)
    properties = {**PROPERTIES, **TWO_REPLICAS}
    cluster = Moved(tmp_path, 4, zookeeper=zookeeper_server, root=root, properties=properties)
    loads: list[tuple[ProducerLoad, GroupLoad]] = []
    try:
        for broker_id in OF_KAFKA:
            cluster.start_broker(broker_id)
        mixed = ZooKeeperMixed(cluster)
        tools = KafkaTools(cluster.bootstrap, tmp_path)
        for kind in (ConfluentProducer, ConfluentTransactions):
            topic = f"load-{kind.__name__}"
            mixed.create(topic, OF_KAFKA, OF_KAFKA[::-1])
            loads.append((kind(topic, topic, cluster.bootstrap), ConfluentGroup("group", topic, cluster.bootstrap)))
        for load in (each for pair in loads for each in pair):
            load.start()

        def settle() -> None:
            now = time.time()
            eventually(lambda: all(is_back(producer, now) for producer, _ in loads), PATIENCE_S)

        settle()
        for old, new in ((OF_KAFKA, OF_OTTLA), (OF_OTTLA, OF_KAFKA)):
            for broker_id in new:
                cluster.start_broker(broker_id)
            if new is OF_OTTLA:
                move_there(mixed, tmp_path)
            else:
                move_back(mixed, tools)
            settle()
            for broker_id in old:
                cluster.broker(broker_id).stop()
            eventually(lambda new=new: cluster.controller() in new, PATIENCE_S)
            settle()
        for producer, _ in loads:
            producer.stop()
        for producer, group in loads:
            logs = read_all(cluster.bootstrap, producer.topic)
            eventually(lambda group=group, logs=logs: has_read(group, logs), PATIENCE_S)
            group.stop()
            assert producer.acks
            assert [*wrong_in_log(producer, logs), *wrong_in_group(group, logs), *producer.errors] == []
            audit(cluster.bootstrap, producer)
        assert mixed.troubles() == []
    finally:
        for load in (each for pair in loads for each in pair):
            load.end()
        cluster.close()
