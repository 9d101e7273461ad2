"""Kafka 4.3's tools at groups of the consumer protocol (KIP-848), and its consumers as members of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.group_on_wire import GroupOnWire
from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import ClientSession, eventually

pytestmark = pytest.mark.client("java-tools")
PARTITIONS = 3


def rows(said: str) -> list[list[str]]:
    """The words of each line that has some, below the heading."""
    return [line.split() for line in said.splitlines() if line.strip()][1:]


@pytest.fixture
def filled(make_topic: Callable[..., str], sessions: Callable[[str], ClientSession]) -> str:
    """A topic with ten records in each partition."""
    topic = make_topic(PARTITIONS)
    for partition in range(PARTITIONS):
        sessions("confluent-kafka").produce(topic, [b"%d" % number for number in range(10)], partition=partition)
    return topic


@pytest.fixture
def members(
    filled: str, group_id: str, sessions: Callable[[str], ClientSession], bootstrap: str
) -> Iterator[list[model.Consumer]]:
    """Two members, one of which is static, that have committed 4 of 10 in each partition."""
    client = sessions("confluent-kafka")
    made = [
        client.consumer(group_id=group_id, group_protocol="consumer", group_instance_id=instance_id)
        for instance_id in (None, "static")
    ]
    for each in made:
        each.subscribe([filled])

    def is_stable() -> bool:
        for each in made:
            each.poll(0.2)
        return sorted(len(each.assignment()) for each in made) == [1, 2]

    eventually(is_stable)
    for each in made:
        each.commit({where: model.Committed(4) for where in each.assignment()})
    eventually(lambda: GroupOnWire(bootstrap, group_id).described().group_state == "Stable")
    yield made
    for each in made:
        each.close()


@pytest.mark.capability("KIP-848: kafka-consumer-groups, kafka-groups, kafka-configs")
def test_group_with_members(
    tools: KafkaTools,
    members: list[model.Consumer],
    filled: str,
    group_id: str,
    bootstrap: str,
) -> None:
    described = GroupOnWire(bootstrap, group_id).described()
    epoch = str(described.group_epoch)
    ids = {member.instance_id: member.member_id for member in described.members}
    assert [group_id, "Consumer", "Stable"] in rows(tools.run("consumer-groups", "--list", "--state", "--type"))
    assert [group_id, "Consumer"] in rows(tools.run("consumer-groups", "--list", "--type", "consumer"))
    assert group_id not in tools.run("consumer-groups", "--list", "--type", "classic").split()
    assert [group_id, "Consumer", "consumer"] in rows(tools.run("groups", "--list", "--consumer"))

    about = ("consumer-groups", "--describe", "--group", group_id)
    owners = {
        partition: who
        for each, who in zip(members, (None, "static"), strict=True)
        for _, partition in each.assignment()
    }
    assert sorted(rows(tools.run(*about))) == [
        [group_id, filled, str(partition), "4", "10", "6", ids[owners[partition]], "/127.0.0.1", "ottla-compat"]
        for partition in range(PARTITIONS)
    ]
    expected = []
    for member in described.members:
        ((topic, numbers),) = [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions]
        owned = f"{topic}:{','.join(map(str, sorted(numbers)))}"
        instance = [member.instance_id] if member.instance_id else []
        where = ["/127.0.0.1", "ottla-compat"]
        expected.append([group_id, member.member_id, *instance, *where, str(len(numbers)), epoch, owned, epoch, owned])
    assert sorted(rows(tools.run(*about, "--members", "--verbose"))) == sorted(expected)
    (state,) = rows(tools.run(*about, "--state", "--verbose"))
    assert state[0] == group_id
    assert state[3:] == ["uniform", "Stable", epoch, epoch, "2"]

    said = tools.run("consumer-groups", "--delete", "--group", group_id)
    assert "GroupNotEmptyException: The group is not empty." in said
    moved = ("--topic", filled, "--to-earliest", "--execute")
    said = tools.run("consumer-groups", "--reset-offsets", "--group", group_id, *moved)
    assert (
        f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is Stable" in said
    )
    said = tools.run("consumer-groups", "--delete-offsets", "--group", group_id, "--topic", filled)
    assert said.count("GroupSubscribedToTopicException") == PARTITIONS


@pytest.mark.capability("KIP-848: kafka-consumer-groups, kafka-groups, kafka-configs")
def test_group_without_members(tools: KafkaTools, filled: str, group_id: str, bootstrap: str) -> None:
    read = tools.run(
        *("console-consumer", "--topic", filled, "--from-beginning", "--group", group_id, "--max-messages", "30"),
        *("--timeout-ms", "20000", "--command-property", "group.protocol=consumer"),
    )
    assert sorted(read.split()) == sorted(map(str, [*range(10)] * PARTITIONS))
    assert GroupOnWire(bootstrap, group_id).type() == "consumer"
    about = ("consumer-groups", "--describe", "--group", group_id)
    offsets = [[group_id, filled, str(partition), "10", "10", "0", "-", "-", "-"] for partition in range(PARTITIONS)]
    assert sorted(rows(tools.run(*about))) == offsets
    (state,) = rows(tools.run(*about, "--state"))
    assert [state[0], *state[3:]] == [group_id, "uniform", "Empty", "0"]
    assert rows(tools.run(*about, "--members")) == []
    moved = ("--group", group_id, "--topic", filled, "--shift-by", "-3", "--execute")
    said = rows(tools.run("consumer-groups", "--reset-offsets", *moved))
    assert sorted(said) == [[group_id, filled, str(partition), "7"] for partition in range(PARTITIONS)]
    deleted = tools.run("consumer-groups", "--delete-offsets", "--group", group_id, "--topic", f"{filled}:0")
    assert [filled, "0", "Successful"] in rows(deleted)
    left = [[*row[:3], "7", "10", "3", *row[6:]] for row in offsets if row[2] != "0"]
    assert sorted(row for row in rows(tools.run(*about)) if row[3] != "-") == left
    tools.run("consumer-groups", "--delete", "--group", group_id)
    assert group_id not in tools.run("consumer-groups", "--list").split()
    assert f"GroupIdNotFoundException: Group {group_id} not found." in tools.run(*about)


@pytest.mark.capability("KIP-848: kafka-consumer-groups, kafka-groups, kafka-configs")
def test_group_configs(tools: KafkaTools, group_id: str) -> None:
    where = ("--entity-type", "groups", "--entity-name", group_id)
    changed = "consumer.heartbeat.interval.ms=500"
    assert "Completed" in tools.run("configs", "--alter", *where, "--add-config", changed)
    (line,) = [line for line in tools.run("configs", "--describe", *where).splitlines() if "heartbeat" in line]
    assert f"{changed} sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{changed}, " in line
    assert line.endswith("DEFAULT_CONFIG:group.consumer.heartbeat.interval.ms=5000}")
    every = tools.run("configs", "--describe", *where, "--all")
    assert "consumer.session.timeout.ms=" in every
    assert "consumer.assignment.interval.ms=1000" in every
    too_little = "consumer.session.timeout.ms=1"
    refused = tools.run("configs", "--alter", *where, "--add-config", too_little, fails=True)
    assert "consumer.session.timeout.ms must be greater than or equal to" in refused
    tools.run("configs", "--alter", *where, "--delete-config", "consumer.heartbeat.interval.ms")
    assert changed not in tools.run("configs", "--describe", *where)


@pytest.mark.capability("KIP-848: verifiable consumer")
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_verifiable_consumer(tools: KafkaTools, filled: str, group_id: str, bootstrap: str, assignor: str) -> None:
    consumed = tools.run(
        *("verifiable-consumer", "--topic", filled, "--group-id", group_id, "--group-protocol", "consumer"),
        *("--group-remote-assignor", assignor, "--max-messages", "30", "--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in consumed.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 30
    assert [event["success"] for event in events if event["name"] == "offsets_committed"] != []
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")
    (revoked,) = [event["partitions"] for event in events if event["name"] == "partitions_revoked"]
    assert len(revoked) == PARTITIONS
    group = GroupOnWire(bootstrap, group_id)
    assert group.type() == "consumer"
    assert group.described().group_state == "Empty"
