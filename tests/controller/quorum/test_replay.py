"""Records of the metadata log become an image, by whatever way they come."""

from __future__ import annotations

import random

import pytest

from ottla.controller.quorum.replay import RecordReplay, ReplayError
from ottla.controller.quorum.snapshot_records import UnwritableImageError, snapshot_records
from ottla.log.metadata_snapshots import SnapshotHead, SnapshotReader, encode_snapshot
from ottla.metadata.difference import delta_between
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import MIGRATING_DIRECTORY, LogPosition
from ottla.security.entities import BROKERS, DEFAULT, GROUPS, TOPICS, Entity
from ottla.wire.messages.access_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from ottla.wire.messages.broker_records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.wire.messages.setting_records import ClientQuotaRecord, ConfigRecord, EntityData, FeatureLevelRecord
from ottla.wire.messages.topic_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.wire.schema import Message

from .helpers.images import contents
from .helpers.record_walk import RecordWalk

TOPIC, OTHER = b"t" * 16, b"o" * 16
END = LogPosition(99, 3, 1_000)


def replayed(*records: Message, on: ClusterImage | None = None) -> ClusterImage:
    image = on or ClusterImage()
    replay = RecordReplay(image)
    replay.replay_all(records)
    return image.apply(replay.delta(END))


def topic(topic_id: bytes = TOPIC, name: str = "t", **partition: object) -> list[Message]:
    fields = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0, **partition}
    return [
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(partition_id=0, topic_id=topic_id, **fields),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("seed", range(30))
def test_however_records_are_cut_into_batches_the_image_is_the_same(seed: int) -> None:
    records = list(RecordWalk(seed).records(300))
    whole = replayed(*records)
    cut, image = random.Random(seed), ClusterImage()
    left = records
    while left:
        size = cut.randint(1, 40)
        batch, left = left[:size], left[size:]
        while left and isinstance(left[0], PartitionRecord):
            batch.append(left.pop(0))  # a topic comes in one batch
        image = replayed(*batch, on=image)
    assert contents(image) == contents(whole)


@pytest.mark.parametrize("seed", range(30))
def test_a_snapshot_of_an_image_is_that_image(seed: int) -> None:
    image = replayed(*RecordWalk(seed).records(300))
    head = SnapshotHead(END.timestamp)
    data = b"".join(encode_snapshot(head, snapshot_records(image), epoch=END.epoch, now_ms=5))
    reader = SnapshotReader(data, "snapshot")
    assert reader.head == head
    again = replayed(*(record for batch in reader.batches() for record in batch))
    assert contents(again) == contents(image)


@pytest.mark.parametrize("seed", range(30))
def test_the_difference_of_two_images_makes_one_the_other(seed: int) -> None:
    walk = list(RecordWalk(seed).records(400))
    before, after = replayed(*walk[:150]), replayed(*walk)
    other = replayed(*RecordWalk(seed + 1000).records(200))
    for image in (before, other, ClusterImage()):
        assert contents(image.apply(delta_between(image, after))) == contents(after)
    nothing = delta_between(after, after)
    assert not any((nothing.topics, nothing.configs, nothing.brokers, nothing.quorum_brokers, nothing.acl_ids))


def test_a_topic_made_again_under_its_name_is_another_one() -> None:
    image = replayed(*topic())
    replay = RecordReplay(image)
    replay.replay(ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1"))
    replay.replay_all([RemoveTopicRecord(topic_id=TOPIC), *topic(OTHER)])
    delta = replay.delta(END)
    assert [(each.topic_id, set(each.partitions.values()) == {None}) for each in delta.topics] == [
        (TOPIC, True),
        (OTHER, False),
    ]
    image = image.apply(delta)
    assert image.topics["t"].topic_id == OTHER
    assert TOPIC not in image.topics_by_id
    assert Entity(TOPICS, "t") not in image.configs


def test_what_was_made_and_removed_leaves_nothing() -> None:
    replay = RecordReplay(ClusterImage())
    replay.replay_all([*topic(), RemoveTopicRecord(topic_id=TOPIC)])
    assert replay.delta(END).topics == []


def test_any_leader_in_a_change_begins_a_leader_epoch_and_every_change_a_partition_epoch() -> None:
    image = replayed(*topic())
    for leader, epoch in ((-2, 0), (1, 1), (2, 2), (-1, 3)):
        image = replayed(PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=leader, isr=[2]), on=image)
        partition = image.topics["t"].partitions[0]
        assert (partition.leader_epoch, partition.leader) == (epoch, 1 if leader == -2 else leader)
    assert partition.partition_epoch == 4
    assert partition.isr == (2,)
    assert partition.directories == (MIGRATING_DIRECTORY,) * 2


def test_clearing_the_elr_of_all_touches_only_those_that_have_one() -> None:
    image = replayed(*topic(eligible_leader_replicas=[2]), *topic(OTHER, "o"))
    other = image.topics["o"]
    image = replayed(ClearElrRecord(topic_name=""), on=image)
    assert image.topics["o"] is other
    partition = image.topics["t"].partitions[0]
    assert (partition.elr, partition.partition_epoch) == ((), 1)


def test_entities_of_configs_and_quotas() -> None:
    image = replayed(
        ConfigRecord(resource_type=4, resource_name="", name="a", value="1"),
        ConfigRecord(resource_type=4, resource_name="7", name="a", value="2"),
        ConfigRecord(resource_type=32, resource_name="g", name="b", value="3"),
    )
    assert dict(image.configs.items()) == {
        Entity(BROKERS, DEFAULT): {"a": "1"},
        Entity(BROKERS, "7"): {"a": "2"},
        Entity(GROUPS, "g"): {"b": "3"},
    }


def test_only_brokers_that_are_not_fenced_are_alive() -> None:
    register = RegisterBrokerRecord(broker_id=1, broker_epoch=5, fenced=True)
    image = replayed(register)
    assert (list(image.brokers), image.quorum_brokers[1].is_fenced) == ([], True)
    image = replayed(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1), on=image)
    assert list(image.brokers) == [1]
    same = replayed(BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1), on=image)
    assert same.brokers is image.brokers


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (PartitionChangeRecord(partition_id=0, topic_id=OTHER), "no topic with the id 6f6f"),
        (PartitionChangeRecord(partition_id=1, topic_id=TOPIC), "no partition 1 of t"),
        (RemoveTopicRecord(topic_id=OTHER), "no topic with the id"),
        (ClearElrRecord(topic_name="missing"), "no topic missing"),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4), "the epoch of broker 1 is 5, not 4"),
        (BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=4), "broker 2 is not registered"),
        (RemoveAccessControlEntryRecord(id=OTHER), "no access rule with the id"),
        (AccessControlEntryRecord(id=OTHER, resource_type=99), "99 is not a valid ResourceType"),
        (ConfigRecord(resource_type=8, resource_name="1", name="a"), "resources of type 8"),
        (ClientQuotaRecord(entity=[EntityData(entity_type="planet", entity_name="x")]), "planet"),
        (FeatureLevelRecord(name="metadata.version", feature_level=31), "31 is not one of 7 to 30"),
        (
            PartitionChangeRecord(partition_id=0, topic_id=TOPIC, replicas=[1], directories=[OTHER, TOPIC]),
            "1 replicas have 2 directories",
        ),
    ],
)
def test_what_does_not_fit_is_an_error(record: Message, why: str) -> None:
    image = replayed(*topic(), RegisterBrokerRecord(broker_id=1, broker_epoch=5))
    with pytest.raises(ReplayError, match=why):
        RecordReplay(image).replay(record)


@pytest.mark.parametrize(
    ("level", "record", "what"),
    [
        (16, RegisterBrokerRecord(broker_id=1, log_dirs=[OTHER]), "log directories of brokers"),
        (29, RegisterBrokerRecord(broker_id=1, cordoned_log_dirs=[]), "cordoned"),
        (7, RegisterBrokerRecord(broker_id=1, is_migrating_zk_broker=True), "ZooKeeper"),
    ],
)
def test_what_no_record_of_the_level_carries_is_not_lost_silently(level: int, record: Message, what: str) -> None:
    image = replayed(FeatureLevelRecord(name="metadata.version", feature_level=level), record)
    with pytest.raises(UnwritableImageError, match=what):
        list(snapshot_records(image))
