"""``ottla topics trim``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ...helpers.command import Command

pytestmark = pytest.mark.slow


def starts(command: Command, topic: str) -> list[int]:
    (described,) = command.json("topics", "describe", topic)
    return [partition["start_offset"] for partition in described["partitions"]]


def test_records_are_trimmed_when_it_is_told_to(
    command: Command, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    name = new_topic(2)
    for partition in "01":
        command("produce", name, "-p", partition, given="1\n2\n3\n")
    trim = ("topics", "trim", name, "-p", "1", "-o", "-1")
    shown = [[name, "1", "0", "2", "3"]]
    assert command.rows(*trim) == shown
    assert starts(command, name) == [0, 0]
    assert command.rows(*trim, "--execute") == shown
    assert starts(command, name) == [0, 2]
    plan = tmp_path / "plan.json"
    rows = [{"topic": name, "partition": 0, "offset": 3}, {"topic": name, "partition": 1, "offset": 1}]
    plan.write_text(json.dumps({"partitions": rows, "version": 1}))
    trimmed = command.json("topics", "trim", "--from-file", str(plan), "--execute")
    assert [(row["start_offset"], row["new_start_offset"]) for row in trimmed] == [(0, 3), (2, 2)]
    assert starts(command, name) == [3, 2]


def test_what_cannot_be_trimmed(command: Command, new_topic: Callable[..., str]) -> None:
    name = new_topic(1, {"cleanup.policy": "compact"})
    command("produce", name, "-k", "k", given="1\n")
    assert "POLICY_VIOLATION" in command.refused("topics", "trim", name, "-o", "end", "--execute")
    assert command.refused("topics", "trim", f"{name}:0", "-o", "9").endswith("(OFFSET_OUT_OF_RANGE)")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in command.refused("topics", "trim", "none", "-o", "end")
    command.refused("topics", "trim", name, code=2)
    command.refused("topics", "trim", name, "-o", "1:2", code=2)
