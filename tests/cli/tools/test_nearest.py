"""Mistyped names on the command line: the error names the nearest that exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

import ottla
from ottla.cli.balance.command import goals_of
from ottla.cli.tools import configs, groups, topics, transactions
from ottla.cli.tools.access import quotas, users
from ottla.cli.tools.client import ClusterConnection, client_options
from ottla.cli.tools.cluster_view import find_topics
from ottla.cli.tools.nearest import absent, no_broker, no_choice
from ottla.cli.tools.records import consume, perf, produce
from ottla.cli.tools.running import explain

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
Refusal = Callable[..., str]


def test_sentences() -> None:
    known = ["orders", "payments"]
    assert str(absent("topic", "ordres", known, "see there", "NOT_THERE")) == (
        "there is no topic ordres; did you mean orders? (NOT_THERE)"
    )
    assert str(absent("topic", "x", known, "see there")) == "there is no topic x; see there"
    assert str(no_choice("goal", "rack", ["racks", "disks"])) == "there is no goal rack; did you mean racks?"
    assert str(no_choice("goal", "cpu", ["racks", "disks"])) == "there is no goal cpu, only racks, disks"
    assert str(no_broker([7, 9], range(1, 3))) == "there is no broker 7, 9, only 1, 2"
    assert str(no_broker([99], range(30))).endswith(", 18, 19, …")


def refused(tool: Callable[..., object], *arguments: object, **named: object) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what ``run_tool`` catches
        tool(*arguments, **named)
    return explain(caught.value)


def test_words_that_need_no_broker(tmp_path: Path) -> None:
    (tmp_path / "admin.properties").touch()
    assert refused(goals_of, "racks,byts") == "there is no goal byts; did you mean bytes?"
    assert refused(client_options, {"security.protocl": "SSL"}) == (
        "no client setting is named security.protocl; did you mean security.protocol?"
    )
    connection = ClusterConnection("127.0.0.1:1", tmp_path / "admn.properties")
    assert refused(connection.admin) == (
        f"{tmp_path / 'admn.properties'}: No such file or directory; did you mean {tmp_path / 'admin.properties'}?"
    )


@pytest.fixture(scope="module")
def connection() -> Iterator[ClusterConnection]:
    """A broker with topics, a group and a user, which creates no topics by itself."""
    with ottla.Broker(properties={"auto.create.topics.enable": "false"}) as broker:
        for name in ("orders", "payments"):
            broker.create_topic(name)
        with closing(KafkaConsumer(group_id="billing", bootstrap_servers=broker.bootstrap_servers)) as consumer:
            # Without members: at times a member of kafka-python never gets an assignment.
            partition = TopicPartition("orders", 0)
            consumer.assign([partition])
            consumer.commit({partition: OffsetAndMetadata(0, "", -1)})
        yield ClusterConnection(broker.bootstrap_servers)


NO_TOPIC = "there is no topic ordres; did you mean orders? (UNKNOWN_TOPIC_OR_PARTITION)"
NO_GROUP = "there is no group biling; did you mean billing? (GROUP_ID_NOT_FOUND)"
CONFIG = " (INVALID_CONFIG); did you mean retention.ms?"
NEW = {"partitions": None, "replication_factor": None, "if_not_exists": False, "validate_only": False}


@pytest.mark.slow
def test_topics(connection: ClusterConnection, capsys: pytest.CaptureFixture[str]) -> None:
    plan = consume.ConsumeOptions(
        ("ordres",), (), None, None, (), None, None, False, False, None, None, True, "read_uncommitted", True
    )
    assert refused(consume.consume, connection, plan) == NO_TOPIC
    assert refused(topics.delete, connection, ["ordres"], if_exists=False) == NO_TOPIC
    entity = configs.ConfigEntityOptions("ordres", None, broker_defaults=False)
    assert refused(configs.describe, connection, entity, show_all=True, as_json=False) == NO_TOPIC
    assert refused(transactions.list_producers, connection, ["ordres:0"], broker=None, as_json=False) == NO_TOPIC
    with closing(connection.admin()) as admin:
        assert refused(find_topics, admin, ["imagined"]).startswith("there is no topic imagined; 'ottla topics list'")
    assert capsys.readouterr().out == ""


def lines_to(topic: str, folder: Path) -> produce.ProduceOptions:
    """A command that writes a line."""
    (folder / "records").write_text("x\n")
    return produce.ProduceOptions(
        topic, (folder / "records",), None, None, (), False, False, None, None, "all", "none", None, True
    )


@pytest.mark.slow
def test_a_topic_to_write_to(connection: ClusterConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def send(*arguments: object, **chosen: object) -> None:
        raise AssertionError("a producer would wait for the topic to be created")

    monkeypatch.setattr(KafkaProducer, "__init__", send)
    assert refused(produce.produce, connection, lines_to("ordres", tmp_path)) == NO_TOPIC
    load: dict[str, Any] = {"num_records": 1, "record_size": 1, "throughput": None, "is_numbered": False}
    refusal = refused(perf.produce, connection, "ordres", **load, acks="all", compression="none", as_json=False)
    assert refusal == NO_TOPIC


@pytest.mark.slow
def test_a_topic_to_write_to_by_a_user_whom_brokers_do_not_tell_their_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client waits for the topic, and then the reason is found."""
    monkeypatch.setattr(produce, "_MAX_BLOCK_MS", 500)
    rights = {"authorizer.class.name": AUTHORIZER, "super.users": "User:admin", "auto.create.topics.enable": "false"}
    with ottla.Broker(users={"admin": "admins", "bob": "bobs"}, properties=rights) as broker:
        broker.create_topic("orders")

        def connection(user: str) -> ClusterConnection:
            own = [f"{name}={value}" for name, value in broker.client_properties(user).items()]
            return ClusterConnection(broker.bootstrap_servers, None, (*own, "max.block.ms=500"))

        prefixed = ResourcePattern(ResourceType.TOPIC, "ord", ACLResourcePatternType.PREFIXED)
        with closing(connection("admin").admin()) as admin:
            admin.create_acls([ACL("User:bob", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, prefixed)])
        bob = connection("bob")
        assert f"a record was not written to ordres: {NO_TOPIC}" in refused(
            produce.produce, bob, lines_to("ordres", tmp_path)
        )
        load: dict[str, Any] = {"num_records": 1, "record_size": 1, "throughput": None, "is_numbered": False}
        assert refused(perf.produce, bob, "ordres", **load, acks="all", compression="none", as_json=False) == NO_TOPIC


