"""The console of an Ottla broker in a KRaft cluster: Apache Kafka's controller does what it asks, and tells of its quorum."""

from __future__ import annotations

import contextlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect, topic_metadata
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

from ..console.helpers.alone_process import console_at
from ..console.helpers.browsing import Page
from .helpers.on_quorum import PROPERTIES

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
NONE = -1001
"""What confluent-kafka has in place of an offset where none is committed."""


class Console:
    """The console at an address, as a browser uses it."""

    def __init__(self, address: str) -> None:
        self._address = address

    def page(self, target: str) -> Page:
        return self._opened(urllib.request.Request(f"{self._address}{target}"))

    def do(self, target: str, *, typed: str = "", **given: str) -> str:
        """Fill in the form of an action, press the button under its plan; the text of the page that follows.

        ``typed`` is what the plan asks to type before something is deleted.
        """
        form = self.page(f"{target}?{urlencode(given)}").button_form()
        assert form, f"{target} has no button"
        headers = {"Origin": self._address, "Sec-Fetch-Site": "same-origin"}
        data = urlencode({**form, "typed": typed}).encode()
        return self._opened(urllib.request.Request(f"{self._address}{target}", data, headers)).text

    def _opened(self, request: urllib.request.Request) -> Page:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                return Page(response.read().decode())
        except urllib.error.HTTPError as error:
            raise AssertionError(Page(error.read().decode()).text) from error


@pytest.fixture
def port() -> Iterator[HeldPort]:
    held = HeldPort()
    yield held
    held.close()


def leaders(address: str, topic: str) -> dict[int, int]:
    """The leader of each partition, as a broker tells."""
    with connect(address) as connection:
        found = topic_metadata(connection, topic)
    return {each.partition_index: each.leader_id for each in found.partitions} if not found.error_code else {}


def start_offset(address: str, topic: str, partition: int) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-2)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    with connect(address) as connection:
        offset: int = connection.call(request, 5).topics[0].partitions[0].offset
    return offset


def test_every_action_on_topics_and_groups(tmp_path: Path, port: HeldPort) -> None:
    cluster = QuorumCluster(tmp_path, 1, 1, properties={**PROPERTIES, "default.replication.factor": "1"})
    ottla = cluster.nodes[-1]
    ottla.properties |= {"console.listener": f"127.0.0.1:{port.number}", "console.allow.writes": "true"}
    with contextlib.closing(cluster):
        cluster.start()
        console = Console(f"http://127.0.0.1:{port.number}")
        assert "was made, with 4 partitions" in console.do("/create-topic", name="orders", partitions="4", replicas="1")
        eventually(lambda: len(leaders(ottla.address, "orders")) == 4, PATIENCE_S)
        console.do("/topics/orders/add-partitions", count="6")
        eventually(lambda: len(leaders(ottla.address, "orders")) == 6, PATIENCE_S)
        led = leaders(ottla.address, "orders")
        assert set(led.values()) == {1, 2}, "by either kind"
        console.do("/topics/orders/configure", name="retention.ms", value="86400000")
        changed = "retention.ms Change… Default… 86400000 this topic"
        eventually(lambda: changed in console.page("/topics/orders/settings").text, PATIENCE_S)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        for partition in led:
            for _ in range(3):
                producer.produce("orders", b"value", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        for partition, leader in led.items():
            console.do("/topics/orders/delete-records", typed="orders", partition=str(partition), offset="2")
            assert start_offset(cluster.node(leader).address, "orders", partition) == 2
        for group in ("a", "b", "c", "d"):
            eventually(lambda group=group: is_coordinated(cluster.bootstrap, group, led), PATIENCE_S)
            console.do("/reset-offsets", id=group, topics="orders", to="latest")
            assert committed(cluster.bootstrap, group, led) == [3] * 6
            console.do("/delete-group", typed=group, id=group)
        console.do("/topics/orders/delete", typed="orders")
        eventually(lambda: leaders(ottla.address, "orders") == {}, PATIENCE_S)


def test_the_page_of_apache_kafkas_quorum(tmp_path: Path, port: HeldPort) -> None:
    cluster = QuorumCluster(tmp_path, 1, 1, properties={**PROPERTIES, "default.replication.factor": "1"})
    ottla = cluster.nodes[-1]
    ottla.properties |= {"console.listener": f"127.0.0.1:{port.number}"}
    with contextlib.closing(cluster):
        cluster.start()
        with console_at(cluster.node(1).address) as alone:
            for console in (Console(f"http://127.0.0.1:{port.number}"), Console(alone.rstrip("/"))):
                eventually(lambda at=console: "Active controller node 1" in at.page("/quorum").text, PATIENCE_S)
                page = console.page("/quorum")
                assert "Voters 1 Observers 1" in page.text
                assert any(row.startswith("1 active controller") for row in page.row_texts())
                assert any(row.startswith("2 follows") for row in page.row_texts())
                assert "metadata.version 30 7 to 30" in page.row_texts()
                assert "the 1 voter of the quorum" in console.page("/").text


def is_coordinated(bootstrap: str, group: str, partitions: dict[int, int]) -> bool:
    """Whether a group without offsets has a coordinator that has loaded it, which a client asks for once."""
    try:
        return committed(bootstrap, group, partitions) == [NONE] * len(partitions)
    except KafkaException as error:
        assert error.args[0].code() in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
        return False


def committed(bootstrap: str, group: str, partitions: dict[int, int]) -> list[int]:
    """The committed offset of a group on each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        found = consumer.committed([TopicPartition("orders", each) for each in partitions], timeout=PATIENCE_S)
        return [each.offset for each in found]
    finally:
        consumer.close()


def test_brokers_of_kafka_are_named_where_only_ottla_tells(tmp_path: Path, port: HeldPort) -> None:
    """Without their having logged a request that they do not know."""
    cluster = QuorumCluster(tmp_path, 1, 1, properties=PROPERTIES)
    ottla = cluster.nodes[-1]
    ottla.properties |= {"console.listener": f"127.0.0.1:{port.number}"}
    with contextlib.closing(cluster):
        cluster.start()
        console = Console(f"http://127.0.0.1:{port.number}")
        why = "did not report its data: it is not an Ottla broker of this version"
        eventually(lambda: why in console.page("/connections").text)  # its own start may not be over
        assert "ottla-broker" not in cluster.nodes[0].log() and "32000" not in cluster.nodes[0].log()
