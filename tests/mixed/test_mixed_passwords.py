"""A password that a broker of one kind was given at run time is read by one of the other kind that takes its place."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from ottla.compat_tests.brokers import BrokerProcess, OttlaProcess
from ottla.compat_tests.clusters import KafkaZooKeeperProcess
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ..security.helpers.certificates import authority, broker

pytestmark = pytest.mark.slow

PREFIX = "listener.name.outside.ssl.keystore"
BROKER_RESOURCE = 4


def write_store(file: Path, password: str) -> None:
    identity = broker()
    key = serialization.load_pem_private_key(identity.key.encode(), None)
    certificate = x509.load_pem_x509_certificate(identity.certificate.encode())
    encryption = serialization.BestAvailableEncryption(password.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, encryption))  # type: ignore[arg-type]


@pytest.fixture
def outside() -> Iterator[HeldPort]:
    port = HeldPort()
    yield port
    port.close()


def shows_certificate(port: int) -> bool:
    context = ssl.create_default_context(cadata=authority().certificate)
    try:
        with (
            socket.create_connection(("127.0.0.1", port), 5) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            return True
    except OSError:
        return False


def set_password(address: str, file: Path, password: str, broker_id: int = 1) -> None:
    configs = [
        AlterableConfig(name=f"{PREFIX}.{name}", config_operation=0, value=value)
        for name, value in (("location", str(file)), ("password", password))
    ]
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=str(broker_id), configs=configs)
    with connect(address) as connection:
        (answer,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert (answer.error_code, answer.error_message) == (0, None)


def properties(process: BrokerProcess, zookeeper: str, outside: HeldPort, store: Path) -> Mapping[str, str]:
    """With a password that is that of the first start only."""
    listeners = f"PLAINTEXT://{process.address},OUTSIDE://127.0.0.1:{outside.number}"
    return {
        "broker.id": "1",
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": "18000",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        f"{PREFIX}.type": "PKCS12",
        f"{PREFIX}.location": str(store),
        f"{PREFIX}.password": "password-1",
        "password.encoder.secret": "the secret of the two",
    }


def test_a_password_is_taken_over_with_the_place(tmp_path: Path, zookeeper: str, outside: HeldPort) -> None:
    store = tmp_path / "outside.p12"
    write_store(store, "password-1")
    for number, kind in enumerate(("kafka", "ottla", "kafka", "ottla"), 1):
        folder = tmp_path / f"{number}-{kind}"
        folder.mkdir()
        process = KafkaZooKeeperProcess(folder, {}) if kind == "kafka" else OttlaProcess(folder)
        process.properties.update(properties(process, zookeeper, outside, store))
        try:
            process.start()
            eventually(lambda: shows_certificate(outside.number), timeout_s=30)
            new = store.with_name(f"outside-{number}.p12")
            write_store(new, f"password-{number + 1}")
            set_password(process.address, new, f"password-{number + 1}")
            store.unlink(missing_ok=True)
            process.stop()
        finally:
            process.close()
