"""Stock clients on a SASL listener: the broker that docs/security.md sets up, users added as it says, sessions that end."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import javaproperties
import kafka.errors
import pytest
from kafka import KafkaConsumer, KafkaProducer

import ottla
from ottla.compat_tests.java.tools import KafkaTools

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[3] / "docs" / "security.md"
_SECONDS = 60


def user(name: str, password: str, mechanism: str) -> dict[str, str]:
    return {"sasl_mechanism": mechanism, "sasl_plain_username": name, "sasl_plain_password": password}


USERS = [
    user("admin", "admins-secret", "SCRAM-SHA-256"),
    user("admin", "admins-secret", "SCRAM-SHA-512"),
    user("bob", "bobs-secret", "PLAIN"),
]


def settings(broker: ottla.Broker, who: dict[str, str]) -> dict[str, Any]:
    """Of a client of kafka-python."""
    return {"bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SASL_PLAINTEXT", **who}


def librdkafka(broker: ottla.Broker, who: dict[str, str]) -> dict[str, Any]:
    """Of a client of confluent-kafka."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": who["sasl_mechanism"],
        "sasl.username": who["sasl_plain_username"],
        "sasl.password": who["sasl_plain_password"],
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ottla.Broker]:
    """As the page says, except for the port, the log directory, and sessions that end sooner."""
    folder = tmp_path_factory.mktemp("sasl")
    page = PAGE.read_text()
    (text,) = re.findall(r"```properties\n(listeners=SASL_PLAINTEXT.*?)```", page, re.DOTALL)
    given = dict(javaproperties.load(io.StringIO(text)))
    properties = given | {
        "listeners": given["listeners"].replace(":9092", ":0"),
        "log.dirs": str(folder / "data"),
        "connections.max.reauth.ms": "3000",
        "metrics.listener": "127.0.0.1:0",
    }
    (folder / "server.properties").write_text(javaproperties.dumps(properties))
    for command in re.findall(r"^echo .*users add.*$", page, re.MULTILINE):
        program = command.replace("ottla", f"{sys.executable} -m ottla")
        subprocess.run(["sh", "-c", program], cwd=folder, check=True, capture_output=True, timeout=_SECONDS)
    with ottla.Broker(data_dir=properties.pop("log.dirs"), properties=properties) as running:
        yield running


def test_the_client_file_of_the_page(broker: ottla.Broker, tmp_path: Path) -> None:
    page = PAGE.read_text()
    (text,) = re.findall(r"```properties\n(security\.protocol=.*?)```", page, re.DOTALL)
    (tmp_path / "client.properties").write_text(text)
    broker.create_topic("of-the-page")
    (command,) = re.findall(r"^ottla (topics list --command-config .*)$", page, re.MULTILINE)
    arguments = [*command.split(), "--bootstrap-server", broker.bootstrap_servers]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "of-the-page" in done.stdout


@pytest.mark.parametrize("who", USERS, ids=lambda who: who["sasl_mechanism"])
def test_kafka_python(broker: ottla.Broker, who: dict[str, str]) -> None:
    topic = f"kafka-python-{who['sasl_mechanism']}"
    with KafkaProducer(**settings(broker, who)) as producer:
        producer.send(topic, b"one").get(_SECONDS)
    with KafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings(broker, who)) as consumer:
        assert next(iter(consumer)).value == b"one"
        consumer.commit()


@pytest.mark.parametrize("who", USERS, ids=lambda who: who["sasl_mechanism"])
def test_confluent_kafka(broker: ottla.Broker, who: dict[str, str]) -> None:
    topic = f"confluent-{who['sasl_mechanism']}"
    producer = confluent_kafka.Producer(librdkafka(broker, who))
    producer.produce(topic, b"one")
    assert producer.flush(_SECONDS) == 0
    consumer = confluent_kafka.Consumer(librdkafka(broker, who) | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        (record,) = consumer.consume(1, _SECONDS)
        assert (record.error(), record.value()) == (None, b"one")
    finally:
        consumer.close()


@pytest.mark.parametrize("who", USERS, ids=lambda who: who["sasl_mechanism"])
def test_a_wrong_password(broker: ottla.Broker, who: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    wrong = {**who, "sasl_plain_password": "wrong"}
    # It tries again for so long, and says why in its log.
    with caplog.at_level(logging.INFO, "kafka"), pytest.raises(kafka.errors.KafkaTimeoutError):
        KafkaProducer(**settings(broker, wrong), bootstrap_timeout_ms=1000)
    assert "Connection lost: [Error 58] SaslAuthenticationFailedError" in caplog.text
    said: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(librdkafka(broker, wrong) | {"error_cb": said.append})
    deadline = time.monotonic() + _SECONDS
    while not any(error.code() == confluent_kafka.KafkaError._AUTHENTICATION for error in said):
        assert time.monotonic() < deadline, said
        producer.poll(0.1)


def test_sessions_end_and_clients_go_on(broker: ottla.Broker) -> None:
    """The libraries show again who they are, and nothing is lost."""
    who = USERS[1]
    producer = confluent_kafka.Producer(librdkafka(broker, who))
    with KafkaProducer(**settings(broker, who)) as other:
        for number in range(20):
            producer.produce("sessions", b"%d" % number)
            assert producer.flush(_SECONDS) == 0
            other.send("sessions", b"%d" % number).get(_SECONDS)
            time.sleep(0.4)
    assert len(broker.records("sessions", 40)) == 40
    with urllib.request.urlopen(f"http://{broker.metrics_address}/metrics") as page:
        counts = dict(
            re.findall(r"^kafka_server_socket_server_metrics_(\w+)_total\{.*\} (\S+)$", page.read().decode(), re.M)
        )
    assert float(counts["successful_reauthentication"]) >= 2
    assert "failed_reauthentication" not in counts


def test_kafka_configs_as_it_is(broker: ottla.Broker, tmp_path: Path) -> None:
    tools = KafkaTools(broker.bootstrap_servers, tmp_path)
    module = (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="admins-secret";'
    )
    config = tools.file(
        "admin.properties",
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={module}\n",
    )
    carol = ("--entity-type", "users", "--entity-name", "carol", "--command-config", config)
    credential = "SCRAM-SHA-512=[iterations=8192,password=carols-secret]"
    tools.run("configs", "--alter", "--add-config", credential, *carol)
    described = tools.run("configs", "--describe", *carol)
    assert "SCRAM credential configs for user-principal 'carol' are SCRAM-SHA-512=iterations=8192" in described
    with KafkaProducer(**settings(broker, user("carol", "carols-secret", "SCRAM-SHA-512"))) as producer:
        producer.send("carols", b"one").get(_SECONDS)
