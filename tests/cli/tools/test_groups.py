"""``ottla groups …``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

import ottla
from ottla.cli.tools.client import Admin
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

from ..helpers.command import PLAN_ONLY, Command

pytestmark = pytest.mark.slow

_numbers = itertools.count()


@pytest.fixture
def group(command: Command, broker: ottla.Broker, topic: str) -> str:
    """A group that has read three of the five records of ``topic``, whose times are 1 s to 5 s."""
    name = f"group-{next(_numbers)}"
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(1, 6):
            producer.send(topic, b"%d" % number, timestamp_ms=number * 1000)
    command("consume", topic, "--group", name, "--num", "3")
    return name


def committed(admin: Admin, group: str) -> dict[tuple[str, int], int]:
    return {(at.topic, at.partition): offset.offset for at, offset in admin.list_group_offsets([group])[group].items()}


def test_groups_are_listed_and_deleted(command: Command, group: str) -> None:
    assert [group, "consumer", "Empty", "classic"] in command.rows("groups", "list")
    assert command("groups", "delete", group) == f"Deleted group {group}.\n"
    assert group not in [row["group"] for row in command.json("groups", "list")]
    assert "GROUP_ID_NOT_FOUND" in command.refused("groups", "delete", group)
    assert f"there is no group {group}" in command.refused("groups", "describe", group)


def test_lag(command: Command, topic: str, group: str) -> None:
    assert command.rows("groups", "describe", group) == [[group, topic, "0", "3", "5", "2", "-", "-", "-"]]
    (described,) = command.json("groups", "describe", group)
    assert (described["state"], described["total_lag"], described["members"]) == ("Empty", 2, [])


def test_members_and_what_cannot_be_done_while_there_are_some(command: Command, topic: str, group: str) -> None:
    process = command.start("consume", topic, "--group", group)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"4\n"
        (row,) = command.rows("groups", "describe", group, "--members")
        assert (row[0], row[3], row[4], row[5]) == (group, "ottla", "1", f"{topic}-0")
        assert command.json("groups", "describe", group)[0]["state"] == "Stable"
        assert "stop its consumers" in command.refused("groups", "delete", group)
        to_earliest = ("--topic", topic, "--to-earliest", "--execute")
        assert command.refused("groups", "reset-offsets", group, *to_earliest) == (
            f"Assignments can only be reset if the group '{group}' is inactive, but the current state is Stable."
        )
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 5),
        (("--to-offset", "1"), 1),
        (("--to-offset", "99"), 5),
        (("--shift-by", "-2"), 1),
        (("--shift-by", "-9"), 0),
        (("--shift-by", "1"), 4),
        (("--to-datetime", "1970-01-01T00:00:02"), 1),
        (("--to-datetime", "2100-01-01T00:00:00Z"), 5),
        (("--to-current",), 3),
        (("--by-duration", "PT1H"), 5),
        (("--by-duration", "P40000D"), 0),
    ],
)
def test_a_reset_is_shown_and_only_done_when_told(
    command: Command, admin: Admin, topic: str, group: str, target: tuple[str, ...], offset: int
) -> None:
    reset = ("groups", "reset-offsets", group, "--topic", topic, *target)
    shown = [[group, topic, "0", "3", str(offset)]]
    assert command.rows(*reset) == shown
    assert committed(admin, group) == {(topic, 0): 3}
    assert command.rows(*reset, "--execute") == shown
    assert committed(admin, group) == {(topic, 0): offset}


def test_a_plan_in_a_pipe_is_told_to_be_one(command: Command, topic: str, group: str) -> None:
    reset = ("groups", "reset-offsets", group, "--topic", topic, "--to-earliest")
    said = {
        (): PLAN_ONLY + "\n",
        ("--json",): PLAN_ONLY + "\n",
        ("--dry-run",): "",
        ("--export",): "",
        ("--execute",): "",
    }
    assert {options: command.run(*reset, *options).stderr for options in said} == said


def test_a_reset_of_everything_by_file(command: Command, admin: Admin, topic: str, group: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(command("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--export"))
    assert plan.read_text() == f"{topic},0,0\n"
    plan.write_text(f"{topic},0,2\n")
    command("groups", "reset-offsets", group, "--from-file", str(plan), "--execute")
    assert committed(admin, group) == {(topic, 0): 2}
    plan.write_text(f"{group},{topic},0,4\nother,{topic},0,1\n")
    command("groups", "reset-offsets", group, "--from-file", str(plan), "--execute")
    assert committed(admin, group) == {(topic, 0): 4}
    plan.write_text("nonsense\n")
    why = command.refused("groups", "reset-offsets", group, "--from-file", str(plan))
    assert why == f"{plan}, line 1: expected topic,partition,offset"


def test_groups_are_exported_and_read_back(
    command: Command, admin: Admin, topic: str, group: str, tmp_path: Path
) -> None:
    other = f"{group}-other"
    reset = ("groups", "reset-offsets")
    command(*reset, other, "--topic", topic, "--to-offset", "1", "--execute")
    plan = tmp_path / "plan.csv"
    plan.write_text(command(*reset, group, "--all-topics", "--export"))
    assert plan.read_text() == f"{topic},0,3\n"
    plan.write_text(command(*reset, group, other, "--all-topics", "--export"))
    assert plan.read_text() == f"{group},{topic},0,3\n{other},{topic},0,1\n"
    command(*reset, group, other, "--all-topics", "--to-latest", "--execute")
    assert committed(admin, group) == committed(admin, other) == {(topic, 0): 5}
    command(*reset, group, other, "--from-file", str(plan), "--execute")
    assert (committed(admin, group), committed(admin, other)) == ({(topic, 0): 3}, {(topic, 0): 1})
    plan.write_text(f"{topic},0,2\n")
    why = command.refused(*reset, group, other, "--from-file", str(plan))
    assert why == f"{plan}, line 1: of several groups, expected group,topic,partition,offset"
    listed = {row["group"] for row in command.json(*reset, "--all-groups", "--topic", topic, "--to-earliest")}
    assert {group, other} <= listed


def test_what_was_never_committed_cannot_be_shifted(command: Command, topic: str) -> None:
    reset = ("groups", "reset-offsets", f"never-{topic}", "--topic", topic)
    why = f"Cannot shift offset for partition {topic}-0 since there is no current committed offset"
    assert command.refused(*reset, "--shift-by", "1") == why


def test_some_partitions_of_a_new_group(command: Command, admin: Admin, new_topic: Callable[..., str]) -> None:
    name = new_topic(3)
    reset = ("groups", "reset-offsets", f"new-{name}", "--to-earliest", "--execute", "--topic")
    command(*reset, f"{name}:0,2")
    assert committed(admin, f"new-{name}") == {(name, 0): 0, (name, 2): 0}
    assert "has no partition 3" in command.refused(*reset, f"{name}:3")


@pytest.mark.parametrize(
    "options",
    [
        ("--to-earliest",),
        ("--topic", "t"),
        ("--topic", "t", "--to-earliest", "--to-latest"),
        ("--topic", "t", "--all-topics", "--to-earliest"),
        ("--topic", "t:x", "--to-earliest"),
        ("--topic", "t", "--to-earliest", "--execute", "--dry-run"),
        ("--topic", "t", "--by-duration", "soon"),
        ("--all-groups", "--topic", "t", "--to-earliest"),
    ],
)
def test_resets_that_make_no_sense(command: Command, options: tuple[str, ...]) -> None:
    command.refused("groups", "reset-offsets", "g", *options, code=2)


class Members:
    """Members of a consumer group of KIP-848, by hand."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        self.client = Connection(address)
        self._group, self._topic = group, topic

    def __call__(self, member_id: str, epoch: int, owned: list[TopicPartitions] | None = None, **fields: object) -> int:
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=[self._topic] if joins else None,
            topic_partitions=[] if joins else owned,
            **fields,
        )
        response = self.client.call(request, 1)
        assert response.error_code == 0, response
        return int(response.member_epoch)


