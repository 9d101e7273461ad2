"""What a cluster of Apache Kafka 4.3.1 wrote, batch by batch, when brokers started, stopped and died."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.controller.quorum.active.reassignments import alter_reassignments
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from .helpers.world import World, directory, incarnation


def change(**fields: Any) -> dict[str, Any]:
    return {"is": "PartitionChange", "v": 2, "partition_id": 0, **fields}


def registration_change(world: World, version: int, broker_id: int, **fields: Any) -> dict[str, Any]:
    epoch = world.broker(broker_id).epoch
    return {"is": "BrokerRegistrationChange", "v": version, "broker_id": broker_id, "broker_epoch": epoch, **fields}


@pytest.fixture
def world() -> World:
    return World(min_insync_replicas=2)


def test_the_first_leader_writes_what_formatting_left(world: World) -> None:
    assert [(type(record).__name__, version) for record, version in world.log.batches[0]] == [
        ("BeginTransactionRecord", 0),
        ("FeatureLevelRecord", 0),
        ("FeatureLevelRecord", 0),
        ("ConfigRecord", 0),
        ("EndTransactionRecord", 0),
    ]
    assert world.image.features is not None and world.image.features.levels == world.levels


def test_a_broker_starts(world: World) -> None:
    epoch = world.register(1)
    ((register,),) = world.taken()
    assert register | {"features": [], "end_points": []} == {
        "is": "RegisterBroker",
        "v": 4,
        "broker_id": 1,
        "broker_epoch": epoch,
        "incarnation_id": incarnation(1),
        "rack": None,
        "log_dirs": [directory(1)],
        "features": [],
        "end_points": [],
    }
    assert epoch == world.log.next_offset - 1

    world.heartbeat(1, want_fence=True, current_metadata_offset=epoch - 1, cordoned_log_dirs=None)
    assert world.taken() == []
    assert world.heartbeat(1, want_fence=True).is_caught_up
    assert world.taken() == [[registration_change(world, 3, 1, cordoned_log_dirs=[])]]
    assert not world.heartbeat(1).is_fenced
    assert world.taken() == [[registration_change(world, 0, 1, fenced=-1)]]


def test_a_topic_is_one_batch(world: World) -> None:
    world.start(1, 2)
    world.taken()
    world.topic("t", (1, 2), (2, 1), min_insync_replicas="2")
    (batch,) = world.taken()
    assert [record["is"] for record in batch] == ["Topic", "Config", "Partition", "Partition"]
    assert batch[2] == {
        "is": "Partition",
        "v": 2,
        "partition_id": 0,
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [directory(1), directory(2)],
    }


def test_a_reassignment(world: World) -> None:
    world.start(1, 2, 3)
    world.topic("t", (1, 2))
    world.taken()
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[3, 2])])]
    )
    world.do(lambda context: alter_reassignments(context, request))
    directories = [directory(3), directory(2), directory(1)]
    moving = change(replicas=[3, 2, 1], adding_replicas=[3], removing_replicas=[1], directories=directories)
    assert world.taken() == [[moving]]
    assert world.propose("t", 1, 2, 3).error_code == 108
    ended = change(isr=[2, 3], leader=3, replicas=[3, 2], removing_replicas=[], adding_replicas=[])
    assert world.taken() == [[ended | {"directories": directories[:2]}]]


def test_a_leader_is_shut_down(world: World) -> None:
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    world.topic("u", (2, 1, 3))
    world.heartbeat(2)
    world.heartbeat(3)
    world.taken()
    assert not world.heartbeat(1, want_shut_down=True).should_shut_down
    assert world.taken() == [
        [
            registration_change(world, 1, 1, in_controlled_shutdown=1),
            change(isr=[2, 3], leader=2),
            change(isr=[2, 3]),
        ]
    ]
    began = world.log.next_offset - 1
    world.heartbeat(2, current_metadata_offset=began)
    assert not world.heartbeat(1, want_shut_down=True).should_shut_down, "broker 3 does not know yet"
    world.heartbeat(3, current_metadata_offset=began)
    assert world.taken() == []
    assert world.heartbeat(1, want_shut_down=True).should_shut_down
    assert world.taken() == [[registration_change(world, 0, 1, fenced=1)]]


def test_a_follower_is_shut_down_at_once(world: World) -> None:
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    world.taken()
    assert world.heartbeat(3, want_shut_down=True).should_shut_down
    assert world.taken() == [[change(isr=[1, 2]), registration_change(world, 0, 3, fenced=1)]]


def test_a_broker_that_is_killed_is_fenced_when_its_session_ends(world: World) -> None:
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    world.taken()
    world.kill(1)
    assert world.taken() == [[change(isr=[2, 3], leader=2), registration_change(world, 0, 1, fenced=1)]]


def test_eligible_leader_replicas_of_brokers_that_are_killed_one_by_one(world: World) -> None:
    world.start(2, 3, 4)
    world.topic("t", (2, 3, 4))
    world.taken()
    fenced = {each: registration_change(world, 0, each, fenced=1) for each in (2, 3, 4)}
    world.kill(3)
    assert world.taken() == [[change(isr=[2, 4]), fenced[3]]]
    world.kill(3, 4)
    assert world.taken() == [[change(isr=[2], eligible_leader_replicas=[4]), fenced[4]]]
    world.kill(2, 3, 4)
    gone = change(isr=[], leader=-1, eligible_leader_replicas=[2, 4], last_known_elr=[2])
    assert world.taken() == [[gone, fenced[2]]]

    world.register(4, life=2)
    ((left, register),) = world.taken()
    assert left == change(eligible_leader_replicas=[2])
    assert register["is"] == "RegisterBroker"
    world.heartbeat(4)
    assert world.taken() == [
        [
            registration_change(world, 0, 4, fenced=-1),
            registration_change(world, 3, 4, cordoned_log_dirs=[]),
        ]
    ]
    assert world.partition("t").leader == -1

    world.register(2, life=2)
    assert world.taken()[0][0] == change(eligible_leader_replicas=[])
    world.heartbeat(2)
    assert world.taken() == [
        [
            registration_change(world, 0, 2, fenced=-1),
            change(isr=[2], leader=2, leader_recovery_state=1, last_known_elr=[]),
            registration_change(world, 3, 2, cordoned_log_dirs=[]),
        ]
    ]
    world.propose("t", 2, 4, leader_recovery_state=0)
    assert world.taken() == [[change(isr=[2, 4], leader_recovery_state=0)]]


def test_one_of_the_eligible_leader_replicas_returns_after_a_clean_shutdown(world: World) -> None:
    world.start(2, 3)
    world.topic("t", (2, 3))
    assert world.heartbeat(3, want_shut_down=True).should_shut_down
    assert world.heartbeat(2, want_shut_down=True, current_metadata_offset=0).should_shut_down is False
    assert world.heartbeat(2, want_shut_down=True).should_shut_down
    assert (world.partition("t").isr, world.partition("t").elr) == ((), (2, 3))
    world.taken()
    world.register(3, life=2, previous_broker_epoch=world.broker(3).epoch)
    assert [record["is"] for record in world.taken()[0]] == ["RegisterBroker"]
    world.heartbeat(3)
    assert world.taken() == [
        [
            registration_change(world, 0, 3, fenced=-1),
            change(isr=[3], leader=3, eligible_leader_replicas=[2], last_known_elr=[]),
            registration_change(world, 3, 3, cordoned_log_dirs=[]),
        ]
    ]
