"""``ottla topics …`` as people and scripts use it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from ..helpers.command import Command

pytestmark = pytest.mark.slow


def test_a_topic_is_created_listed_and_deleted(command: Command) -> None:
    assert command("topics", "create", "life", "--partitions", "3") == "Created topic life.\n"
    command("produce", "life", "--partition", "1", given="one\ntwo\n")
    (row,) = [row for row in command.rows("topics", "list") if row[0] == "life"]
    assert row[1:5] == ["3", "1", "0", "2"]
    assert int(row[5]) > 0
    assert command("topics", "delete", "life") == "Deleted topic life.\n"
    assert "life" not in [row[0] for row in command.rows("topics", "list")]


def test_internal_topics_can_be_left_out(command: Command, topic: str) -> None:
    command("consume", topic, "--group", "internal", "--timeout-ms", "1")
    assert "__consumer_offsets" in [row[0] for row in command.rows("topics", "list")]
    shown = [row["topic"] for row in command.json("topics", "list", "--exclude-internal")]
    assert topic in shown and "__consumer_offsets" not in shown


def test_a_topic_that_exists(command: Command, topic: str) -> None:
    why = command.refused("topics", "create", topic)
    assert topic in why and "TOPIC_ALREADY_EXISTS" in why
    assert command("topics", "create", topic, "--if-not-exists") == f"Topic {topic} exists already.\n"


def test_validate_only_creates_nothing(command: Command) -> None:
    command("topics", "create", "imagined", "--validate-only")
    assert "there is no topic imagined" in command.refused("topics", "describe", "imagined")


def test_a_description_has_settings_and_partitions(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(2, {"retention.ms": "60000"})
    command("produce", name, "--partition", "1", given="x\n")
    (described,) = command.json("topics", "describe", name)
    assert (described["topic"], described["configs"]) == (name, {"retention.ms": "60000"})
    assert re.fullmatch(r"[\w-]{22}", described["topic_id"])
    assert [p["end_offset"] for p in described["partitions"]] == [0, 1]
    assert described["partitions"][1]["leader"] == 1
    assert described["partitions"][1]["isr"] == [1]
    head, *lines = command("topics", "describe", name).splitlines()
    assert f"Topic: {name}\t" in head and head.endswith("Configs: retention.ms=60000")
    assert [line.split("\t")[2] for line in lines] == ["Partition: 0", "Partition: 1"]


def test_nothing_is_under_replicated(command: Command, topic: str) -> None:
    assert command("topics", "describe", "--under-replicated-partitions") == ""
    assert command.json("topics", "describe", "--unavailable-partitions") == []


def test_partitions_and_settings_are_altered(command: Command, topic: str) -> None:
    command("topics", "alter", topic, "--partitions", "4", "--config", "segment.bytes=2000000")
    (described,) = command.json("topics", "describe", topic)
    assert len(described["partitions"]) == 4
    assert described["configs"] == {"segment.bytes": "2000000"}
    command("topics", "alter", topic, "--delete-config", "segment.bytes")
    assert command.json("topics", "describe", topic)[0]["configs"] == {}


def test_what_cannot_be_altered(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(3)
    assert "INVALID_PARTITIONS" in command.refused("topics", "alter", name, "--partitions", "2")
    assert "nope" in command.refused("topics", "alter", name, "--config", "nope=1")
    assert "NAME=VALUE" in command.refused("topics", "alter", name, "--config", "nope", code=2)
    assert "--partitions" in command.refused("topics", "alter", name, code=2)


def test_deleting_what_is_not_there(command: Command) -> None:
    assert "UNKNOWN_TOPIC_OR_PARTITION" in command.refused("topics", "delete", "none")
    assert command("topics", "delete", "none", "--if-exists") == "Topic none does not exist.\n"
