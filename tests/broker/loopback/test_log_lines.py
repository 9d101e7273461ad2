"""What the broker says in its log of clients, topics and groups: which lines, how many, and when it says nothing."""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

import ottla
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch
from ottla.wire.schema import Message

from ...helpers.memory_broker import ADDRESS, frame, read_answer, serving

TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
HTTP = b"GET /metrics HTTP/1.1\r\nHost: example.org\r\n\r\n"
UNSERVED = struct.pack(">ihhih", 11, ApiKey.METADATA, 99, 666, -1) + b"\0"


async def say(network: MemoryNetwork, data: bytes) -> str:
    """Send ``data`` on a connection of its own, until the broker closes it; the connection's address."""
    client = await network.connect(*ADDRESS)
    await client.send([data])
    with trio.fail_after(20):
        while await client.receive():
            pass
    return f"client:{network._clients}"


def lines(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """The messages that hold all of these words."""
    return [text for record in caplog.records if all(word in (text := record.getMessage()) for word in words)]


async def ask(client: MemoryConnection, request: Message, version: int) -> None:
    """Send a request and read past its answer."""
    await client.send([frame(request, version, 1, client_id="shop")])
    await read_answer(client)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (TLS, ("looks like TLS", "listener PLAINTEXT is PLAINTEXT", "security.protocol=PLAINTEXT")),
        (HTTP, ("looks like HTTP", "Kafka's protocol only", "metrics.listener")),
        (b"POST / HTTP/1.1\r\n\r\n", ("looks like HTTP",)),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ("a frame of 1397966893 bytes",)),
    ],
)
async def test_a_client_of_another_protocol_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, said: bytes, words: tuple[str, ...]
) -> None:
    async with serving(tmp_path) as network:
        peer = await say(network, said)
    (line,) = lines(caplog, f"closing connection from {peer}: ")
    assert all(word in line for word in words)


def test_a_client_that_is_set_to_too_old_a_version_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """kafka-python 1.4.7 with ``api_version=(0, 11)`` produces as of Kafka 0.11, fetches as of 0.10.1, and reads nothing."""
    fetch = struct.pack(">hhih", ApiKey.FETCH, 3, 1, 8) + b"old-shop" + struct.pack(">iiiii", -1, 500, 1, 1 << 20, 0)
    with ottla.Broker() as broker:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        for _ in range(3):
            with socket.create_connection((host, int(port)), timeout=20) as client:
                client.sendall(struct.pack(">i", len(fetch)) + fetch)
                assert client.recv(1) == b""
    (line,) = lines(caplog, "closing connection", "FETCH version 3 is not served, only 4 to ")
    assert all(word in line for word in ("too old", "Apache Kafka 4", "2.1 or newer", "api_version"))


async def test_a_client_that_tries_again_and_again_has_two_lines_and_one_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as network:
        for _ in range(50):
            await say(network, TLS)
        await say(network, UNSERVED)  # another reason is another matter
        for _ in range(2):
            await say(network, HTTP)
    assert len(lines(caplog, "closing connection", "TLS")) == 1
    assert len(lines(caplog, "closing connection", "version 99")) == 1
    assert len(lines(caplog, "closed 49 more connections from client: this looks like TLS")) == 1
    assert len(lines(caplog, "closed 1 more connection from client: this looks like HTTP")) == 1
    assert len(lines(caplog, "client")) == 5
    assert len(list(tmp_path.glob("protocol-error-*"))) <= 3


async def test_connections_beyond_the_limit_have_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path, max_connections_per_ip="1") as network:
        held = await network.connect(*ADDRESS)
        for _ in range(20):
            await say(network, b"")
        held.close()
    (line,) = lines(caplog, "closing a new connection from client:")
    assert "as many are open as max.connections.per.ip allows" in line
    assert len(lines(caplog, "closed 19 more connections from client")) == 1


