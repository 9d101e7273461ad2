"""Consumer groups answer as those of Apache Kafka 4.3.1 do, whatever they are asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.compat_tests import toolchains

from .__main__ import CONSUMER, players
from .helpers.broker_player import BrokerPlayer
from .helpers.comparison import Comparison, shown
from .helpers.hash_order import in_both_orders, member_ids, slot_of_text, slot_of_topic
from .helpers.recording import RecordedPlayer
from .helpers.steps import Ask

RECORDING = Path(__file__).with_name("kafka-4.3.1-walk.jsonl")
"""Made by ``python -m ottla.tests.kafka_groups --seeds 1 --requests 300 --record FILE``."""


@pytest.fixture
def player() -> Iterator[BrokerPlayer]:
    """A broker of Ottla in this process."""
    with (
        ottla.Broker(properties=CONSUMER.properties) as broker,
        contextlib.closing(BrokerPlayer(broker.bootstrap_servers)) as made,
    ):
        yield made


def test_a_recorded_walk(player: BrokerPlayer) -> None:
    recorded = RecordedPlayer(RECORDING)
    comparison = Comparison(CONSUMER.make, recorded, player)
    comparison.run(recorded.seed, recorded.count)
    assert comparison.differences == [], shown(comparison.differences)
    assert sum(isinstance(step, Ask) for step, _ in comparison.played) == recorded.count > 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_walk_beside_kafka(seed: int) -> None:
    toolchains.kafka_jars()
    with players(CONSUMER, ["kafka", "ottla"]) as made:
        comparison = Comparison(CONSUMER.make, *made)
        comparison.run(seed, 2000)
    assert comparison.differences == [], shown(comparison.differences)
    kinds = ("ConsumerGroupHeartbeat 0", "JoinGroup 0", "SyncGroup 0", "Heartbeat 0", "Heartbeat 27", "OffsetFetch 0")
    assert min(comparison.counts[kind] for kind in kinds) > 20, comparison.counts


def test_the_orders_of_javas_hash_tables() -> None:
    """As JShell shows them: ``new HashSet<>(List.of("uniform", "range", "C", "B"))``."""
    assert [slot_of_text(text) for text in ("uniform", "range", "B", "C")] == [1, 9, 2, 3]
    assert [slot_of_topic(bytes(15) + bytes([number])) for number in (3, 5)] == [3, 5]
    for letter in "BCDEFGHI":
        assert all(slot_of_text(each) == ord(letter) % 16 for each in member_ids(letter))
    ids = [bytes([place, *range(13), slot_low, slot]) for place, slot_low, slot in ((1, 0, 9), (2, 0, 1), (3, 0, 4))]
    assert in_both_orders(ids, 2) is not None and in_both_orders(ids, 3) is None