def test_a_consumer_group_has_epochs_and_the_targets_of_its_members(
    command: Command, broker: ottla.Broker, new_topic: Callable[..., str], admin: Admin
) -> None:
    topic, group = new_topic(2), f"group-{next(_numbers)}"
    command("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
    beat = Members(broker.bootstrap_servers, group, topic)
    assert beat("A", 0, instance_id="i") == 2
    assert [group, "consumer", "Stable", "consumer"] in command.rows("groups", "list")
    broker.clock.advance(seconds=2)
    assert beat("B", 0) == 3
    both, first, second = [f"{topic}-0", f"{topic}-1"], f"{topic}-0", f"{topic}-1"
    members = command.rows("groups", "describe", group, "--members")
    assert [[row[1], *row[4:]] for row in members] == [
        ["A", "2", ",".join(both), "i", "2", first],
        ["B", "0", "-", "-", "3", second],
    ]
    (described,) = command.json("groups", "describe", group)
    told = {name: described[name] for name in ("type", "state", "epoch", "assignment_epoch", "assignor")}
    assert told == {
        "type": "consumer",
        "state": "Reconciling",
        "epoch": 3,
        "assignment_epoch": 3,
        "assignor": "uniform",
    }
    assert [(each["member_id"], each["assignment"], each["target"]) for each in described["members"]] == [
        ("A", both, [first]),
        ("B", [], [second]),
    ]
    assert [row[6] for row in command.rows("groups", "describe", group)] == ["A", "A"]
    assert "stop its consumers" in command.refused("groups", "delete", group)
    refusal = command.refused("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    assert refusal.endswith("is inactive, but the current state is Reconciling.")
    assert beat("A", -1) == beat("B", -1) == -1
    command("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    assert command("groups", "delete", group) == f"Deleted group {group}.\n"


def test_members_of_classic_groups_have_no_target(command: Command, topic: str, group: str) -> None:
    (described,) = command.json("groups", "describe", group)
    assert (described["type"], described["epoch"], described["assignor"]) == ("classic", None, None)


def test_a_share_group_has_members_and_start_offsets(
    command: Command, broker: ottla.Broker, new_topic: Callable[..., str]
) -> None:
    topic, group = new_topic(2), f"group-{next(_numbers)}"
    command("groups", "reset-offsets", f"{group}-other", "--topic", topic, "--to-earliest", "--execute")
    client = Connection(broker.bootstrap_servers)

    def beat(epoch: int) -> ShareGroupHeartbeatResponse:
        names = [topic] if epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id="A", member_epoch=epoch, subscribed_topic_names=names
        )
        response: ShareGroupHeartbeatResponse = client.call(request, 1)
        assert response.error_code == 0, response
        return response

    def has_all() -> bool:
        broker.clock.advance(seconds=2)
        assignment = beat(0).assignment
        return assignment is not None and bool(assignment.topic_partitions)

    eventually(has_all)
    epoch = beat(0).member_epoch
    assert [group, "share", "Stable", "share"] in command.rows("groups", "list")
    assert command.rows("groups", "describe", group) == [
        [group, topic, "0", "-", "-", "1"],
        [group, topic, "1", "-", "-", "1"],
    ]
    (row,) = command.rows("groups", "describe", group, "--members")
    assert [row[1], *row[4:]] == ["A", "2", f"{topic}-0,{topic}-1", str(epoch)]
    (described,) = command.json("groups", "describe", group)
    assert [described[name] for name in ("type", "state", "epoch", "assignor")] == ["share", "Stable", epoch, "simple"]
    assert described["partitions"][0]["start_offset"] is None
    in_use = command.refused("groups", "reset-offsets", group, "--topic", topic, "--to-earliest")
    assert "can only be reset if the group" in in_use and "the current state is Stable" in in_use
    assert "stop its consumers" in command.refused("groups", "delete", group)
    beat(-1)
    assert command("groups", "delete", group) == f"Deleted group {group}.\n"


SHARE_RESETS = [
    (("--to-earliest",), [0, 0]),
    (("--to-latest",), [4, 4]),
    (("--to-current",), [2, 2]),
    (("--shift-by", "-1"), [1, 1]),
    (("--to-offset", "3"), [3, 3]),
    (("--to-offset", "9"), [4, 4]),
    (("--to-datetime", "1970-01-01T00:00:03"), [2, 2]),
]


def test_a_share_group_begins_elsewhere(command: Command, new_topic: Callable[..., str], tmp_path: Path) -> None:
    topic, group = new_topic(2), f"group-{next(_numbers)}"
    lines = [{"value": f"{n}", "partition": n % 2, "timestamp": (n // 2 + 1) * 1000} for n in range(8)]
    command("produce", topic, "--json", given="".join(json.dumps(line) + "\n" for line in lines))
    command("configs", "set", "--group", group, "share.auto.offset.reset=earliest")
    command("consume", topic, "--share", group, "-n", "8")
    reset = ("groups", "reset-offsets", group)
    command(*reset, "--topic", topic, "--to-offset", "2", "--execute")
    for options, new in SHARE_RESETS:
        shown = command.json(*reset, "--all-topics", *options)
        assert [(row["current_offset"], row["new_offset"]) for row in shown] == [(2, each) for each in new], options
    assert "Nothing is changed" in command.run(*reset, "--all-topics", "--to-earliest").stderr
    assert command("consume", topic, "--share", group, "-n", "4", "-f", "%o").count("2") == 2
    saved = tmp_path / "saved.csv"
    saved.write_text(command(*reset, "--topic", f"{topic}:1", "--to-offset", "1", "--export"))
    command(*reset, "--from-file", str(saved), "--execute")
    assert command("consume", topic, "--share", group, "-n", "3", "-f", "%p%o ") == "11 12 13 "
    absent = command.refused(*reset, "--topic", "absent", "--to-earliest", "--execute")
    assert "there is no topic absent" in absent
