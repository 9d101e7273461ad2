"""``ottla cluster balance`` where two of three brokers are Apache Kafka's: a skewed topic, before and after."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from .helpers.mixed import PATIENCE_S, Mixed
from .helpers.on_zookeeper import ZooKeeperMixed

pytestmark = pytest.mark.slow
PARTITIONS, SIZE = 12, 10_000
LIMIT_S = 240


def balanced(mixed: Mixed, *options: str) -> Any:
    """The command's JSON, which must end well."""
    patient = ("-X", f"request.timeout.ms={PATIENCE_S * 1000:.0f}")  # a busy machine's JVM may need more than 30 s
    chosen = ("--goals", "replicas", "--window", "0", "--disk-limit", "100", "--json", *patient)
    command = (sys.executable, "-m", "ottla", "cluster", "balance", "-b", mixed.bootstrap, *chosen, *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("shared", ["mixed-kafka"], indirect=True)
def test_a_skewed_topic_is_spread_by_kafkas_controller_too(mixed: ZooKeeperMixed, topic: str) -> None:
    mixed.led_by("kafka")
    check_balance(mixed, topic)


def check_balance(mixed: Mixed, topic: str) -> None:
    """The command spreads a topic that has all of its replicas on two brokers."""
    mixed.create(topic, *[[1, 2]] * PARTITIONS)
    for number in range(PARTITIONS):
        mixed.produce(topic, [bytes(SIZE)] * 5, number)
    planned = balanced(mixed, "--dry-run")
    assert topic in {move["topic"] for move in planned["moves"]}
    done = balanced(mixed, "--throttle", "50000000")
    assert done["moves"] == planned["moves"] and not done["left_out"]
    after = [broker["after"]["replicas"] for broker in done["brokers"]]
    mean = sum(after) / len(after)
    assert all(abs(count - mean) <= max(0.1 * mean, 1) for count in after)
    assert balanced(mixed, "--dry-run")["balanced"]
    moved = next(move for move in done["moves"] if move["topic"] == topic)
    assert mixed.read(topic, 5, moved["partition"]) == [bytes(SIZE)] * 5
    # With two replicas it would have no leader where other tests stop two brokers.
    mixed.asked(lambda: mixed.admin.delete_topics([topic])[topic])
