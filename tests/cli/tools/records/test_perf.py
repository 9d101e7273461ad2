"""``ottla perf``."""

from __future__ import annotations

import pytest

from ...helpers.command import Command

pytestmark = pytest.mark.slow


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
