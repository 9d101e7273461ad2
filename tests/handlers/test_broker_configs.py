"""Settings of brokers changed while they run: where they are kept, how they show, and that they are in force."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

from ..helpers.zookeeper_broker import QUORUM, NewBroker, on_both_kinds
from .conftest import MakeTopic, Send
from .test_configs import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, change, entries, replace

__all__ = ["on_both_kinds"]

DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
ALL = ""
"""The broker resource that stands for all brokers."""


@pytest.fixture(scope="module")
def properties() -> dict[str, str]:
    return {"log.retention.hours": "48"}


@pytest.fixture(scope="module")
def from_the_start(cluster_kind: str) -> dict[str, str]:
    """What all brokers have that nobody has set: a quorum begins with it (KIP-966), and it cannot be removed."""
    return {"min.insync.replicas": "1"} if cluster_kind == QUORUM else {}


@pytest.fixture(autouse=True)
def _nothing_is_set(send: Send, from_the_start: dict[str, str]) -> None:
    kept = {name.replace(".", "_"): value for name, value in from_the_start.items()}
    assert replace(send, BROKER, "1") == replace(send, BROKER, ALL, **kept) == 0


def set_on_all(send: Send, from_the_start: dict[str, str]) -> dict[str, DescribeConfigsResourceResult]:
    """What was set on all brokers, without what is there from the start."""
    found = entries(send, BROKER, ALL, include_synonyms=True)
    assert {name: found.pop(name).value for name in from_the_start} == from_the_start
    return found


def synonyms(send: Send, kind: int, name: str, config: str) -> list[tuple[str, str | None, int]]:
    found = entries(send, kind, name, include_synonyms=True)[config].synonyms
    return [(synonym.name, synonym.value, synonym.source) for synonym in found]


def test_a_broker_is_stronger_than_all_brokers_and_these_than_the_file(send: Send, make_topic: MakeTopic) -> None:
    topic, _ = make_topic()
    assert change(send, TOPIC, topic, ("retention.ms", DELETE, None)) == 0
    assert change(send, BROKER, ALL, ("log.retention.ms", SET, "5000")) == 0
    assert change(send, BROKER, "1", ("log.retention.ms", SET, "6000")) == 0
    entry = entries(send, BROKER, "1")["log.retention.ms"]
    assert (entry.value, entry.config_source, entry.read_only) == ("6000", DYNAMIC_BROKER, False)
    behind = [
        ("log.retention.ms", "6000", DYNAMIC_BROKER),
        ("log.retention.ms", "5000", DYNAMIC_DEFAULT),
        ("log.retention.hours", "48", STATIC),
    ]
    assert synonyms(send, BROKER, "1", "log.retention.ms") == behind
    assert synonyms(send, TOPIC, topic, "retention.ms") == behind
    assert entries(send, TOPIC, topic)["retention.ms"].value == "6000"
    assert change(send, BROKER, "1", ("log.retention.ms", DELETE, None)) == 0
    assert entries(send, TOPIC, topic)["retention.ms"].value == "5000"
    assert change(send, BROKER, ALL, ("log.retention.ms", DELETE, None)) == 0
    assert entries(send, TOPIC, topic)["retention.ms"].value == str(48 * 3_600_000)


def test_all_brokers_show_only_what_was_set(send: Send, from_the_start: dict[str, str]) -> None:
    assert set_on_all(send, from_the_start) == {}
    assert change(send, BROKER, "1", ("log.segment.bytes", SET, "2000000")) == 0
    assert change(send, BROKER, ALL, ("log.segment.bytes", SET, "3000000"), ("num.io.threads", SET, "4")) == 0
    found = set_on_all(send, from_the_start)
    assert {name: (e.value, e.config_source) for name, e in found.items()} == {
        "log.segment.bytes": ("3000000", DYNAMIC_DEFAULT),
        "num.io.threads": ("4", DYNAMIC_DEFAULT),
    }
    assert [s.source for s in found["log.segment.bytes"].synonyms] == [DYNAMIC_DEFAULT]


def test_replacing_and_lists(send: Send, from_the_start: dict[str, str]) -> None:
    assert change(send, BROKER, ALL, ("log.cleanup.policy", APPEND, "compact")) == 0
    assert entries(send, BROKER, ALL)["log.cleanup.policy"].value == "delete,compact"
    assert change(send, BROKER, ALL, ("log.retention.ms", APPEND, "1")) == ErrorCode.INVALID_CONFIG
    assert change(send, BROKER, ALL, ("log.cleanup.policy", SUBTRACT, "delete,compact")) == 0
    assert entries(send, BROKER, ALL)["log.cleanup.policy"].value == ""
    kept = {name.replace(".", "_"): value for name, value in from_the_start.items()}
    assert replace(send, BROKER, ALL, log_segment_bytes="2000000", **kept) == 0
    assert set(set_on_all(send, from_the_start)) == {"log.segment.bytes"}


@pytest.mark.parametrize("cluster_kind", [QUORUM], indirect=True)
def test_the_fewest_replicas_in_sync_are_set_on_all_brokers_of_a_quorum_only(send: Send) -> None:
    name = "min.insync.replicas"
    assert change(send, BROKER, ALL, (name, DELETE, None)) == ErrorCode.INVALID_CONFIG
    assert replace(send, BROKER, ALL) == ErrorCode.INVALID_CONFIG
    assert change(send, BROKER, "1", (name, SET, "1")) == ErrorCode.INVALID_CONFIG
    assert change(send, BROKER, ALL, (name, SET, "1")) == 0


def test_a_list_of_a_topic_starts_from_the_default_and_not_from_what_brokers_have(
    send: Send, make_topic: MakeTopic
) -> None:
    topic, _ = make_topic()
    assert change(send, BROKER, ALL, ("log.cleanup.policy", SET, "compact")) == 0
    assert entries(send, TOPIC, topic)["cleanup.policy"].value == "compact"
    assert change(send, TOPIC, topic, ("cleanup.policy", SUBTRACT, "compact")) == 0
    assert entries(send, TOPIC, topic)["cleanup.policy"].value == "delete"


def test_which_settings_can_be_changed(send: Send) -> None:
    writable = {name for name, entry in entries(send, BROKER, "1").items() if not entry.read_only}
    assert {"log.retention.ms", "message.max.bytes", "log.cleaner.threads", "max.connections"} <= writable
    assert {"listeners", "advertised.listeners", "listener.security.protocol.map"} <= writable
    assert not {"log.retention.hours", "num.partitions", "log.cleaner.enable", "node.id"} & writable


@pytest.mark.parametrize("resource", ["1", ALL])
@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:1", ErrorCode.INVALID_REQUEST),
        ("listeners", "nonsense", ErrorCode.INVALID_REQUEST),
        ("ssl.keystore.location", "x", ErrorCode.INVALID_REQUEST),
        ("listener.name.plaintext.max.connections", "many", ErrorCode.INVALID_REQUEST),
        ("listener.name.plaintext.sasl.enabled.mechanisms", "PLAIN", ErrorCode.INVALID_REQUEST),
        ("log.retention.hours", "1", ErrorCode.INVALID_REQUEST),
        ("num.partitions", "3", ErrorCode.INVALID_REQUEST),
        ("zookeeper.connect", "x", ErrorCode.INVALID_REQUEST),
        ("log.retention.ms", "soon", ErrorCode.INVALID_REQUEST),
        ("log.segment.bytes", "1", ErrorCode.INVALID_REQUEST),
        ("leader.replication.throttled.rate", "-1", ErrorCode.INVALID_REQUEST),
        ("log.cleaner.threads", "9", ErrorCode.INVALID_REQUEST),
        ("num.recovery.threads.per.data.dir", "5", ErrorCode.INVALID_REQUEST),
        ("log.retention.ms", None, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused_changes_nothing(
    send: Send, from_the_start: dict[str, str], resource: str, name: str, value: str | None, code: ErrorCode
) -> None:
    for validate_only in (True, False):
        changes = (("log.segment.bytes", SET, "3000000"),) if name != "log.segment.bytes" else ()
        assert change(send, BROKER, resource, *changes, (name, SET, value), validate_only=validate_only) == code
    assert set_on_all(send, from_the_start) == {}
    assert entries(send, BROKER, "1")["log.segment.bytes"].config_source == DEFAULT


def test_a_password_is_of_a_single_broker_and_needs_a_secret_on_a_zookeeper(send: Send, cluster_kind: str) -> None:
    name = "listener.name.plain.sasl.jaas.config"
    password = (name, SET, "x")
    assert change(send, BROKER, "1", password, validate_only=True) == 0
    is_kept = cluster_kind == QUORUM  # in plain text, as Kafka does
    assert change(send, BROKER, "1", password) == (0 if is_kept else ErrorCode.INVALID_CONFIG)
    assert change(send, BROKER, ALL, password) == ErrorCode.INVALID_REQUEST
    shown = entries(send, BROKER, "1").get(name)
    assert (shown is not None) == is_kept
    if shown is not None:
        assert (shown.value, shown.is_sensitive, shown.config_source) == (None, True, DYNAMIC_BROKER)


def test_validate_only_changes_nothing(send: Send) -> None:
    assert change(send, BROKER, "1", ("log.segment.bytes", SET, "3000000"), validate_only=True) == 0
    assert replace(send, BROKER, "1", validate_only=True, log_segment_bytes="3000000") == 0
    assert entries(send, BROKER, "1")["log.segment.bytes"].config_source == DEFAULT


def test_deleting_what_cannot_be_set_is_no_error(send: Send) -> None:
    assert change(send, BROKER, "1", ("leader.replication.throttled.rate", DELETE, None)) == 0
    assert change(send, BROKER, "1", ("listeners", DELETE, None), ("log.retention.ms", DELETE, None)) == 0


def test_what_kafka_takes_and_ottla_does_not_use_is_kept(send: Send) -> None:
    assert change(send, BROKER, "1", ("background.threads", SET, "7"), ("my.own", SET, "x")) == 0
    found = entries(send, BROKER, "1")
    threads, own = found["background.threads"], found["my.own"]
    assert (threads.value, threads.config_source, threads.is_sensitive) == ("7", DYNAMIC_BROKER, False)
    assert (own.value, own.config_source, own.is_sensitive) == (None, DYNAMIC_BROKER, True)


def test_settings_of_security_that_ottla_does_not_use_are_kept_for_single_brokers(
    send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    name = "sasl.kerberos.min.time.before.relogin"
    assert change(send, BROKER, ALL, (name, SET, "1000")) == ErrorCode.INVALID_REQUEST
    assert change(send, BROKER, "1", (name, SET, "soon")) == ErrorCode.INVALID_REQUEST
    assert change(send, BROKER, "1", (name, SET, "1000")) == 0
    assert f"{name} is set dynamically, but is a property of Kafka that Ottla does not use" in caplog.text
    found = entries(send, BROKER, "1")[name]
    assert (found.value, found.config_source, found.is_sensitive) == ("1000", DYNAMIC_BROKER, False)
    assert change(send, BROKER, "1", ("sasl.enabled.mechanisms", APPEND, "PLAIN")) == 0
    assert entries(send, BROKER, "1")["sasl.enabled.mechanisms"].value == "GSSAPI,PLAIN"


def test_a_limit_of_a_listener_may_be_set_for_all_brokers(send: Send) -> None:
    name = "listener.name.plaintext.max.connections"
    assert change(send, BROKER, ALL, (name, SET, "100")) == 0
    found = entries(send, BROKER, "1")[name]
    assert (found.value, found.config_source, found.is_sensitive) == ("100", DYNAMIC_DEFAULT, False)


def produce(send: Send, topic: str, size: int) -> int:
    batch = memoryview(build_batch([Record(value=bytes(size))]))
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    return int(send(request, 9).responses[0].partition_responses[0].error_code)


def test_a_limit_is_in_force_at_once_for_topics_old_and_new(send: Send, make_topic: MakeTopic) -> None:
    before, _ = make_topic()
    overridden, _ = make_topic(max_message_bytes="5000")
    assert change(send, BROKER, ALL, ("message.max.bytes", SET, "1000")) == 0
    after, _ = make_topic()
    assert produce(send, before, 2000) == produce(send, after, 2000) == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(send, overridden, 2000) == 0
    assert change(send, BROKER, "1", ("message.max.bytes", SET, "3000")) == 0
    assert produce(send, before, 2000) == produce(send, after, 2000) == 0


def test_a_limit_on_connections_is_in_force_at_once(broker: ottla.Broker, send: Send) -> None:
    host, port = broker.bootstrap_servers.rsplit(":", 1)
    assert change(send, BROKER, "1", ("max.connections.per.ip", SET, "1")) == 0
    with socket.create_connection((host, int(port)), timeout=20) as refused:
        assert refused.recv(1) == b""
    assert change(send, BROKER, "1", ("max.connections.per.ip", DELETE, None)) == 0


def test_clients_of_a_listener_that_comes_are_told_of_it(
    broker: ottla.Broker, send: Send, connect: Callable[[str], Send]
) -> None:
    first = broker.bootstrap_servers
    with socket.create_server(("127.0.0.1", 0)) as free:
        second = f"127.0.0.1:{free.getsockname()[1]}"
    listeners = ("listeners", SET, f"PLAINTEXT://{first},SECOND://{second}")
    protocols = ("listener.security.protocol.map", SET, "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT")
    assert change(send, BROKER, "1", listeners, protocols) == 0

    def told() -> list[str]:
        try:
            nodes = connect(second)(DescribeClusterRequest(), 0).brokers
        except ConnectionRefusedError:
            return []
        return [f"{node.host}:{node.port}" for node in nodes]

    assert eventually(told) == [second]
    assert [node.port for node in send(DescribeClusterRequest(), 0).brokers] == [int(first.rpartition(":")[2])]


def test_they_outlive_a_restart(
    new_broker: NewBroker, connect: Callable[[str], Send], tmp_path: Path, from_the_start: dict[str, str]
) -> None:
    with new_broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        send(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]), 4)
        assert change(send, BROKER, ALL, ("message.max.bytes", SET, "1000"), ("max.connections", SET, "99")) == 0
        assert change(send, BROKER, "1", ("log.segment.bytes", SET, "2000000")) == 0
    with new_broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        assert set(set_on_all(send, from_the_start)) == {"message.max.bytes", "max.connections"}
        assert entries(send, BROKER, "1")["log.segment.bytes"].config_source == DYNAMIC_BROKER
        assert produce(send, "t", 2000) == ErrorCode.MESSAGE_TOO_LARGE
