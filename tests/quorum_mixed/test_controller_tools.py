"""Kafka's own tools at a controller of Ottla, without any broker (KIP-919)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.wire.messages.describe_cluster import DescribeClusterRequest

from .helpers.controller_process import ControllerProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    controller = ControllerProcess(tmp_path_factory.mktemp("controller") / "1", 1, [])
    with contextlib.closing(controller):
        controller.start()
        eventually(lambda: is_registered(controller), 60.0)
        yield controller


def is_registered(controller: ControllerProcess) -> bool:
    """Whether the controller leads the quorum, and tells clients its address."""
    with contextlib.suppress(OSError), connect(controller.address) as connection:
        return bool(connection.call(DescribeClusterRequest(endpoint_type=2), 1).controller_id == 1)
    return False


@pytest.fixture
def tools(controller: ControllerProcess, tmp_path: Path) -> KafkaTools:
    return KafkaTools(controller.address, tmp_path, option="--bootstrap-controller")


def test_metadata_quorum(tools: KafkaTools) -> None:
    status = tools.run("metadata-quorum", "describe", "--status")
    assert f"ClusterId:              {CLUSTER_ID}" in status
    assert "LeaderId:               1" in status
    assert "Leader" in tools.run("metadata-quorum", "describe", "--replication")


def test_features(tools: KafkaTools) -> None:
    described = tools.run("features", "describe")
    assert "FinalizedVersionLevel: 4.3-IV0" in described
    upgraded = tools.run("features", "upgrade", "--feature", "eligible.leader.replicas.version=1")
    assert "eligible.leader.replicas.version was upgraded to 1." in upgraded


def test_cluster(controller: ControllerProcess, tools: KafkaTools) -> None:
    at = ("--bootstrap-controller", controller.address)
    assert f"Cluster ID: {CLUSTER_ID}" in tools.run("cluster", "cluster-id", *at)
    (line,) = tools.run("cluster", "list-endpoints", *at).splitlines()[1:]
    assert line.split() == ["1", controller.host, str(controller.port), "null", "controller"]


def test_configs(tools: KafkaTools) -> None:
    of_all = ("--entity-type", "brokers", "--entity-default")
    tools.run("configs", "--alter", *of_all, "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2 sensitive=false" in tools.run("configs", "--describe", *of_all)
    own = tools.run("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2" in own


def test_acls(tools: KafkaTools) -> None:
    """Without an authorizer there are none, as at a broker."""
    assert "No Authorizer is configured on the broker" in tools.run("acls", "--list", fails=True)
