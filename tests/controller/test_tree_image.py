"""What ZooKeeper mode keeps in nodes becomes the image that a cluster of KRaft begins with, and nothing of it is lost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ottla.base.partitions import TopicPartition
from ottla.controller.quorum.features import initial_levels
from ottla.controller.quorum.metadata_version import ELR, FEATURE
from ottla.controller.quorum.replay import RecordReplay
from ottla.controller.quorum.snapshot_records import snapshot_records
from ottla.controller.zookeeper.leaving.tree_image import ConvertedImage, MoveRules, UnmovableStateError, tree_image
from ottla.controller.zookeeper.nodes import acl_znodes, token_znodes, znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Set
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import MIGRATING_DIRECTORY, LogPosition, ReplicaAssignment, TopicAssignment
from ottla.security.entities import BROKERS, CLIENTS, DEFAULT, IPS, TOPICS, USERS, Entity, UserClient
from ottla.security.scram import ScramMechanism

from .helpers.old_state import ALICE, BOB, CREDENTIAL, ENTRIES, TOKEN, OldState, rich_state, topic_id
from .quorum.helpers.images import contents

LEVELS = initial_levels(30, {}, is_dynamic=True)
DIRECTORY = b"directory-of-one"


def moved(state: OldState, **rules: Any) -> ConvertedImage:
    return tree_image(state.tree, MoveRules(**({"levels": LEVELS, "broker_id": 1} | rules)), random.Random(1))


def test_partitions_keep_their_epochs() -> None:
    image = moved(rich_state(), directory_of=lambda partition: DIRECTORY).image
    topic = image.topics["orders"]
    assert (topic.topic_id, list(topic.partitions)) == (topic_id(1), [0, 1, 10])
    for partition in topic.partitions.values():
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 5, 3)
        assert (partition.replicas, partition.isr, partition.directories) == ((1,), (1,), (DIRECTORY,))
    assert image.topics["plain"].partitions[0].leader_epoch == 0


def test_everything_that_is_set_is_there() -> None:
    image = moved(rich_state()).image
    assert dict(image.configs.items()) == {
        Entity(TOPICS, "orders"): {"retention.ms": "1000"},
        Entity(BROKERS, "1"): {"log.cleaner.threads": "2"},
        Entity(BROKERS, DEFAULT): {"log.retention.ms": "5000"},
    }
    assert dict(image.quotas.items()) == {
        Entity(USERS, BOB.name): {"producer_byte_rate": 1000.0},
        Entity(USERS, DEFAULT): {"consumer_byte_rate": 2000.0},
        Entity(USERS, UserClient(ALICE.name, "app")): {"request_percentage": 12.5},
        Entity(CLIENTS, "c/1"): {"producer_byte_rate": 3000.0},
        Entity(IPS, "10.0.0.1"): {"connection_creation_rate": 7.0},
    }
    assert dict(image.scram.items()) == {BOB.name: {ScramMechanism.SHA_256: CREDENTIAL}}
    assert dict(image.acls.items()) == {pattern: frozenset(entries) for pattern, entries in ENTRIES.items()}
    assert len(image.acl_ids) == 3
    assert dict(image.tokens.items()) == {TOKEN.token_id: TOKEN}
    assert image.next_producer_id == 5000


def test_its_records_are_the_same_image_again() -> None:
    image = moved(rich_state(), directory_of=lambda partition: DIRECTORY).image
    records = [record for record, _ in snapshot_records(image)]
    replay = RecordReplay(ClusterImage())
    replay.replay_all(records)
    again = ClusterImage().apply(replay.delta(LogPosition(-1, 0, 0)))
    assert contents(again) | {"position": None} == contents(image)
    assert getattr(records[0], "name", None) == FEATURE


@pytest.mark.parametrize("broker_id", [1, None], ids=["a lone broker", "several brokers"])
def test_who_leads(broker_id: int | None) -> None:
    """Of several brokers nobody knows which one comes back first; whoever leads later is elected, and begins another epoch."""
    state = OldState()
    state.topic("t", topic_id(1), {0: [1, 2, 3]}, epochs=(4, 2))
    partition = moved(state, broker_id=broker_id).image.topics["t"].partitions[0]
    assert partition.leader == (broker_id or -1)
    assert (partition.leader_epoch, partition.partition_epoch, partition.isr) == (4, 2, (1, 2, 3))
    assert partition.directories == (MIGRATING_DIRECTORY,) * 3


def test_a_partition_that_nobody_has_led_yet() -> None:
    state = OldState()
    state.topic("t", topic_id(1), {0: [1]}, epochs=None)
    partition = moved(state).image.topics["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr) == (1, 0, 0, (1,))


@pytest.mark.parametrize("known", [topic_id(7), None], ids=["in its logs", "nowhere"])
def test_a_topic_without_an_id_gets_one(known: bytes | None) -> None:
    state = OldState()
    state.topic("t", bytes(16), {0: [1]})
    found = moved(state, known_id=lambda topic: known).image.topics["t"].topic_id
    assert found == known if known else any(found)


def test_a_topic_that_is_being_deleted_does_not_come_back() -> None:
    state = rich_state()
    state.write(Create(znodes.delete_topic_path("orders")), Create(znodes.delete_topic_path("gone")))
    found = moved(state)
    assert list(found.image.topics) == ["plain"]
    assert found.deleted == {"orders": topic_id(1)}
    assert Entity(TOPICS, "orders") not in found.image.configs
    assert list(moved(state, may_delete_topics=False).image.topics) == ["orders", "plain"]


def test_what_is_set_on_a_topic_that_does_not_exist_is_left_behind() -> None:
    state = OldState()
    state.config("topics", "gone", {"retention.ms": "1"})
    assert not moved(state).image.configs


def test_passwords_are_in_the_clear() -> None:
    state = OldState()
    name, lost = "listener.name.a.ssl.key.password", "listener.name.b.ssl.key.password"
    state.config("brokers", "1", {name: "coded", lost: "of another secret", "log.retention.ms": "1"})
    clear = {name: "secret", "log.retention.ms": "1"}
    found = moved(state, clear=lambda broker, stored: clear)
    assert found.image.broker_config("1") == clear
    assert found.left_behind == (f"{lost} of broker 1, which password.encoder.secret does not decrypt",)


def test_a_damaged_credential_is_left_behind() -> None:
    state = OldState()
    state.config("users", "eve", {"SCRAM-SHA-256": "salt=?", "SCRAM-SHA-512": CREDENTIAL.render()})
    found = moved(state)
    assert found.image.scram["eve"] == {ScramMechanism.SHA_512: CREDENTIAL}
    assert found.left_behind == ("the SCRAM-SHA-256 credential of user eve, which is damaged",)


def test_min_isr_is_that_of_the_only_broker() -> None:
    state = OldState()
    state.config("brokers", "<default>", {"min.insync.replicas": "1", "log.retention.ms": "1"})
    state.config("brokers", "1", {"min.insync.replicas": "2"})
    image = moved(state).image
    assert image.broker_config(DEFAULT) == {"min.insync.replicas": "2", "log.retention.ms": "1"}
    assert not image.broker_config("1")
    several = moved(state, broker_id=None)
    assert several.image.broker_config(DEFAULT)["min.insync.replicas"] == "1"
    assert several.left_behind == ("min.insync.replicas of broker 1, which is one value for all brokers now",)
    without_elr = moved(state, levels={**LEVELS, ELR: 0}).image
    assert without_elr.broker_config("1") == {"min.insync.replicas": "2"}


BROKEN = {
    "a topic": Create(znodes.topic_path("t"), b"{"),
    "a state": Set(znodes.state_path("plain", 0), b"[]"),
    "producer ids": Set(znodes.PRODUCER_ID_BLOCK, b"1"),
    "a config": Create(znodes.config_path("users", "u"), b"1"),
    "access rules": Create(acl_znodes.LITERAL_ROOT + "/Topic/t", b'{"version":2}'),
    "a token": Create(token_znodes.TOKENS + "/t", b"{}"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_nothing_is_passed_over(broken: Create | Set) -> None:
    state = rich_state()
    state.write(broken)
    with pytest.raises(UnmovableStateError, match=f"{broken.path} is not understood"):
        moved(state)


def test_moves_under_way_are_refused() -> None:
    state = OldState()
    assignment = ReplicaAssignment((2, 1), adding=(2,), removing=(1,))
    state.topic("t", topic_id(1), {0: [1]})
    state.write(
        Set(znodes.topic_path("t"), znodes.encode_topic(TopicAssignment(topic_id(1), {0: assignment}))),
        Create(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignments([("u", 3, [1])])),
    )
    with pytest.raises(UnmovableStateError, match=r"replicas are being moved \(t-0, u-3\)"):
        moved(state, broker_id=None)


def test_deletions_of_several_brokers_are_refused() -> None:
    """A broker that has a replica has to delete it, and does not run."""
    state = rich_state()
    state.write(Create(znodes.delete_topic_path("orders")))
    with pytest.raises(UnmovableStateError, match=r"topics are being deleted \(orders\)"):
        moved(state, broker_id=None)


def test_each_partition_is_asked_for_its_directory() -> None:
    asked: list[TopicPartition] = []

    def directory_of(partition: TopicPartition) -> bytes:
        asked.append(partition)
        return DIRECTORY

    moved(rich_state(), directory_of=directory_of)
    assert asked == [("orders", 0), ("orders", 1), ("orders", 10), ("plain", 0)]
