"""Commands of a user who lacks a right: Kafka's name for the refusal in one line, and never an empty answer in its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
)
from kafka.errors import TopicAuthorizationFailedError

import ottla
from ottla.cli.tools import configs, health
from ottla.cli.tools.client import ClusterConnection
from ottla.cli.tools.records import consume, perf, produce
from ottla.cli.tools.replicas import log_dirs
from ottla.cli.tools.running import explain

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SHOWN = ResourcePattern(ResourceType.TOPIC, "shown")
CLUSTER = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")


def may(user: str, operation: ACLOperation, what: ResourcePattern) -> ACL:
    return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, what)


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], ClusterConnection]]:
    """Bob may describe the topic ``shown``, which has a record, and nothing else; carol the cluster, too."""
    folder = tmp_path_factory.mktemp("clients")
    rights = {"authorizer.class.name": AUTHORIZER, "super.users": "User:admin"}
    with ottla.Broker(users={"admin": "admins", "bob": "bobs", "carol": "carols"}, properties=rights) as broker:

        def connection(user: str) -> ClusterConnection:
            file = folder / f"{user}.properties"
            file.write_text("".join(f"{name}={value}\n" for name, value in broker.client_properties(user).items()))
            return ClusterConnection(broker.bootstrap_servers, file)

        for topic in ("shown", "hidden"):
            broker.create_topic(topic)
        with closing(connection("admin").admin()) as admin:
            admin.create_acls(
                [
                    may("bob", ACLOperation.DESCRIBE, SHOWN),
                    may("carol", ACLOperation.DESCRIBE, SHOWN),
                    may("carol", ACLOperation.DESCRIBE, CLUSTER),
                ]
            )
        with closing(connection("admin").producer()) as producer:
            producer.send("shown", b"x").get(timeout=30)
        yield connection


@pytest.fixture
def bob(connections: Callable[[str], ClusterConnection]) -> ClusterConnection:
    return connections("bob")


def refusal(tool: Callable[..., object], *arguments: object, **named: object) -> str:
    with pytest.raises(Exception) as refused:  # noqa: PT011 - what ``run_tool`` catches
        tool(*arguments, **named)
    line = explain(refused.value)
    assert "\n" not in line
    return line


def plan_to_consume(topic: str) -> consume.ConsumeOptions:
    return consume.ConsumeOptions(
        (topic,), (), None, None, (), None, None, False, False, None, None, True, "read_uncommitted", True
    )


@pytest.mark.parametrize(("topic", "broker"), [("shown", None), (None, 1)])
def test_settings_that_may_not_be_described_are_no_empty_list(
    bob: ClusterConnection, topic: str | None, broker: int | None
) -> None:
    entity = configs.ConfigEntityOptions(topic, broker, broker_defaults=False)
    why = "Topic authorization failed (TOPIC" if topic else "Cluster authorization failed (CLUSTER"
    assert (
        refusal(configs.describe, bob, entity, show_all=True, as_json=False) == f"{entity}: {why}_AUTHORIZATION_FAILED)"
    )
    assert "_AUTHORIZATION_FAILED)" in refusal(configs.unset_configs, bob, entity, ["retention.ms"])


def test_refusals_are_not_among_the_settings(bob: ClusterConnection) -> None:
    with closing(bob.admin()) as admin:
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "shown")])
    assert described == {"topic": {"shown": {}}}
    assert [code for code, _ in described.refused] == [TopicAuthorizationFailedError.errno]


def test_data_folders_that_may_not_be_described_are_no_empty_list(bob: ClusterConnection) -> None:
    line = refusal(log_dirs.show, bob, (), brokers=(), partitions=False, as_json=False)
    assert line.endswith(
        "is not authorized to use an inter-broker or administrative API (CLUSTER_AUTHORIZATION_FAILED)"
    )


def test_a_topic_that_may_not_be_read_or_seen(bob: ClusterConnection) -> None:
    assert (
        refusal(consume.consume, bob, plan_to_consume("shown")) == "not authorized: shown (TOPIC_AUTHORIZATION_FAILED)"
    )
    for tool in (
        lambda: consume.consume(bob, plan_to_consume("hidden")),
        lambda: perf.consume(bob, "hidden", num_records=None, timeout_ms=1000, as_json=False),
    ):
        assert refusal(tool).startswith("hidden: the client is not authorized to access the requested topic (TOPIC_")


@pytest.mark.parametrize(("topic", "code"), [("hidden", "TOPIC"), ("shown", "CLUSTER")])
def test_a_topic_that_may_not_be_written_to(bob: ClusterConnection, tmp_path: Path, topic: str, code: str) -> None:
    file = tmp_path / "records"
    file.write_text("x\n")
    plan = produce.ProduceOptions(topic, (file,), None, None, (), False, False, None, None, "all", "none", None, True)
    line = refusal(produce.produce, bob, plan)
    assert line.startswith(f"a record was not written to {topic}: ")
    assert f"({code}_AUTHORIZATION_FAILED)" in line
    assert "not authorized" in line


def test_a_cluster_that_is_not_seen_whole_is_not_healthy(
    connections: Callable[[str], ClusterConnection], capsys: pytest.CaptureFixture[str]
) -> None:
    needs = {
        "bob": "which topics there are: that takes Describe of the cluster (CLUSTER_AUTHORIZATION_FAILED)",
        "carol": "topic hidden: that takes Describe (TOPIC_AUTHORIZATION_FAILED)",
    }
    settings = "min.insync.replicas of topic shown: that takes DescribeConfigs (TOPIC_AUTHORIZATION_FAILED)"
    for user, unseen in needs.items():
        line = refusal(health.health, connections(user), as_json=False)
        assert line == f"this user may not see {unseen}; nor {settings}"
        assert capsys.readouterr().out.startswith("healthy: not known\n")
        refusal(health.health, connections(user), as_json=True)
        found = json.loads(capsys.readouterr().out)
        assert (found["healthy"], found["not_seen"]) == (None, [unseen, settings])
    assert health.health(connections("admin"), as_json=False) == health.HEALTHY
