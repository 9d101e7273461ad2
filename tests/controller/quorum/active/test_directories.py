"""Log directories: where replicas are, and what fails with one: the cases of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.directories import assign_replicas
from ottla.metadata.types import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

from .helpers.world import World, directory

OFFLINE = b"offline-director"
Outcomes = dict[tuple[bytes, bytes, int], ErrorCode]


def assign(world: World, broker_id: int, *assigned: tuple[bytes, bytes, int]) -> Outcomes:
    """Each a directory, a topic's id and a partition."""
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=world.broker(broker_id).epoch,
        directories=[
            DirectoryData(
                id=each, topics=[TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=number)])]
            )
            for each, topic_id, number in assigned
        ],
    )
    response = world.do(lambda context: assign_replicas(context, request))
    return {
        (each.id, topic.topic_id, partition.partition_index): ErrorCode(partition.error_code)
        for each in response.directories
        for topic in each.topics
        for partition in topic.partitions
    }


def test_replicas_are_put_into_directories() -> None:
    world = World(has_elr=False)
    world.start(1, directories=2)
    world.start(2)
    a = world.topic("a", (1, 2), (1, 2), (1, 2))
    b = world.topic("b", (1, 2), (1, 2))
    c = world.topic("c", (2,))
    assert world.partition("a").directories == (UNASSIGNED_DIRECTORY, directory(2))
    world.taken()
    first, second = directory(1, 0), directory(1, 1)
    expected = {
        (first, a, 0): ErrorCode.NONE,
        (second, a, 1): ErrorCode.NONE,
        (OFFLINE, a, 2): ErrorCode.NONE,
        (first, b, 0): ErrorCode.NONE,
        (LOST_DIRECTORY, b, 1): ErrorCode.NONE,
        (second, b"u" * 16, 1): ErrorCode.UNKNOWN_TOPIC_ID,
        (first, a, 137): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (first, c, 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
    assert assign(world, 1, *expected) == expected
    (batch,) = world.taken()
    assert [record.get("directories", [0])[0] for record in batch] == [
        first,
        second,
        OFFLINE,
        first,
        LOST_DIRECTORY,
        0,
        0,
    ]
    assert [(record["isr"], record["leader"]) for record in batch[5:]] == [([2], 2)] * 2, "they lead no more"
    assert [world.partition("a", number).leader for number in range(3)] == [1, 1, 2]
    assert [world.partition("b", number).leader for number in range(2)] == [1, 2]
    assign(world, 1, (first, a, 0))
    assert world.taken() == [], "it was there already"


def test_before_log_directories() -> None:
    world = World("3.7-IV1", has_elr=False)
    with pytest.raises(KafkaError) as refused:
        world.do(lambda context: assign_replicas(context, AssignReplicasToDirsRequest()))
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_sender_must_be_the_present_process() -> None:
    world = World()
    world.start(1)
    with pytest.raises(KafkaError) as refused:
        request = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=1)
        world.do(lambda context: assign_replicas(context, request))
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_directory_fails() -> None:
    world = World(has_elr=False)
    world.start(1, 2, directories=2)
    ids = {name: world.topic(name, (1, 2), (1, 2)) for name in "ab"}
    for broker_id in (1, 2):
        assign(
            world,
            broker_id,
            *((directory(broker_id, number), topic_id, number) for topic_id in ids.values() for number in (0, 1)),
        )
    world.taken()
    failed = [directory(1, 0), directory(2, 0)]
    world.heartbeat(1, offline_log_dirs=failed)
    (batch,) = world.taken()
    assert [(record["partition_id"], record["isr"], record["leader"]) for record in batch[:2]] == [(0, [2], 2)] * 2
    assert batch[2] == {
        "is": "BrokerRegistrationChange",
        "v": 2,
        "broker_id": 1,
        "broker_epoch": world.broker(1).epoch,
        "log_dirs": [directory(1, 1)],
    }
    assert world.broker(1).directories == (directory(1, 1),)
    assert world.broker(2).directories == (directory(2, 0), directory(2, 1)), "it is not the sender's"
    world.heartbeat(1, offline_log_dirs=failed)
    assert world.taken() == [], "it is known by now"


def test_who_has_a_replica_in_a_failed_directory_is_not_elected() -> None:
    world = World(has_elr=False)
    world.start(1, directories=2)
    world.start(2)
    topic_id = world.topic("t", (1, 2))
    assign(world, 1, (directory(1, 0), topic_id, 0))
    world.heartbeat(1, offline_log_dirs=[directory(1, 0)])
    world.heartbeat(2, want_fence=True)
    assert world.partition("t").leader == -1, "broker 1 is alive, and its replica is not"
