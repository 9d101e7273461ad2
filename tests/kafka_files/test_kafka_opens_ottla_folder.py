"""A log directory of Ottla is opened by Apache Kafka 3.9 in ZooKeeper mode, with the state of Ottla's cluster in ZooKeeper.

Two states of a compaction that a crash interrupted are made in it first, since Kafka has to finish them as Ottla would.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.compat_tests.brokers import BrokerProcess, OttlaProcess
from ottla.compat_tests.java.tools import SHORT_LIVED
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.wire_client import connect
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.log.checkpoints import read_leader_epochs, read_offsets
from ottla.log.disk import OsDisk

from ..console.helpers.alone_process import console_of
from .conftest import PROPERTIES as FILLED_PROPERTIES
from .conftest import Contents, Filled, fill

pytestmark = pytest.mark.slow

PROPERTIES = """\
broker.id=1
zookeeper.connect=127.0.0.1:{zookeeper_port}
listeners=PLAINTEXT://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.enable=false
"""


COORDINATORS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""Of a cluster that has one broker."""


def java(jars: Path, *words: str) -> list[str]:
    log4j = f"-Dlog4j.configuration=file:{jars / 'log4j.properties'}"
    return ["java", *SHORT_LIVED[1:], log4j, "-cp", f"{jars}/*", *words]


class KafkaOnZooKeeper(BrokerProcess):
    """Apache Kafka 3.9 as broker 1."""

    clean_exit = 143

    def __init__(self, folder: Path, jars: Path, zookeeper: ZooKeeperProcess, port: int) -> None:
        super().__init__(folder, port=port)
        self._jars = jars
        self._config = folder / "server.properties"
        self._config.write_text(PROPERTIES.format(folder=folder, port=port, zookeeper_port=zookeeper.port))

    def command(self) -> list[str]:
        return java(self._jars, "-Xmx512M", "kafka.Kafka", str(self._config))


def interrupt_compaction(folder: Path) -> None:
    """Leave what a crash leaves after a swap was decided, and of a compaction that had not come so far."""
    first, second = sorted(folder.glob("*.log"))[:2]
    for path in [*folder.glob(f"{first.stem}.*")]:
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            path.rename(f"{path}.swap")
    for path in [*folder.glob(f"{second.stem}.*")]:
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex"):
            (folder / f"{path.name}.cleaned").write_bytes(b"not finished")


@pytest.fixture
def zookeeper(fetch_jars, tmp_path) -> Iterator[ZooKeeperProcess]:
    fetch_jars("zookeeper", "kafka-3.9.2")
    process = ZooKeeperProcess(tmp_path)
    try:
        process.start()
        yield process
    finally:
        process.close()


@pytest.fixture
def by_ottla(zookeeper, tmp_path) -> Iterator[Filled]:
    """The folder of a broker of Ottla on the ZooKeeper."""
    on_zookeeper = {"broker.id": "1", "zookeeper.connect": zookeeper.address}
    folder = tmp_path / "ottla"
    folder.mkdir()
    process = OttlaProcess(folder, properties={**FILLED_PROPERTIES, **COORDINATORS, **on_zookeeper})
    try:
        yield fill(process)
    finally:
        process.close()


@pytest.fixture
def opened(by_ottla, fetch_jars, zookeeper, tmp_path) -> Iterator[KafkaOnZooKeeper]:
    """Kafka on a copy of the folder, at the address where Ottla was."""
    jars = fetch_jars("zookeeper", "kafka-3.9.2")
    shutil.copytree(by_ottla.data, tmp_path / "data")
    interrupt_compaction(tmp_path / "data/compacted-0")
    kafka = KafkaOnZooKeeper(tmp_path, jars, zookeeper, by_ottla.process.port)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.close()


def test_read_and_go_on(by_ottla, opened, read_all, kafka_dump_log, tmp_path):
    assert read_all(opened.bootstrap) == by_ottla.contents
    look_at_pages(opened.bootstrap, by_ottla.contents)
    stock: Producer = by_ottla.stock
    offsets: list[int] = []
    stock.produce("stock", b"later", on_delivery=lambda error, message: offsets.append(message.offset()))
    assert stock.flush(30) == 0
    assert offsets == [by_ottla.contents.rows["read_committed"]["stock"][-1][0] + 1]
    with connect(opened.bootstrap) as connection:
        third = RawProducer(connection, "third").start()
        assert third.epoch > 0, "the transaction that Ottla left open was its last epoch's"
    opened.stop()
    compacted = tmp_path / "data/compacted-0"
    assert not [*compacted.glob("*.swap"), *compacted.glob("*.cleaned")]
    logs = sorted((tmp_path / "data").glob("*/*.log"))
    printed = kafka_dump_log(logs, "--deep-iteration").stdout
    assert printed.count("isvalid: true") > 200 and "isvalid: false" not in printed
    same_small_files(by_ottla.data, tmp_path / "data")


def look_at_pages(bootstrap: str, contents: Contents) -> None:
    """Pages of ``ottla console`` show what Kafka has."""
    committed = [(value or b"").decode() for _, _, _, value, _ in contents.rows["read_committed"]["stock"]]
    with console_of(bootstrap) as page:
        assert "No problem found. Checked: the leaders and in-sync replicas of " in page("/").text
        assert {"stock", "plain", "compacted"} <= page("/topics").links.keys()
        topic = page("/topics/stock")
        assert {"readers", "exactly-once"} <= topic.links.keys()
        assert "compression.type producer default" in page("/topics/stock/settings").text
        assert "open since offset" in page("/topics/transactions").text
        assert committed[-1] in page("/topics/stock/records?n=500").text
        transactions = page("/topics/transactions/records?from=oldest&n=500").text
        for what in ("committed", "aborted", "open", "commit marker", "abort marker"):
            assert what in transactions
        assert "Empty" in page("/groups").text
        assert "Ongoing" in page("/transactions").text
        assert "has a leader, and all its replicas in sync" in page("/cluster").text
        assert "every client may do everything" in page("/acls").text
        group = page("/group?id=readers")
        assert f"stock 0 {contents.committed['readers']}" in group.text


def same_small_files(before: Path, after: Path) -> None:
    """What Kafka wrote again, or left as it was, is what Ottla wrote."""
    assert (after / ".kafka_cleanshutdown").read_bytes() == (before / ".kafka_cleanshutdown").read_bytes()
    disk = OsDisk()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        ours, theirs = (read_offsets(disk, str(folder / name)) for folder in (before, after))
        for topic in ("plain", "appended", "trimmed", "compacted"):
            assert ours.get((topic, 0)) == theirs.get((topic, 0)), (name, topic)
    for topic in ("plain", "appended", "trimmed"):
        for path in (before / f"{topic}-0").iterdir():
            kept = after / f"{topic}-0" / path.name
            if path.name == "leader-epoch-checkpoint":
                # Kafka begins an epoch with the leadership, Ottla with the first batch.
                epochs = read_leader_epochs(disk, str(path))
                assert read_leader_epochs(disk, str(kept))[: len(epochs)] == epochs
            elif kept.exists() or path.suffix not in (".deleted", ".snapshot"):
                assert kept.read_bytes() == path.read_bytes(), kept
