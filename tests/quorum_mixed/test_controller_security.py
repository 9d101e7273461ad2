"""Brokers of Ottla reach Apache Kafka's controllers by TLS and SASL, and one that they do not know is not let in."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.compat_tests.kraft_cluster import OttlaNode
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.testing.certificates import Authority

pytestmark = pytest.mark.slow

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PATIENCE_S = 60.0


def _tls(folder: Path) -> dict[str, str]:
    authority = Authority("controllers")
    (folder / "authority.pem").write_bytes(authority.certificate_pem)
    (folder / "node.pem").write_bytes(authority.issue("node", ["127.0.0.1", "localhost"]))
    return {
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.keystore.location": str(folder / "node.pem"),
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.truststore.location": str(folder / "authority.pem"),
    }


def _plain(password: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{_PLAIN} username="node" password="{password}" user_node="secret";'
        ),
    }


def _is_acknowledged(cluster: QuorumCluster) -> bool:
    """Whether a topic on the broker of Ottla can be made, which the controller does, and takes a record."""
    admin = AdminClient({"bootstrap.servers": cluster.nodes[-1].address, "log_level": 0})
    admin.create_topics([NewTopic("guarded", 1, replica_assignment=[[2]])])["guarded"].result(_PATIENCE_S)
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    producer.produce("guarded", b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(_PATIENCE_S) == 0
    return errors == [None]


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_guarded_listener_of_controllers(protocol: str, tmp_path: Path) -> None:
    properties: dict[str, str] = {}
    if "SSL" in protocol:
        properties |= _tls(tmp_path) | {"listener.name.controller.ssl.client.auth": "required"}
    if "SASL" in protocol:
        properties |= _plain("secret")
    cluster = QuorumCluster(tmp_path / "cluster", 1, 1, properties=properties, controller_protocol=protocol)
    with contextlib.closing(cluster):
        cluster.start()
        assert _is_acknowledged(cluster)


def test_a_wrong_password_is_told_of_and_the_right_one_lets_in(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, 1, 1, properties=_plain("secret"), controller_protocol="SASL_PLAINTEXT")
    with contextlib.closing(cluster):
        kafka, ottla = cluster.nodes
        assert isinstance(ottla, OttlaNode)
        for node in cluster.nodes:
            cluster.prepare(node)
        kafka.start()
        right = ottla.file.read_text()
        ottla.file.write_text(right.replace('password="secret"', 'password="wrong"'))
        ottla.launch()
        eventually(lambda: "Authentication failed" in ottla.log(), timeout_s=_PATIENCE_S)
        assert ottla.is_running
        ottla.kill()
        ottla.file.write_text(right)
        ottla.start()
        cluster.wait_joined()
        assert _is_acknowledged(cluster)
