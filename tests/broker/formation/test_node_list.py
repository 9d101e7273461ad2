"""What ``cluster.nodes`` stands for: Kafka's properties of each node, and the lists and listeners that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.base.settings import SettingError
from ottla.broker.auth.cluster_secret import read_secret
from ottla.broker.formation.node_list import cluster_properties, parse_nodes

LOCAL = "localhost:9092,localhost:9192,localhost:9292"
REMOTE = "kafka-1,kafka-2:9192,kafka-3"


def meant(
    node: int, nodes: str = LOCAL, listen: str | None = None, advertise: str | None = None, **own: str
) -> dict[str, str]:
    """``own`` have _ for the dots."""
    given = {"cluster.nodes": nodes, "node.id": str(node), **{name.replace("_", "."): own[name] for name in own}}
    return cluster_properties(given, listen, advertise)


def test_a_node_of_the_list_is_broker_and_controller_at_its_place() -> None:
    second = meant(2)
    assert second["process.roles"] == "broker,controller"
    assert second["listeners"] == "PLAINTEXT://localhost:9192,CONTROLLER://localhost:9193"
    assert second["controller.quorum.bootstrap.servers"] == "localhost:9093,localhost:9193,localhost:9293"
    assert second["controller.quorum.auto.join.enable"] == "true"
    assert second["offsets.topic.replication.factor"] == "3"
    assert second["log.dirs"] == "data-2"


def test_a_later_node_is_a_broker_at_its_own_address() -> None:
    fourth = meant(4, listen="localhost:9392")
    assert fourth["process.roles"] == "broker"
    assert fourth["listeners"] == "PLAINTEXT://localhost:9392"
    assert "controller.quorum.auto.join.enable" not in fourth


def test_beyond_loopback_a_node_listens_everywhere_and_advertises_its_host() -> None:
    second = meant(2, REMOTE, cluster_secret_file="/secret")
    assert second["listeners"] == "PLAINTEXT://:9192,CONTROLLER://:9193"
    assert second["advertised.listeners"] == "PLAINTEXT://kafka-2:9192,CONTROLLER://kafka-2:9193"
    own = meant(2, REMOTE, "10.0.0.2:9092", "outside.example.org:19092", cluster_secret_file="/secret")
    assert own["listeners"] == "PLAINTEXT://10.0.0.2:9092,CONTROLLER://10.0.0.2:9193"
    assert own["advertised.listeners"] == "PLAINTEXT://outside.example.org:19092,CONTROLLER://kafka-2:9193"


def test_controllers_of_a_list_on_loopback_stay_there() -> None:
    """Their listener asks nobody who he is, whatever clients reach."""
    only = meant(1, "localhost:9093", "0.0.0.0:9093", "kafka.example.org:9093")
    assert only["listeners"] == "PLAINTEXT://0.0.0.0:9093,CONTROLLER://localhost:9094"
    assert only["advertised.listeners"] == "PLAINTEXT://kafka.example.org:9093,CONTROLLER://localhost:9094"


def test_a_secret_guards_the_controllers_and_its_user_may_do_what_nodes_do() -> None:
    first = meant(1, REMOTE, cluster_secret_file="/secret", authorizer_class_name="x", super_users="User:admin")
    assert "CONTROLLER:SASL_PLAINTEXT" in first["listener.security.protocol.map"]
    assert first["sasl.mechanism.controller.protocol"] == "SCRAM-SHA-512"
    assert first["super.users"] == "User:admin;User:ottla-cluster"


@pytest.mark.parametrize("node", [1, 4], ids=["of the list", "later"])
def test_beyond_loopback_a_secret_or_certificates_are_asked_for(node: int) -> None:
    with pytest.raises(SettingError, match=r"--cluster-secret-file FILE\), or certificates .*ssl.client.auth=required"):
        meant(node, REMOTE)
    certificates = {
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "ssl_client_auth": "required",
    }
    assert meant(node, REMOTE, **certificates)["process.roles"].startswith("broker")
    with pytest.raises(SettingError, match="could join the cluster"):
        meant(node, REMOTE, **{**certificates, "ssl_client_auth": "requested"})


def test_a_secret_that_the_listener_does_not_ask_for_is_refused() -> None:
    with pytest.raises(SettingError, match="CONTROLLER:SSL, which does not ask for the secret"):
        meant(
            1,
            REMOTE,
            cluster_secret_file="/secret",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        )


def test_what_is_given_stays() -> None:
    assert meant(1, log_dirs="/var/lib/ottla", offsets_topic_replication_factor="2")["log.dirs"] == "/var/lib/ottla"


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ("", "it lists no node"),
        ("a,a", "two nodes have one address"),
        ("a:9092,a:9093", "each needs its port and the next one"),
        ("a:0", "not an address that other nodes can reach"),
        ("a:b", "is not HOST:PORT"),
        ("a:65535", "with the next port free"),
    ],
)
def test_a_list_that_cannot_be_one_is_refused(nodes: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        parse_nodes(nodes)


@pytest.mark.parametrize("number", ["", "0", "-1", "x"])
def test_a_node_needs_its_number(number: str) -> None:
    with pytest.raises(SettingError, match="needs its number"):
        cluster_properties({"cluster.nodes": LOCAL, "node.id": number})


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"short", "less than 16 characters"), (b"\xff" * 20, "not UTF-8 text"), (None, "cannot be read")],
    ids=["short", "bytes", "absent"],
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingError, match=why):
        read_secret(str(path))
