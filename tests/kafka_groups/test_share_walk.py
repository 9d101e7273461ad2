"""Share groups answer as those of Apache Kafka 4.3.1 do, whatever they are asked."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import ottla
from ottla.compat_tests import toolchains

from .__main__ import SHARE, players
from .helpers.comparison import Comparison, shown
from .helpers.recording import RecordedPlayer
from .helpers.steps import Ask

RECORDING = Path(__file__).with_name("kafka-4.3.1-share-walk.jsonl")
"""Made by ``python -m ottla.tests.kafka_groups --share --seeds 1 --requests 200 --record FILE``."""


def test_a_recorded_walk() -> None:
    recorded = RecordedPlayer(RECORDING)
    with (
        ottla.Broker(properties=SHARE.properties) as broker,
        contextlib.closing(SHARE.player(broker.bootstrap_servers)) as player,
    ):
        comparison = Comparison(SHARE.make, recorded, player)
        comparison.run(recorded.seed, recorded.count)
    assert comparison.differences == [], shown(comparison.differences)
    assert sum(isinstance(step, Ask) for step, _ in comparison.played) == recorded.count > 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_walk_beside_kafka(seed: int) -> None:
    toolchains.kafka_jars()
    with players(SHARE, ["kafka", "ottla"]) as made:
        comparison = Comparison(SHARE.make, *made)
        comparison.run(seed, 2000)
    assert comparison.differences == [], shown(comparison.differences)
    kinds = ("ShareGroupHeartbeat 0", "ShareFetch 0", "ShareAcknowledge 0", "ShareFetch 123", "ShareAcknowledge 123")
    assert min(comparison.counts[kind] for kind in kinds) > 10, comparison.counts
