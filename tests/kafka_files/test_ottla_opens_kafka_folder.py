"""A log directory of Apache Kafka 4.3 (KRaft) is opened by Ottla: the topics are there, and everything in them."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, ConfigResource

from ottla.compat_tests.brokers import OttlaProcess
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect, topic_metadata
from ottla.log.checkpoints import read_leader_epochs, read_topic_id
from ottla.log.disk import OsDisk

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(by_kafka, tmp_path) -> Iterator[OttlaProcess]:
    """Ottla on a copy of the folder, at the address where Kafka was."""
    shutil.copytree(by_kafka.data, tmp_path / "data")
    process = OttlaProcess(tmp_path, properties={"log.cleaner.enable": "false"}, port=by_kafka.process.port)
    try:
        process.start()
        yield process
    finally:
        process.close()


def verify(data: Path) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "ottla", "verify", str(data), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_is_sound(by_kafka):
    """Kafka's files agree with each other by Ottla's judgement, too."""
    assert [f for f in verify(by_kafka.data) if "*.deleted" not in f["problem"]] == []


def test_read_and_go_on(by_kafka, opened, read_all, tmp_path):
    data = tmp_path / "data"
    assert read_all(opened.bootstrap) == by_kafka.contents
    go_on(by_kafka, opened)
    with connect(opened.bootstrap) as connection:
        for topic in ("plain", "compacted"):
            kept_id = read_topic_id(OsDisk(), str(by_kafka.folder(topic) / "partition.metadata"))
            assert topic_metadata(connection, topic).topic_id == kept_id
        assert len(topic_metadata(connection, "__consumer_offsets").partitions) == 3
    opened.stop()
    assert "did not make" in (tmp_path / "broker.log").read_text()
    (kept,) = data.glob("__cluster_metadata-0.*-stray")
    assert contents_of(kept) == contents_of(by_kafka.folder("__cluster_metadata"))
    assert [found["path"] for found in verify(data)] == [kept.name], "what was set aside, and nothing else"
    before, after = (
        read_leader_epochs(OsDisk(), str(folder / "stock-0/leader-epoch-checkpoint"))
        for folder in (by_kafka.data, data)
    )
    assert len(before) == 2 and after[:2] == before and len(after) == 3


def go_on(by_kafka, opened: OttlaProcess) -> None:
    """Clients of Kafka's that never heard of the change go on where they were."""
    bootstrap = opened.bootstrap
    offsets: list[int] = []
    by_kafka.stock.produce("stock", b"later", on_delivery=lambda error, message: offsets.append(message.offset()))
    assert by_kafka.stock.flush(30) == 0
    assert offsets == [by_kafka.contents.rows["read_committed"]["stock"][-1][0] + 1]
    with connect(bootstrap) as connection:
        third = RawProducer(connection, "third").start()
        assert third.epoch > 0, "the transaction that Kafka left open was its last epoch's"
        fresh = RawProducer(connection, "fresh").start()
        assert fresh.producer_id > 7002, "no id is given out twice"
    with group(bootstrap) as consumer:
        consumer.subscribe(["stock"])
        first = eventually(lambda: consumer.poll(0.2))
        assert (first.error(), first.offset()) == (None, by_kafka.contents.committed["readers"])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    policies = {}
    for topic in ("plain", "compacted", "__consumer_offsets", "__transaction_state"):
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        configs = admin.describe_configs([resource])[resource].result(30)
        policies[topic] = (configs["cleanup.policy"].value, configs["retention.ms"].value)
    assert policies["plain"] == ("delete", "-1")
    assert all(policies[topic][0] == "compact" for topic in policies if topic != "plain")


@contextlib.contextmanager
def group(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()