@pytest.fixture
def broker(caplog: pytest.LogCaptureFixture) -> Iterator[ottla.Broker]:
    caplog.set_level(logging.INFO, "ottla")
    with ottla.Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


def test_topics_come_and_go_in_the_log(broker: ottla.Broker, caplog: pytest.LogCaptureFixture) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics({"three": {"num_partitions": 3, "configs": {"retention.ms": "1000"}}})
    admin.create_topics({"one": {"num_partitions": 1}})
    admin.create_partitions({"one": 2})
    admin.delete_topics(["three"])
    admin.close()
    said = lines(caplog, "opic ")
    assert "Created topic three with 3 partitions, retention.ms=1000" in said
    assert "Created topic one with 1 partition" in said
    assert "Topic one has 2 partitions now" in said
    assert "Deleted topic three" in said


def test_a_consumer_has_a_line_for_each_generation(broker: ottla.Broker, caplog: pytest.LogCaptureFixture) -> None:
    """A short-lived one has two; kafka-python joins once more where it did not know the topic's partitions at first."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("t", b"x").get(timeout=60)
    producer.close()
    consumer = KafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap_servers, group_id="readers", auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"x"
    consumer.close()
    *joined, left = lines(caplog, "readers")
    for generation, line in enumerate(joined, 1):
        assert line.startswith(f"Group readers: generation {generation} has 1 member: ") and "joined" in line
    assert left.startswith(f"Group readers: generation {len(joined) + 1} is empty: ") and left.endswith("left")


def produce(name: str, acks: int = 1) -> ProduceRequest:
    records = bytes(build_batch([Record(0, time.time_ns() // 1_000_000, None, b"v", [])]))
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=[data])])


def fetch(name: str) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=name, partitions=[asked])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics)


async def create(client: MemoryConnection, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    await ask(client, CreateTopicsRequest(topics=[topic], timeout_ms=5000), 5)


async def test_debug_tells_of_the_start_and_of_decisions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ottla")
    async with serving(tmp_path, num_partitions="3") as network:
        client = await network.connect(*ADDRESS)
        await create(client, "t")
        await ask(client, produce("nowhere"), 7)
        await ask(client, fetch("nowhere"), 11)
        await ask(client, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
        await create(client, "t")
        await ask(client, produce("t"), 7)
    (start,) = lines(caplog, "Settings given")
    assert "num.partitions=3" in start
    assert lines(caplog, "Log directories:", str(tmp_path))
    assert lines(caplog, "Advertised listeners", "PLAINTEXT://test:9092")
    assert lines(caplog, "opened 0 logs")
    assert lines(caplog, "t-0: leader with epoch 0")
    peer = "'shop' at client:1: "
    assert lines(caplog, f"Produce version 7 of {peer}UNKNOWN_TOPIC_OR_PARTITION; nowhere-0 is not on this broker")
    assert lines(caplog, f"Fetch version 11 of {peer}UNKNOWN_TOPIC_OR_PARTITION; nowhere-0 is not on this broker")
    assert lines(caplog, f"Heartbeat version 3 of {peer}")
    assert lines(caplog, f"CreateTopics version 5 of {peer}TOPIC_ALREADY_EXISTS; Topic 't' already exists.")
    assert len(lines(caplog, "Produce version 7")) == 1  # not of what went well


async def test_small_requests_ask_nothing_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    is_enabled_for = logging.Logger.isEnabledFor

    def count(self: logging.Logger, level: int) -> bool:
        asked.append(self.name)
        return is_enabled_for(self, level)

    async with serving(tmp_path) as network:
        client = await network.connect(*ADDRESS)
        await create(client, "t")
        await ask(client, produce("t"), 7)
        await ask(client, fetch("t"), 11)
        monkeypatch.setattr(logging.Logger, "isEnabledFor", count)
        for _ in range(20):
            await ask(client, produce("t"), 7)
            await ask(client, fetch("t"), 11)
        monkeypatch.undo()
    assert [name for name in asked if name.startswith("ottla.")] == []
