"""Everything that clients use moves from Apache Kafka's nodes to Ottla's brokers and back, while they write and read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import KafkaTools
from ottla.compat_tests.session import eventually

from ..mixed.helpers.mixed import PATIENCE_S
from ..mixed.test_mixed_controllers import load
from .helpers.on_quorum import QuorumMixed
from .test_quorum_failures import wait_acknowledged

pytestmark = pytest.mark.slow

MOVED_S = 240.0
Places = Mapping[tuple[str, int], Sequence[int]]
"""The replicas of partitions."""


def places(mixed: QuorumMixed, topics: Collection[str]) -> Places:
    """Where partitions of these topics are."""
    described = mixed.admin.list_topics(timeout=PATIENCE_S).topics
    return {(name, number): each.replicas for name in topics for number, each in described[name].partitions.items()}


def plan(folder: Path, name: str, wanted: Places) -> str:
    """The path of a plan in the form of kafka-reassign-partitions."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for (topic, number), replicas in wanted.items()
    ]
    path = folder / name
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def wait_moved(mixed: QuorumMixed, wanted: Places) -> None:
    """Return when every broker tells that all replicas are where they are wanted, in sync, and one of them leads."""

    def is_moved() -> bool:
        described = mixed.admin.list_topics(timeout=PATIENCE_S).topics
        found = {key: described[key[0]].partitions[key[1]] for key in wanted}
        return all(
            found[key].replicas == list(replicas)
            and sorted(found[key].isrs) == sorted(replicas)
            and found[key].leader in replicas
            for key, replicas in wanted.items()
        )

    eventually(is_moved, MOVED_S)


def test_a_live_cluster_moves_to_ottla_and_back(mixed: QuorumMixed, topic: str, tmp_path: Path) -> None:
    """There by Apache Kafka's tool, which asks a broker of Ottla, and back by Ottla's."""
    theirs, ours = mixed.quorum.of_kind("kafka"), mixed.quorum.of_kind("ottla")
    with load(mixed, topic, theirs, theirs[::-1]) as loads:
        moved = [*(producer.topic for producer in loads.producers), "__consumer_offsets", "__transaction_state"]
        home = places(mixed, moved)
        there = {key: ours if number % 2 else ours[::-1] for number, key in enumerate(home)}
        tools = KafkaTools(mixed.cluster.broker(ours[0]).address, tmp_path)
        tools.run("reassign-partitions", "--execute", "--reassignment-json-file", plan(tmp_path, "there.json", there))
        wait_moved(mixed, there)
        for producer in loads.producers:
            wait_acknowledged(producer)
        back = ("cluster", "reassign", plan(tmp_path, "back.json", home), "-b", mixed.bootstrap)
        command = [sys.executable, "-m", "ottla", *back, "--throttle", "50000000"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOVED_S)
        assert done.returncode == 0, done.stdout + done.stderr
        wait_moved(mixed, home)
        for producer in loads.producers:
            wait_acknowledged(producer)
