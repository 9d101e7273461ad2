"""``ottla.Broker(users=…, tls=True)``: who gets in, and by what."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

import ottla
from ottla.base.files import read_file
from ottla.security.client_security import kafka_python_options, read_client_security
from ottla.testing.broker_security import MECHANISMS

USERS = {"alice": 'her "secret"', "bob": "another, with \\ in it"}


def topics(properties: dict[str, str]) -> list[str]:
    """What a client that gets in so sees."""
    options = kafka_python_options(read_client_security(properties, read_file))
    admin = KafkaAdminClient(bootstrap_servers=properties["bootstrap.servers"], bootstrap_timeout_ms=5_000, **options)
    try:
        return list(admin.list_topics())
    finally:
        admin.close()


def test_users_over_tls_by_each_mechanism() -> None:
    with ottla.Broker(users=USERS, tls=True) as broker:
        broker.create_topic("seen")
        assert broker.client_properties()["security.protocol"] == "SASL_SSL"
        for user in USERS:
            assert topics(broker.client_properties(user)) == ["seen"]
        jaas = broker.client_properties("bob")["sasl.jaas.config"].replace("scram.Scram", "plain.Plain")
        for mechanism in MECHANISMS:
            assert topics(broker.client_properties("bob") | {"sasl.mechanism": mechanism}) == ["seen"]
        with pytest.raises(KafkaError):
            topics(broker.client_properties("bob") | {"sasl.jaas.config": jaas.replace("another", "no")})
        with pytest.raises(KeyError):
            broker.client_properties("mallory")


def test_users_without_tls() -> None:
    with ottla.Broker(users=USERS) as broker:
        assert broker.ca_file is None
        assert broker.client_properties("bob")["security.protocol"] == "SASL_PLAINTEXT"
        assert topics(broker.client_properties("bob")) == []


def test_tls_without_users_and_the_files_go_with_the_broker() -> None:
    with ottla.Broker(tls=True) as broker:
        assert broker.client_properties()["security.protocol"] == "SSL"
        assert topics(broker.client_properties()) == []
        folder = Path(str(broker.ca_file)).parent
        modes = {file.name: file.stat().st_mode & 0o077 for file in folder.iterdir() if file.name != "ca.pem"}
        assert set(modes.values()) == {0}
        with pytest.raises((KafkaError, ssl.SSLError)):
            topics(
                broker.client_properties() | {"ssl.truststore.location": ssl.get_default_verify_paths().openssl_cafile}
            )
    assert not folder.exists()


def test_the_command_line_says_that_a_password_is_wrong(tmp_path: Path) -> None:
    with ottla.Broker(users=USERS) as broker:
        properties = broker.client_properties("alice") | {"bootstrap.timeout.ms": "500"}
        properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("secret", "wrong")
        file = tmp_path / "alice.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()).replace("\\", "\\\\"))
        command = [
            sys.executable,
            "-m",
            "ottla",
            "topics",
            "list",
            "-b",
            broker.bootstrap_servers,
            "--command-config",
            str(file),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "does not let this client in" in done.stderr