@pytest.mark.slow
def test_a_new_topic_to_write_to_is_like_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ottla.Broker() as broker:
        connection = ClusterConnection(broker.bootstrap_servers)
        for topic in ("orders", "ordres", "payments"):
            produce.produce(connection, lines_to(topic, tmp_path))
    assert capsys.readouterr().err == "there is no topic ordres yet; did you mean orders?\n"


@pytest.mark.slow
def test_groups_and_users(connection: ClusterConnection, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(groups.describe, connection, ["biling"], members=False, as_json=False) == NO_GROUP
    assert refused(groups.delete, connection, ["biling"]) == NO_GROUP
    entity = configs.ConfigEntityOptions(None, None, broker_defaults=False, group="biling")
    configs.describe(connection, entity, show_all=False, as_json=False)
    assert capsys.readouterr().err == "there is no group biling yet; did you mean billing?\n"
    place = users.UserStoreOptions(connection, None, None)
    (tmp_path / "password").write_text("secret\n")
    users.add(place, "alice", None, password_file=tmp_path / "password", iterations=4096)
    assert refused(users.remove, place, "alcie", None) == "there is no user alcie; did you mean alice?"


def of_user(name: str) -> quotas.QuotaEntityOptions:
    return quotas.QuotaEntityOptions(
        name, user_default=False, client_id=None, client_id_default=False, ip=None, ip_default=False
    )


@pytest.mark.slow
def test_settings(connection: ClusterConnection) -> None:
    of_topic = configs.ConfigEntityOptions("orders", None, broker_defaults=False)
    of_broker = configs.ConfigEntityOptions(None, 1, broker_defaults=False)
    wrong = ["retention.mss=1"]
    unknown = "Unknown topic config name: retention.mss"
    assert refused(topics.create, connection, ["new"], configs=wrong, **NEW) == f"new: {unknown}{CONFIG}"
    assert refused(configs.set_configs, connection, of_topic, wrong) == f"topic orders: {unknown}{CONFIG}"
    assert refused(configs.unset_configs, connection, of_topic, ["retention.mss"]) == (
        "there is no setting retention.mss; did you mean retention.ms?"
    )
    assert refused(configs.set_configs, connection, of_broker, ["log.retention.mss=1"]) == (
        "there is no setting log.retention.mss; did you mean log.retention.ms?"
    )
    configs.set_configs(connection, of_broker, ["com.example.quorum=1"])  # of a class that somebody has added
    configs.set_configs(connection, of_broker, ["listener.name.plaintext.max.connections=500"])
    entity = of_user("alice")
    assert refused(quotas.set_quotas, connection, entity, ["producer_byte_rat=1"]) == (
        "there is no quota producer_byte_rat; did you mean producer_byte_rate?"
    )


@pytest.mark.slow
def test_quotas_of_a_user_who_has_none(connection: ClusterConnection, capsys: pytest.CaptureFixture[str]) -> None:
    quotas.set_quotas(connection, of_user("alice"), ["producer_byte_rate=1000"])
    capsys.readouterr()
    quotas.describe(connection, of_user("alcie"), as_json=False)
    assert capsys.readouterr() == ("", "there is no user alcie with quotas; did you mean alice?\n")
