"""``ottla configs``, ``ottla cluster`` and ``ottla perf``."""

from __future__ import annotations

import pytest

import ottla

from .conftest import Command

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


def test_settings_that_are_refused(command: Command, topic: str) -> None:
    assert "INVALID_CONFIG" in command.refused("configs", "set", "--topic", topic, "retention.ms=soon")
    assert "listeners" in command.refused("configs", "set", "--broker", "1", "listeners=PLAINTEXT://:1")
    assert "there is no broker 7" in command.refused("configs", "describe", "--broker", "7")
    assert "there is no topic none" in command.refused("configs", "describe", "--topic", "none")
    command.refused("configs", "describe", code=2)
    command.refused("configs", "describe", "--topic", topic, "--broker", "1", code=2)


def test_the_cluster(command: Command, broker: ottla.Broker, topic: str) -> None:
    cluster = command.json("cluster", "describe")
    assert (cluster["cluster_id"], cluster["controller"]) == (broker.cluster_id, 1)
    assert (cluster["under_replicated_partitions"], cluster["offline_partitions"]) == (0, 0)
    (row,) = cluster["brokers"]
    assert f"{row['host']}:{row['port']}" == broker.bootstrap_servers
    assert f"cluster id: {broker.cluster_id}\n" in command("cluster", "describe")


def test_perf(command: Command, topic: str) -> None:
    sent = command.json("perf", "produce", topic, "--num-records", "500", "--record-size", "64")
    assert (sent["records"], sent["bytes"]) == (500, 32000)
    points = sent["latency_ms"]
    assert 0 < points["p50"] <= points["p95"] <= points["p99"] <= points["p99.9"] <= points["max"]
    read = command.json("perf", "consume", topic)
    assert (read["records"], read["bytes"]) == (500, 32000)
    assert command("perf", "consume", topic).startswith("500 records read in ")
    some = command.json("perf", "consume", topic, "-n", "100")
    assert (some["records"], some["bytes"]) == (100, 6400)


def test_perf_of_numbered_records(command: Command, topic: str) -> None:
    command("perf", "produce", topic, "--num-records", "12", "--record-size", "5", "--numbered")
    values = command("consume", topic, "--until-end", "--format", "%s|").split("|")[:-1]
    assert sorted(values) == sorted(f"{number:<5}" for number in range(12))


def test_perf_of_an_empty_topic(command: Command, topic: str) -> None:
    assert "is empty" in command.refused("perf", "consume", topic)
