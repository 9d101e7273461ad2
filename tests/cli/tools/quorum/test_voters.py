"""``ottla cluster quorum``, ``add-voter`` and ``remove-voter`` at a controllers' listener with TLS and a password."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.kraft_cluster import OTTLA, KRaftCluster, Seat
from ottla.compat_tests.session import eventually
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.testing.certificates import Authority

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KRaftCluster]:
    authority = Authority("controllers")
    (tmp_path / "authority.pem").write_bytes(authority.certificate_pem)
    (tmp_path / "node.pem").write_bytes(authority.issue("node", ["127.0.0.1", "localhost"]))
    users = 'user_node="secret" user_admin="admin-secret" user_alice="alice-secret"'
    properties = {
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.keystore.location": str(tmp_path / "node.pem"),
        "listener.name.controller.ssl.truststore.type": "PEM",
        "listener.name.controller.ssl.truststore.location": str(tmp_path / "authority.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f'{_LOGIN} username="node" password="secret" {users};',
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node;User:admin;User:ANONYMOUS",
    }
    cluster = KRaftCluster(tmp_path, [Seat(OTTLA)] * 3, properties=properties, controller_protocol="SASL_SSL")
    with contextlib.closing(cluster):
        cluster.start()
        yield cluster


def ran(
    cluster: KRaftCluster, user: str, password: str, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """``ottla cluster``, which asks the controllers of nodes 1 and 2."""
    config = folder / f"{user}.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={folder / 'authority.pem'}\n"
        f'sasl.jaas.config={_LOGIN} username="{user}" password="{password}";\n'
    )
    controllers = ",".join(cluster.node(each).controller_address for each in (1, 2))
    command = [sys.executable, "-m", "ottla", "cluster", *arguments, "--controller", controllers]
    return subprocess.run([*command, "--command-config", str(config)], capture_output=True, text=True, timeout=120)


def test_voters_are_changed_by_who_may(cluster: KRaftCluster, tmp_path: Path) -> None:
    """The one that is removed leads, so that the command has to find the next one."""

    def described() -> dict[str, Any]:
        """The quorum, once it has a leader."""
        told: list[str] = []

        def is_led() -> bool:
            done = ran(cluster, "admin", "admin-secret", tmp_path, "quorum", "--json")
            assert done.returncode == 0 or "one is being elected" in done.stderr, done.stderr
            told[:] = [done.stdout]
            return done.returncode == 0

        eventually(is_led)
        found: dict[str, Any] = json.loads(told[0])
        return found

    def voters() -> set[int]:
        return {each["node"] for each in described()["replicas"] if each["status"] != "observer"}

    assert voters() == {1, 2, 3}
    leader = str(described()["leader"])
    unknown = ran(cluster, "admin", "wrong", tmp_path, "remove-voter", leader)
    assert unknown.returncode == 1 and "Authentication failed" in unknown.stderr
    forbidden = ran(cluster, "alice", "alice-secret", tmp_path, "remove-voter", leader)
    assert forbidden.returncode == 1 and "CLUSTER_AUTHORIZATION_FAILED" in forbidden.stderr
    assert voters() == {1, 2, 3}
    removed = ran(cluster, "admin", "admin-secret", tmp_path, "remove-voter", leader)
    assert removed.returncode == 0, removed.stderr
    assert voters() == {1, 2, 3} - {int(leader)}
    added = ran(cluster, "admin", "admin-secret", tmp_path, "add-voter", leader)
    assert added.returncode == 0, added.stderr
    assert voters() == {1, 2, 3}
