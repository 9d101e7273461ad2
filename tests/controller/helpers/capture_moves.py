"""Writes ``kafka-3.9.2-moves.txt``: what three brokers of Apache Kafka have in ZooKeeper while replicas move (KIP-455).

    python -m ottla.tests.controller.helpers.capture_moves > tests/controller/kafka-3.9.2-moves.txt

Broker 3, to which all moves go, is stopped while a move begins, so that its intermediate state can be captured. ``STEPS`` are
the names of the captured states, in order.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ottla.compat_tests.clusters import KafkaZooKeeperCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

TOPIC = "t"
REPLICAS = ([1, 2], [2, 1], [1, 2])
STARTED = "three brokers have started"
MADE = "topic t is made, with three partitions of two replicas"
ADDING = "partition 0 is to have a replica on broker 3, too"
ADDED = "it has it"
REPLACING = "partition 1 is to move from brokers 2 and 1 to brokers 3 and 1"
REPLACED = "it has moved"
TAKEN = "partition 2 is to move from brokers 1 and 2 to brokers 1 and 3"
CANCELLED = "that is cancelled"
STEPS = (STARTED, MADE, ADDING, ADDED, REPLACING, REPLACED, TAKEN, CANCELLED)

Tree = Mapping[str, str]
"""Flags and data by path."""

_HEADER = """\
# What three brokers of Apache Kafka 3.9.2 kept in ZooKeeper 3.8.4 while replicas moved, step by step, as in
# kafka-3.9.2-znodes.txt; made by capture_moves.py.
"""
_PROPERTIES = {
    "zookeeper.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "120000",
    "auto.leader.rebalance.enable": "false",
}
_STILL_S = 2.0
_PATIENCE_S = 60.0
_IN_PROGRESS = '"adding_replicas":{}'


class Capture:
    """Prints what has changed since the last step."""

    def __init__(self, cluster: KafkaZooKeeperCluster, zookeeper: KazooClient) -> None:
        self._cluster = cluster
        self._zookeeper = zookeeper
        self._before: Tree = {}

    def step(self, name: str) -> None:
        """Capture a step, once nothing has changed for a while."""
        tree = self._read()
        since = time.monotonic()
        while time.monotonic() < since + _STILL_S:
            time.sleep(0.1)
            if (now := self._read()) != tree:
                tree, since = now, time.monotonic()
        print(f"\n= {name}")
        for path in self._before.keys() - tree.keys():
            print(f"-{path}")
        for path, node in tree.items():
            if self._before.get(path) != node:
                print(f"{path}\t{node}")
        self._before = tree

    def _read(self, folder: str = "") -> dict[str, str]:
        tree: dict[str, str] = {}
        for name in sorted(self._zookeeper.get_children(folder or "/")):
            path = f"{folder}/{name}"
            if path == "/zookeeper":
                continue
            with contextlib.suppress(NoNodeError):
                data, stat = self._zookeeper.get(path)
                kind = "ephemeral " if stat.ephemeralOwner else ""
                shown = b"" if data == b"null" else data or b""
                tree[path] = f"[{kind}version={stat.version}]\t{shown.decode()}"
                tree |= self._read(path)
        return tree

    def move(self, partition: int, replicas: Sequence[int] | None) -> None:
        """Request a move from the controller, or with None its cancellation."""
        moved = ReassignablePartition(partition_index=partition, replicas=None if replicas is None else list(replicas))
        topic = ReassignableTopic(name=TOPIC, partitions=[moved])
        with connect(self._cluster.broker(1).address) as connection:
            request = AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[topic])
            answer = connection.call(request, 0)
        assert not answer.error_code and not answer.responses[0].partitions[0].error_code, answer

    def begin(self, partition: int, replicas: Sequence[int], name: str) -> None:
        """Begin a move to a broker that is stopped."""
        self._cluster.broker(3).pause()
        self.move(partition, replicas)
        self.step(name)

    def end(self, name: str) -> None:
        """Let the broker continue, and wait for the end of the move."""
        self._cluster.broker(3).resume()
        node = f"/brokers/topics/{TOPIC}"
        eventually(lambda: _IN_PROGRESS in self._zookeeper.get(node)[0].decode(), _PATIENCE_S)
        self.step(name)


@contextlib.contextmanager
def _cluster() -> Iterator[tuple[KafkaZooKeeperCluster, KazooClient]]:
    """A context with the cluster. Broker 1 starts first, and so becomes the controller."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = KafkaZooKeeperCluster(Path(folder), 3, properties=_PROPERTIES)
        try:
            cluster.zookeeper.start()
            for broker_id in (1, 2, 3):
                cluster.start_broker(broker_id)
            client = KazooClient(cluster.zookeeper.address)
            client.start()
            try:
                yield cluster, client
            finally:
                client.stop()
        finally:
            cluster.close()


def main() -> int:
    with _cluster() as (cluster, zookeeper):
        print(_HEADER, end="")
        capture = Capture(cluster, zookeeper)
        capture.step(STARTED)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        replicas = [list(each) for each in REPLICAS]
        new = NewTopic(TOPIC, len(replicas), replica_assignment=replicas)
        admin.create_topics([new])[TOPIC].result(_PATIENCE_S)
        capture.step(MADE)
        capture.begin(0, [1, 2, 3], ADDING)
        capture.end(ADDED)
        capture.begin(1, [3, 1], REPLACING)
        capture.end(REPLACED)
        capture.begin(2, [1, 3], TAKEN)
        capture.move(2, None)
        capture.end(CANCELLED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
