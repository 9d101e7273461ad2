"""``ottla serve --zookeeper`` as a person runs it: three brokers, one of them stops, and ZooKeeper goes away."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from ottla.compat_tests.brokers import OttlaProcess
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator, connect, topic_metadata
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.wire.messages.metadata import MetadataResponseTopic

from ..helpers.served import Served, refused

pytestmark = pytest.mark.slow

QUICK = {
    "zookeeper.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
}


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[OttlaProcess]:
    """A broker process that is not started."""
    folder.mkdir()
    process = OttlaProcess(folder, properties=QUICK)
    try:
        yield process
    finally:
        process.close()


class Load:
    """A producer that writes one record after the other; errors are those that its user sees."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent = 0
        self.errors: list[Exception] = []
        self._topic = topic
        self._is_over = threading.Event()
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.close()

    def _run(self) -> None:
        for number in itertools.count():
            if self._is_over.is_set():
                return
            try:
                self._producer.send(self._topic, b"%d" % number, partition=number % 3).get(timeout=60)
                self.sent += 1
            except Exception as error:
                self.errors.append(error)
                return


def values(bootstrap: str, topic: str, count: int, isolation_level: str = "read_uncommitted") -> list[bytes]:
    """The first ``count`` records that a consumer reads, all of which have been written."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
        consumer_timeout_ms=60_000,
    )
    found = [next(consumer).value for _ in range(count)]
    consumer.close()
    return found


def test_any_of_three_brokers_can_stop(tmp_path: Path, zookeeper: str) -> None:
    with contextlib.ExitStack() as stack:
        first, *others = (stack.enter_context(broker(tmp_path / name)) for name in ("1", "2", "3"))
        for each in (first, *others):
            each.properties |= {"zookeeper.connect": zookeeper, "default.replication.factor": "3"}
        first.properties |= {"broker.id": "1"}
        for each in (first, *others):
            each.start()
        bootstrap = ",".join(each.address for each in (first, *others))
        known = AdminClient({"bootstrap.servers": first.address})
        eventually(lambda: len(known.list_topics(timeout=20).brokers) == 3)
        Operator(bootstrap).create_topic("new", 3, {"min.insync.replicas": "2"})
        ids = sorted(described(first, "new").partitions[0].isr_nodes)
        assert ids == [1, 1001, 1002], "brokers without an id were given one"
        transaction(bootstrap, "new")
        with Load(bootstrap, "new") as load:
            for each in (first, others[0]):
                eventually(lambda: all(len(part.isr_nodes) == 3 for part in described(others[1], "new").partitions))
                before = load.sent
                eventually(lambda sent=before: load.errors or load.sent > sent + 20)
                each.stop()
                before = load.sent
                eventually(lambda sent=before: load.errors or load.sent > sent + 20)
                each.start()
        assert load.errors == []
        assert values(bootstrap, "new", load.sent + 3, "read_committed").count(b"in a transaction") == 3


def described(process: OttlaProcess, topic: str) -> MetadataResponseTopic:
    """What a broker tells clients of a topic."""
    with connect(process.address) as connection:
        return topic_metadata(connection, topic)


def transaction(bootstrap: str, topic: str) -> None:
    """One with three partitions, whose leaders ask the coordinator whether they are in it."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "three", "transaction.timeout.ms": 30_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce(topic, b"in a transaction", partition=partition)
    producer.commit_transaction(60)


def test_zookeeper_goes_away_and_comes_back(tmp_path: Path, serve: type[Served]) -> None:
    (tmp_path / "zookeeper").mkdir()
    server = ZooKeeperProcess(tmp_path / "zookeeper", is_durable=True)
    arguments = ("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"), "--zookeeper", server.address)
    times = ("--override", "zookeeper.session.timeout.ms=4000", "--override", "zookeeper.connection.timeout.ms=1000")
    try:
        server.start()
        served = serve(*arguments, *times[:2])
        with KafkaProducer(bootstrap_servers=served.address) as producer:
            producer.send("t", b"0").get(timeout=60)
            server.kill()
            assert served.process.stderr is not None
            assert any("The cluster store does not respond" in line for line in served.process.stderr)
            producer.send("t", b"1").get(timeout=60)
            code, log = served.stop()
            assert code == 0, log
        line = refused(*arguments, *times, code=1)
        assert f"no session at ZooKeeper {server.address} within 1000 ms" in line
        server.start()
        again = serve(*arguments, *times[:2])
        assert values(again.address, "t", 2) == [b"0", b"1"]
        assert again.stop()[0] == 0
    finally:
        server.close()
