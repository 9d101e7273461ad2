"""Passwords of key stores that brokers of a KRaft cluster are given at run time, and go by after a restart.

The metadata log has them in the clear, as Apache Kafka writes them; no broker tells a client.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.testing.held_port import HeldPort
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

from ..mixed.test_mixed_passwords import BROKER_RESOURCE, PREFIX, set_password, shows_certificate, write_store
from .helpers.on_quorum import PROPERTIES

pytestmark = pytest.mark.slow

PASSWORD = f"{PREFIX}.password"


@pytest.fixture
def outside() -> Iterator[dict[int, HeldPort]]:
    """A port for each of two nodes."""
    ports = {1: HeldPort(), 2: HeldPort()}
    yield ports
    for port in ports.values():
        port.close()


def with_key_stores(cluster: QuorumCluster, folder: Path, outside: dict[int, HeldPort]) -> None:
    """Give each node a second listener for clients, with TLS and a key store of its own."""
    for number, node in enumerate(cluster.nodes, 1):
        store = folder / f"first-{number}.p12"
        write_store(store, "first")
        listeners = {"PLAINTEXT": node.address, "OUTSIDE": f"127.0.0.1:{outside[number].number}"}
        advertised = ",".join(f"{name}://{address}" for name, address in listeners.items())
        if number in cluster.controllers:
            listeners["CONTROLLER"] = cluster.controllers[number].controller_address
        node.properties |= {
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            f"{PREFIX}.type": "PKCS12",
            f"{PREFIX}.location": str(store),
            PASSWORD: "first",
        }


def described_password(address: str, broker_id: int) -> tuple[str | None, bool]:
    """The value that a client is told, and whether it is told that it is a secret."""
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(broker_id), configuration_keys=[PASSWORD]
    )
    with connect(address) as connection:
        (result,) = connection.call(DescribeConfigsRequest(resources=[resource]), 4).results
    (entry,) = result.configs
    return entry.value, entry.is_sensitive


def test_a_password_that_is_set_at_run_time_outlives_a_restart(tmp_path: Path, outside: dict[int, HeldPort]) -> None:
    """Also where the store of the first start is gone, which Apache Kafka survives only once a snapshot has the new one."""
    cluster = QuorumCluster(tmp_path / "cluster", 1, 1, properties=PROPERTIES)
    with_key_stores(cluster, tmp_path, outside)
    with contextlib.closing(cluster):
        cluster.start()
        for number, node in enumerate(cluster.nodes, 1):
            port = outside[number].number
            eventually(lambda port=port: shows_certificate(port), timeout_s=60)
            new = tmp_path / f"second-{number}.p12"
            write_store(new, "second")
            set_password(node.address, new, "second", broker_id=number)
            if number not in cluster.controllers:
                (tmp_path / f"first-{number}.p12").unlink()
            eventually(lambda port=port: shows_certificate(port), timeout_s=60)
            assert described_password(node.address, number) == (None, True)
        for number in (2, 1):
            cluster.restart_broker(number)
            assert shows_certificate(outside[number].number)
