"""A broker that looks like an older Kafka: what it advertises, what it refuses, and what clients make of it."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from ottla.base.errors import ErrorCode
from ottla.compat_tests import toolchains
from ottla.compat_tests.wire_client import connect
from ottla.handlers.forwarding import OF_QUORUMS, OF_ZOOKEEPER_MODE
from ottla.handlers.table import SERVED
from ottla.testing.broker import Broker
from ottla.testing.kafka_versions import RELEASES, api_versions, served_by
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.produce import ProduceRequest

PACKED = {
    "3.9": ("kafka-clients-3.9.2", "kafka-clients-3.9.2.jar", "zkBroker"),
    "4.3": ("coordinators-4.3.1", "kafka-clients-4.3.1.jar", "broker"),
    "4.4": ("kafka-clients-4.4.0", "kafka-clients-4.4.0.jar", "broker"),
}
ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.mark.slow
@pytest.mark.parametrize("release", PACKED)
def test_the_table_is_what_kafka_says_of_itself(release: str) -> None:
    folder, file, listener = PACKED[release]
    found = {}
    with zipfile.ZipFile(toolchains.jars(folder) / file) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                text = re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE)
                text = re.sub(r"(?<!:)//[^\"\n]*$", "", text, flags=re.MULTILINE).lstrip()
                message, _ = json.JSONDecoder().raw_decode(text)
                if listener not in message.get("listeners", ()) or message["validVersions"] == "none":
                    continue
                lowest, _, highest = message["validVersions"].partition("-")
                versions = int(lowest), int(highest or lowest) - bool(message.get("latestVersionUnstable"))
                if versions[0] <= versions[1]:
                    found[ApiKey(message["apiKey"])] = versions
    assert api_versions(release) == found


@pytest.mark.parametrize("release", RELEASES)
def test_exactly_the_versions_of_the_release_are_advertised(
    release: str, ottla_broker_factory: Callable[..., Broker]
) -> None:
    with connect(ottla_broker_factory(version=release).bootstrap_servers) as client:
        answer = client.call(ASK, 3)
    kafka = api_versions(release)
    for entry in answer.api_keys:
        lowest, highest = kafka[ApiKey(entry.api_key)]
        ours = SERVED.by_key.get(entry.api_key) or OF_QUORUMS[ApiKey(entry.api_key)]
        assert entry.max_version == min(highest, ours.highest)
        if ours.advertise_from is None:
            assert entry.min_version == max(lowest, ours.lowest)
    ours = {*served_by(release).by_key} - {*OF_ZOOKEEPER_MODE} | {key for key in OF_QUORUMS if key in kafka}
    assert {entry.api_key for entry in answer.api_keys} == ours
    assert bool(answer.finalized_features) is (release >= "4.0")


def test_a_version_that_came_later_is_refused_as_by_the_older_broker(
    ottla_broker_factory: Callable[..., Broker],
) -> None:
    with connect(ottla_broker_factory(version="2.8").bootstrap_servers) as client:
        assert client.call(ProduceRequest(acks=1, timeout_ms=1000), 9).responses == []
        with pytest.raises(EOFError, match="closed"):
            client.call(ProduceRequest(acks=1, timeout_ms=1000), 10)


def test_apiversions_that_came_later_is_told_the_range(ottla_broker_factory: Callable[..., Broker]) -> None:
    with connect(ottla_broker_factory(version="2.8").bootstrap_servers) as client:
        client.send(ASK, 4, answered=False)
        frame = client.receive_frame()
    _, body = decode_response_header(frame, ApiKey.API_VERSIONS, 0)
    answer = decode(ApiVersionsResponse, 0, memoryview(frame)[body:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(entry.min_version, entry.max_version) for entry in answer.api_keys] == [(0, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(("release", "produce", "fetch"), [("2.8", 9, 12), ("3.9", 11, 17), ("4.0", 12, 17)])
def test_clients_negotiate_the_older_versions(
    release: str, produce: int, fetch: int, ottla_broker_factory: Callable[..., Broker]
) -> None:
    broker = ottla_broker_factory(version=release)
    broker.requests.start()
    python = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    python.send("t", b"one").get(timeout=30)
    python.close()
    confluent = Producer({"bootstrap.servers": broker.bootstrap_servers})
    confluent.produce("t", b"two")
    assert confluent.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    assert sorted(message.value() for message in consumer.consume(2, timeout=20)) == [b"one", b"two"]
    consumer.close()
    assert {sent.version for sent in broker.requests.where(api="Produce")} <= set(range(3, produce + 1))
    assert {sent.version for sent in broker.requests.where(api="Fetch")} <= set(range(4, fetch + 1))


def test_a_release_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match=r"version is '0\.8'; it must be one of 2\.8, 3\.0"):
        served_by("0.8")
