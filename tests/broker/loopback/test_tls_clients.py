"""Stock clients that show a certificate to a broker with the files of ``ottla certs``; what each may do is shown elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import javaproperties
import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from ottla import Broker
from ottla.cli.tools.access.certs import make

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certs")
    make(folder, hosts=(), clients=("alice",), days=2)
    return folder


@pytest.fixture(scope="module", params=["TLSv1.2", "TLSv1.3"])
def server(request: pytest.FixtureRequest, certs: Path) -> Iterator[str]:
    """Where a broker listens that asks for certificates."""
    with (certs / "broker.properties").open() as file:
        properties = dict(javaproperties.load(file))
    properties |= {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        "ssl.enabled.protocols": request.param,
    }
    with Broker(properties=properties) as broker:
        yield broker.bootstrap_servers


VALUES = [b"%d" % number + bytes(1000) for number in range(2000)]


def test_kafka_python_produces_and_consumes_with_a_certificate(server: str, certs: Path) -> None:
    shown = str(certs / "alice.pem")
    options = {
        "bootstrap_servers": server,
        "security_protocol": "SSL",
        "ssl_cafile": str(certs / "ca.pem"),
        "ssl_certfile": shown,
        "ssl_keyfile": shown,
    }
    with KafkaProducer(**options) as producer:
        for value in VALUES:
            producer.send("kafka-python", value)
    consumer = KafkaConsumer("kafka-python", group_id="k", auto_offset_reset="earliest", **options)
    found = [next(consumer).value for _ in VALUES]
    consumer.close()
    assert found == VALUES


def test_librdkafka_produces_and_consumes_with_a_certificate(server: str, certs: Path) -> None:
    shown = str(certs / "alice.pem")
    options = {
        "bootstrap.servers": server,
        "security.protocol": "ssl",
        "ssl.ca.location": str(certs / "ca.pem"),
        "ssl.certificate.location": shown,
        "ssl.key.location": shown,
    }
    producer = Producer(options)
    for value in VALUES:
        producer.produce("confluent", value)
    assert producer.flush(60) == 0
    consumer = Consumer(options | {"group.id": "c", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    found = [message.value() for message in consumer.consume(len(VALUES), 60)]
    consumer.close()
    assert found == VALUES
