"""``ottla configs``."""

from __future__ import annotations

import pytest

from ..helpers.command import Command

pytestmark = pytest.mark.slow


def test_settings_of_a_topic(command: Command, topic: str) -> None:
    assert command.rows("configs", "describe", "--topic", topic) == []
    command("configs", "set", "--topic", topic, "retention.ms=60000", "cleanup.policy=compact,delete")
    source = "DYNAMIC_TOPIC_CONFIG"
    assert command.rows("configs", "describe", "--topic", topic) == [
        ["cleanup.policy", "compact,delete", source, "false"],
        ["retention.ms", "60000", source, "false"],
    ]
    command("configs", "unset", "--topic", topic, "retention.ms")
    assert [row[0] for row in command.rows("configs", "describe", "--topic", topic)] == ["cleanup.policy"]
    every = {row["name"]: row for row in command.json("configs", "describe", "--topic", topic, "--all")}
    assert every["segment.bytes"]["source"] == "DEFAULT_CONFIG"


def test_a_setting_that_does_not_exist(command: Command, topic: str) -> None:
    """Brokers take its removal for done."""
    command("configs", "set", "--topic", topic, "retention.ms=60000")
    why = command.refused("configs", "unset", "--topic", topic, "retention.ms", "retention.mss")
    assert why == "there is no setting retention.mss; did you mean retention.ms?"
    assert [row[0] for row in command.rows("configs", "describe", "--topic", topic)] == ["retention.ms"]
    for whose in (["--broker", "1"], ["--broker-defaults"]):
        assert command.refused("configs", "unset", *whose, "qqq") == "there is no setting qqq"
        command("configs", "unset", *whose, "log.cleaner.threads")  # exists, and was not set
    assert command.refused("topics", "alter", topic, "--delete-config", "qqq") == "there is no setting qqq"


def test_settings_of_a_broker(command: Command) -> None:
    given = {row["name"]: row for row in command.json("configs", "describe", "--broker", "1")}
    assert given["group.initial.rebalance.delay.ms"]["value"] == "0"
    assert given["listeners"]["read_only"] is False
    assert given["log.dirs"]["read_only"] is True
    # The cluster has this setting from its beginning on, since the eligible leader replicas depend on it (KIP-966).
    assert [row[:2] for row in command.rows("configs", "describe", "--broker-defaults")] == [
        ["min.insync.replicas", "1"]
    ]


def test_settings_of_a_group(command: Command) -> None:
    """There need be no such group."""
    assert command.rows("configs", "describe", "--group", "g") == []
    settings = ("consumer.session.timeout.ms=60000", "consumer.heartbeat.interval.ms=6000")
    assert command("configs", "set", "--group", "g", *settings).split() == (
        "Set consumer.session.timeout.ms, consumer.heartbeat.interval.ms of group g.".split()
    )
    source = "DYNAMIC_GROUP_CONFIG"
    assert command.rows("configs", "describe", "--group", "g") == [
        ["consumer.heartbeat.interval.ms", "6000", source, "false"],
        ["consumer.session.timeout.ms", "60000", source, "false"],
    ]
    command("configs", "unset", "--group", "g", "consumer.heartbeat.interval.ms")
    assert [row[0] for row in command.rows("configs", "describe", "--group", "g")] == ["consumer.session.timeout.ms"]
    every = {row["name"]: row for row in command.json("configs", "describe", "--group", "g", "--all")}
    assert every["consumer.heartbeat.interval.ms"]["value"] == "5000"
    assert "max.session.timeout.ms" in command.refused("configs", "set", "--group", "g", settings[0] + "0")
    assert command.refused("configs", "unset", "--group", "g", "qqq") == "there is no setting qqq"
    command.refused("configs", "describe", "--group", "g", "--topic", "t", code=2)


def test_settings_that_are_refused(command: Command, topic: str) -> None:
    assert "INVALID_CONFIG" in command.refused("configs", "set", "--topic", topic, "retention.ms=soon")
    assert "listeners" in command.refused("configs", "set", "--broker", "1", "listeners=PLAINTEXT://:1")
    assert "there is no broker 7" in command.refused("configs", "describe", "--broker", "7")
    assert "there is no topic none" in command.refused("configs", "describe", "--topic", "none")
    command.refused("configs", "describe", code=2)
    command.refused("configs", "describe", "--topic", topic, "--broker", "1", code=2)
