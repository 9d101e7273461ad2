"""Whom a broker without an authorizer tells what only it knows: no client that just calls itself a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.base.config import Config
from ottla.base.errors import ErrorCode
from ottla.handlers.connection_context import ConnectionContext
from ottla.security.principal import USER, Principal
from ottla.view.own.told_access import ToldAccess

EVERYWHERE = {"listeners": "PLAINTEXT://:9092"}
LOOPBACK = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
OF_CONTROLLER = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
OF_CLIENTS = {
    "listeners": "PLAINTEXT://:9092,CLIENTS://:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
}


def access(properties: dict[str, str], *, has_authorizer: bool = False, node_id: int = 2) -> ToldAccess:
    return ToldAccess(Config(properties), node_id, has_authorizer=has_authorizer)


def asker(peer: str = "10.0.0.7:4711", user: str | None = None) -> ConnectionContext:
    connection = ConnectionContext("PLAINTEXT", peer, is_inter_broker_listener=True)
    if user is not None:
        connection.principal = Principal(USER, user)
    return connection


@pytest.mark.parametrize(
    ("properties", "is_told"),
    [
        (EVERYWHERE, False),
        (OF_CONTROLLER, False),  # whose listener is no client's
        ({**OF_CLIENTS, "control.plane.listener.name": "CLIENTS"}, False),
        (OF_CLIENTS, True),
        (LOOPBACK, True),
        ({**LOOPBACK, "machine.listener": "0.0.0.0:9093"}, False),  # by which clients come from elsewhere
        ({"listeners": "PLAINTEXT://broker:9092"}, False),
    ],
)
def test_an_unknown_asker_is_told_where_clients_do_not_come(properties: dict[str, str], *, is_told: bool) -> None:
    refused = access(properties).refusal(asker(), b"")
    assert (refused is None) == is_told
    if refused is not None:
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not refused.challenge, "there is no secret to prove"


def test_who_is_authenticated_or_authorized_is_told() -> None:
    assert access(EVERYWHERE).refusal(asker(user="broker-1"), b"") is None
    assert access(EVERYWHERE, has_authorizer=True).refusal(asker(), b"") is None


def with_secret(folder: Path, secret: str) -> dict[str, str]:
    file = folder / secret
    file.write_text(secret)
    return {**EVERYWHERE, "cluster.secret.file": str(file)}


def test_who_has_the_clusters_secret_is_told(tmp_path: Path) -> None:
    asked, asking = access(with_secret(tmp_path, "a" * 16)), access(with_secret(tmp_path, "a" * 16), node_id=1)
    stranger, nobody = access(with_secret(tmp_path, "b" * 16), node_id=3), access(EVERYWHERE, node_id=4)
    refused = asked.refusal(asker(), b"")
    assert refused is not None
    proof = asking.proof(2, refused.challenge)
    assert proof is not None
    assert asked.refusal(asker(), proof) is None
    for peer, given in (
        ("10.0.0.7:4711", stranger.proof(2, refused.challenge)),
        ("10.0.0.7:4711", asking.proof(3, refused.challenge)),  # a proof is for one broker
        ("10.0.0.7:4712", proof),  # and one connection
        ("10.0.0.7:4711", refused.challenge),
        ("10.0.0.7:4711", b"x"),
    ):
        assert asked.refusal(asker(peer), given or b"") is not None
    again = access(with_secret(tmp_path, "a" * 16))
    assert again.refusal(asker(), proof) is not None, "and one run"
    assert nobody.proof(2, refused.challenge) is None
