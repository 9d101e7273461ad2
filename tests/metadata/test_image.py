"""The cluster's metadata as a value: what a delta changes in it, and what it leaves alone."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.metadata.delta import ClusterDelta, TopicDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, FinalizedFeatures, PartitionRegistration
from ottla.security.entities import BROKERS, DEFAULT, TOPICS, USERS, Entity
from ottla.wire.schema import ZERO_UUID

ID_A, ID_B = b"a" * 16, b"b" * 16


def partition(leader: int = 1, epoch: int = 0) -> PartitionRegistration:
    return PartitionRegistration(leader, epoch, 0, (leader,), (1, 2))


def broker(broker_id: int, port: int = 9092) -> BrokerRegistration:
    return BrokerRegistration(broker_id, (AdvertisedListener("PLAINTEXT", "host", port),))


def told(**topics: tuple[bytes, Mapping[int, PartitionRegistration | None]]) -> ClusterDelta:
    return ClusterDelta(topics=[TopicDelta(name, *topic) for name, topic in topics.items()])


def test_an_image_stays_as_it_was() -> None:
    empty = ClusterImage()
    first = empty.apply(told(t=(ID_A, {0: partition(), 1: partition()})))
    second = first.apply(told(t=(ID_A, {1: None})))
    assert (empty.topics, first.topics.keys(), second.topics.keys()) == ({}, {"t"}, {"t"})
    assert (first.topics["t"].partitions.keys(), second.topics["t"].partitions.keys()) == ({0, 1}, {0})


def test_what_a_delta_does_not_name_is_the_same_object() -> None:
    before = ClusterImage().apply(told(t=(ID_A, {0: partition()}), other=(ID_B, {0: partition()})))
    before = before.apply(ClusterDelta(configs={Entity(TOPICS, "t"): {"retention.ms": "1"}}, brokers=[broker(1)]))
    after = before.apply(told(t=(ID_A, {0: partition(2, 1)})))
    assert after.topics["other"] is before.topics["other"]
    assert after.topics["t"] is not before.topics["t"]
    assert after.configs is before.configs
    assert after.apply(ClusterDelta(brokers=[broker(1)])).brokers is before.brokers


@pytest.mark.parametrize(("told_id", "numbers"), [(ID_A, {0, 1}), (ZERO_UUID, {0, 1}), (ID_B, {1})])
def test_a_topic_with_another_id_is_another_topic(told_id: bytes, numbers: set[int]) -> None:
    """An id that whoever tells of it does not know is no other id."""
    image = ClusterImage().apply(told(t=(ID_A, {0: partition()})))
    image = image.apply(told(t=(told_id, {1: partition()})))
    topic = image.topics["t"]
    assert topic.partitions.keys() == numbers
    assert image.topics_by_id == {topic.topic_id: topic}


def test_partitions_are_in_the_order_of_their_numbers_and_brokers_of_their_ids() -> None:
    image = ClusterImage().apply(told(t=(ID_A, {2: partition(), 0: partition()})))
    image = image.apply(told(t=(ID_A, {1: partition()}))).apply(ClusterDelta(brokers=[broker(3), broker(1)]))
    assert list(image.topics["t"].partitions) == [0, 1, 2]
    assert list(image.brokers) == [1, 3]


def test_a_topic_without_partitions_is_gone_by_name_and_by_id() -> None:
    image = ClusterImage().apply(told(t=(ID_A, {0: partition()}), other=(ID_B, {0: partition()})))
    image = image.apply(told(t=(ID_A, {0: None}), never=(b"c" * 16, {0: None})))
    assert (image.topics.keys(), image.topics_by_id.keys()) == ({"other"}, {ID_B})


def test_everything_that_is_set_on_an_entity_is_replaced_and_nothing_removes_it() -> None:
    topic, every_broker = Entity(TOPICS, "t"), Entity(BROKERS, DEFAULT)
    image = ClusterImage().apply(ClusterDelta(configs={topic: {"a": "1"}, every_broker: {"b": "2"}}))
    image = image.apply(ClusterDelta(configs={topic: {"c": "3"}}))
    assert (image.topic_config("t"), image.topic_config("other")) == ({"c": "3"}, {})
    assert (image.broker_config(DEFAULT), image.broker_config("1")) == ({"b": "2"}, {})
    assert image.apply(ClusterDelta(configs={topic: {}})).configs == {every_broker: {"b": "2"}}


def test_single_values_are_replaced_when_they_are_told() -> None:
    image = ClusterImage().apply(ClusterDelta(controller_id=3, features=FinalizedFeatures(5), next_producer_id=1000))
    image = image.apply(ClusterDelta(quotas={Entity(USERS, "alice"): {"producer_byte_rate": 1.0}}))
    assert (image.controller_id, image.features, image.next_producer_id) == (3, FinalizedFeatures(5), 1000)
    assert image.apply(ClusterDelta(controller_id=-1)).controller_id == -1


@pytest.mark.parametrize("seed", range(20))
def test_many_deltas_come_to_what_they_say_in_the_end(seed: int) -> None:
    randomness, image = random.Random(seed), ClusterImage()
    topics: dict[str, dict[int, Any]] = {}
    configs: dict[Entity, dict[str, str]] = {}
    ids = {name: name.encode() * 16 for name in "abcd"}
    for epoch in range(200):
        name, number = randomness.choice("abcd"), randomness.randrange(4)
        if randomness.random() < 0.3:
            entity, values = Entity(TOPICS, name), {"x": str(epoch)} if randomness.random() < 0.7 else {}
            configs[entity] = values
            image = image.apply(ClusterDelta(configs={entity: values}))
            continue
        state = partition(1, epoch) if randomness.random() < 0.6 else None
        topics.setdefault(name, {})[number] = state
        image = image.apply(told(**{name: (ids[name], {number: state})}))
    expected = {
        name: dict(sorted((number, state) for number, state in states.items() if state is not None))
        for name, states in topics.items()
    }
    assert {name: topic.partitions for name, topic in image.topics.items()} == {k: v for k, v in expected.items() if v}
    assert {topic.name for topic in image.topics_by_id.values()} == image.topics.keys()
    assert image.configs == {entity: values for entity, values in configs.items() if values}
