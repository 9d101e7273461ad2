"""Kafka 4.3's tools for share groups: kafka-share-groups, kafka-console-share-consumer, those that verify and measure."""

from __future__ import annotations

import json

import pytest

from ottla.compat_tests.java.test_consumer_groups import rows
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.share_consumers.conftest import MakeReader

pytestmark = [
    pytest.mark.client("java-tools"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
TOOLS = "KIP-932: kafka-share-groups, kafka-console-share-consumer"


def described(group_id: str, topic: str, lag: int, *columns: str) -> list[list[str]]:
    """What --describe says of both partitions of a topic, whose written start is the first offset."""
    return [[group_id, topic, partition, *columns, "0", str(lag)] for partition in "01"]


@pytest.mark.capability(TOOLS)
def test_console_share_consumer(tools: KafkaTools, filled: str, group_id: str) -> None:
    read = ("console-share-consumer", "--topic", filled, "--group", group_id, "--timeout-ms", "3000")
    released = tools.run(*read, "--max-messages", "20", "--release")
    assert sorted(released.split()) == sorted([*map(str, range(10))] * 2)
    shown = ("--formatter-property", "print.delivery=true", "--formatter-property", "print.offset=true")
    expected = [f"Offset:{offset}\tDelivery:2\t{offset}" for offset in range(10)]
    assert sorted(tools.run(*read, *shown).splitlines()) == sorted(expected * 2)
    assert tools.run(*read) == ""
    assert rows(tools.run("share-groups", "--describe", "--group", group_id)) == described(group_id, filled, 0)


@pytest.mark.capability(TOOLS)
def test_console_share_consumer_rejects(tools: KafkaTools, filled: str, group_id: str) -> None:
    read = ("console-share-consumer", "--topic", filled, "--group", group_id, "--timeout-ms", "3000")
    rejected = tools.run(*read, "--max-messages", "20", "--reject")
    assert sorted(rejected.split()) == sorted([*map(str, range(10))] * 2)
    assert tools.run(*read) == ""


@pytest.mark.capability(TOOLS)
def test_group_with_members(tools: KafkaTools, filled: str, group_id: str, make_reader: MakeReader) -> None:
    a = make_reader(filled, client_id="reader")
    a.take(20)
    a.poll()
    assert group_id in tools.run("share-groups", "--list").split()
    assert [group_id, "Stable"] in rows(tools.run("share-groups", "--list", "--state"))
    assert [group_id, "Share", "share"] in rows(tools.run("groups", "--list", "--share"))
    about = ("share-groups", "--describe", "--group", group_id)
    assert rows(tools.run(*about)) == described(group_id, filled, 0)
    assert rows(tools.run(*about, "--verbose")) == described(group_id, filled, 0, "0")
    (member,) = rows(tools.run(*about, "--members"))
    assert [member[0], *member[2:]] == [group_id, "/127.0.0.1", "reader", "2", f"{filled}:0,1"]
    (state,) = rows(tools.run(*about, "--state", "--verbose"))
    assert [state[0], *state[3:]] == [group_id, "Stable", "3", "3", "1"]
    (verbose,) = rows(tools.run(*about, "--members", "--verbose"))
    assert verbose == [*member[:5], "3", member[5]]

    said = tools.run("share-groups", "--delete", "--group", group_id)
    assert f"GroupNotEmptyException: Share group '{group_id}' is not EMPTY." in said
    moved = ("--topic", filled, "--to-earliest", "--execute")
    said = tools.run("share-groups", "--reset-offsets", "--group", group_id, *moved, fails=True)
    assert f"Share group '{group_id}' is not empty." in said


@pytest.mark.capability(TOOLS)
def test_group_without_members(tools: KafkaTools, filled: str, group_id: str, make_reader: MakeReader) -> None:
    a = make_reader(filled)
    a.take(20)
    a.poll()
    a.close()
    about = ("share-groups", "--describe", "--group", group_id)
    assert rows(tools.run(*about)) == described(group_id, filled, 0)
    (state,) = rows(tools.run(*about, "--state"))
    assert [state[0], *state[3:]] == [group_id, "Empty", "0"]
    assert rows(tools.run(*about, "--members")) == []
    reset = ("share-groups", "--reset-offsets", "--group", group_id, "--topic", filled, "--to-earliest")
    moved = [[group_id, filled, partition, "0"] for partition in "01"]
    assert sorted(rows(tools.run(*reset, "--dry-run"))) == moved
    assert rows(tools.run(*about)) == described(group_id, filled, 0)
    assert sorted(rows(tools.run(*reset, "--execute"))) == moved
    assert rows(tools.run(*about)) == described(group_id, filled, 10)
    deleted = tools.run("share-groups", "--delete-offsets", "--group", group_id, "--topic", filled)
    assert [filled, "Successful"] in rows(deleted)
    assert f"Share group '{group_id}' has no offset information." in tools.run(*about)
    tools.run("share-groups", "--delete", "--group", group_id)
    assert group_id not in tools.run("share-groups", "--list").split()
    assert f"GroupIdNotFoundException: Group {group_id} not found." in tools.run(*about)


@pytest.mark.capability("KIP-932: verifiable share consumer, perf test")
@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_verifiable_share_consumer(tools: KafkaTools, filled: str, group_id: str, mode: str) -> None:
    said = tools.run(
        *("verifiable-share-consumer", "--topic", filled, "--group-id", group_id, "--max-messages", "20"),
        *("--acknowledgement-mode", mode),
    )
    events = [json.loads(line) for line in said.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 20
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert sum(event["count"] for event in acknowledged) == 20
    assert all(event["success"] for event in acknowledged)


@pytest.mark.capability("KIP-932: verifiable share consumer, perf test")
def test_perf(tools: KafkaTools, filled: str, group_id: str) -> None:
    said = tools.run("share-consumer-perf-test", "--topic", filled, "--group", group_id, "--num-records", "20")
    heading, values = said.splitlines()
    assert dict(zip(heading.split(", "), values.split(", "), strict=True))["data.consumed.in.nMsg"] == "20"
