"""Commands at listeners with TLS and SASL: one line says why a client is not let in, at once where that is for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import ottla
from ottla.cli.tools import topics
from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.running import ToolError
from ottla.testing.broker_security import MECHANISMS

TOKEN = (
    'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="x";'
)
SOON = {"bootstrap.timeout.ms": "500"}
"""For what only a client that has tried for long is told."""


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.Broker]:
    with ottla.Broker(users={"alice": "hers"}, tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def open_broker() -> Iterator[ottla.Broker]:
    with ottla.Broker() as broker:
        yield broker


def connect(folder: Path, servers: str, properties: Mapping[str, str]) -> ClusterConnection:
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()).replace("\\", "\\\\"))
    return ClusterConnection(servers, file)


def refusal(folder: Path, broker: ottla.Broker, properties: Mapping[str, str]) -> str:
    """The one line that a command ends with."""
    with pytest.raises(ToolError) as refused:
        topics.list_topics(connect(folder, broker.bootstrap_servers, properties), exclude_internal=False, as_json=False)
    line = str(refused.value)
    assert "\n" not in line
    assert line.count(broker.bootstrap_servers) == 1
    return line.replace(broker.bootstrap_servers, "HERE")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_in_the_brokers_words(broker: ottla.Broker, tmp_path: Path, mechanism: str) -> None:
    good = broker.client_properties("alice") | {"sasl.mechanism": mechanism}
    with closing(connect(tmp_path, broker.bootstrap_servers, good).admin()) as admin:
        assert admin.list_topics() == []
    bad = good | {"sasl.jaas.config": good["sasl.jaas.config"].replace("hers", "another")}
    said = refusal(tmp_path, broker, bad)
    assert said.startswith("HERE does not let this client in: Authentication failed")


def test_a_mechanism_that_the_broker_does_not_take(broker: ottla.Broker, tmp_path: Path) -> None:
    properties = broker.client_properties("alice") | {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": TOKEN}
    said = refusal(tmp_path, broker, properties)
    assert said.startswith("HERE does not take the sasl.mechanism OAUTHBEARER; it takes ")
    assert all(mechanism in said for mechanism in MECHANISMS)


def test_a_certificate_of_another_authority(broker: ottla.Broker, tmp_path: Path) -> None:
    with ottla.Broker(tls=True) as another:
        properties = broker.client_properties("alice") | {"ssl.truststore.location": str(another.ca_file)}
        said = refusal(tmp_path, broker, properties)
    assert said.startswith("the certificate of HERE is not trusted: ")
    assert "ssl.truststore.location" in said


@pytest.fixture(scope="module")
def tls_broker() -> Iterator[ottla.Broker]:
    with ottla.Broker(tls=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def sasl_broker() -> Iterator[ottla.Broker]:
    with ottla.Broker(users={"alice": "hers"}) as broker:
        yield broker


def test_another_security_protocol_than_the_listener_has(
    broker: ottla.Broker,
    open_broker: ottla.Broker,
    tls_broker: ottla.Broker,
    sasl_broker: ottla.Broker,
    tmp_path: Path,
) -> None:
    """At once: kafka-python would be given 10 minutes here."""
    patient = {"bootstrap.timeout.ms": "600000"}
    inside = broker.client_properties("alice") | patient
    tls = "HERE answers with TLS, and security.protocol is"
    assert refusal(tmp_path, tls_broker, patient).startswith(f"{tls} PLAINTEXT: it has to be SSL, or SASL_SSL")
    assert refusal(tmp_path, broker, patient).startswith(f"{tls} PLAINTEXT: it has to be SSL, or SASL_SSL")
    sasl_only = inside | {"security.protocol": "SASL_PLAINTEXT"}
    assert refusal(tmp_path, broker, sasl_only).startswith(f"{tls} SASL_PLAINTEXT: it has to be SASL_SSL (")
    said = refusal(tmp_path, sasl_broker, patient)
    assert said.startswith("HERE wants SASL (") and all(mechanism in said for mechanism in MECHANISMS)
    assert "and security.protocol is PLAINTEXT: it has to be SASL_PLAINTEXT (" in said
    said = refusal(tmp_path, broker, inside | {"security.protocol": "SSL"})
    assert "and security.protocol is SSL: it has to be SASL_SSL (" in said
    for listener in (open_broker, sasl_broker):
        said = refusal(tmp_path, listener, inside)
        assert said.startswith("HERE does not speak TLS, and security.protocol is SASL_SSL (")
    assert refusal(tmp_path, open_broker, sasl_only).startswith("HERE does not want SASL: ")


def test_a_port_that_only_closes_connections(tmp_path: Path) -> None:
    """Not for good, as far as can be known: the client is let try."""
    with ottla.Broker() as closing_one:
        closing_one.faults.add(api="ApiVersions", drop=True, count=None)
        said = refusal(tmp_path, closing_one, SOON)
    assert said.startswith("HERE closes the connection at a request: its listener may have another security.protocol")


def test_a_connection_that_is_closed_once_is_no_refusal(open_broker: ottla.Broker, tmp_path: Path) -> None:
    open_broker.faults.add(api="ApiVersions", drop=True, count=1)
    with closing(connect(tmp_path, open_broker.bootstrap_servers, {}).admin()) as admin:
        assert admin.list_topics() == []
