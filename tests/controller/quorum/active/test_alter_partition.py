"""Which in-sync replicas a leader may propose: the cases of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.alter_partition import alter_partition
from ottla.controller.quorum.active.context import OperationContext
from ottla.wire.messages.alter_partition import AlterPartitionRequest, PartitionData, TopicData

from .helpers.world import World


@pytest.fixture
def world() -> World:
    world = World(has_elr=False)
    world.start(0, 1, 2)
    world.topic("t", (0, 1, 2))
    world.taken()
    return world


def test_an_isr_shrinks_and_grows(world: World) -> None:
    shrunk = world.propose("t", 0, 1)
    assert (shrunk.error_code, shrunk.isr, shrunk.leader_id, shrunk.leader_epoch, shrunk.partition_epoch) == (
        0,
        [0, 1],
        0,
        0,
        1,
    )
    grown = world.propose("t", 0, 1, 2)
    assert (grown.error_code, grown.isr, grown.partition_epoch) == (0, [0, 1, 2], 2)
    assert [batch[0]["isr"] for batch in world.taken()] == [[0, 1], [0, 1, 2]]


def test_an_isr_that_is_so_already_is_no_change(world: World) -> None:
    assert world.propose("t", 0, 1, 2).partition_epoch == 0
    assert world.taken() == []


def test_the_epochs_of_members_come_with_version_3(world: World) -> None:
    assert world.propose("t", 0, 1, version=2).isr == [0, 1]
    assert world.propose("t", 0, 2, epochs={2: -1}).isr == [0, 2], "any epoch"


REFUSED: dict[str, tuple[tuple[int, ...], dict[str, Any], ErrorCode]] = {
    "an unknown partition": ((0, 1), {"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "a leader epoch ahead of the controller": ((0, 1), {"leader_epoch": 500}, ErrorCode.NOT_CONTROLLER),
    "a partition epoch ahead of the controller": ((0, 1), {"partition_epoch": 500}, ErrorCode.NOT_CONTROLLER),
    "a partition epoch ahead, a leader epoch behind": (
        (0, 1),
        {"partition_epoch": 500, "leader_epoch": 0},
        ErrorCode.NOT_CONTROLLER,
    ),
    "a leader epoch behind": ((0, 1), {"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
    "a leader epoch behind, of another broker": (
        (0, 1),
        {"leader_epoch": 0, "sender": 1},
        ErrorCode.FENCED_LEADER_EPOCH,
    ),
    "another broker": ((0, 1), {"sender": 1}, ErrorCode.INVALID_REQUEST),
    "another broker, a partition epoch behind": (
        (0, 1),
        {"sender": 1, "partition_epoch": 0},
        ErrorCode.INVALID_REQUEST,
    ),
    "a partition epoch behind": ((0, 1), {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
    "a partition epoch behind, no replica": ((0, 9), {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
    "no replica": ((0, 1, 3), {}, ErrorCode.INVALID_REQUEST),
    "a replica twice": ((0, 1, 1), {}, ErrorCode.INVALID_REQUEST),
    "without the leader": ((1, 2), {}, ErrorCode.INVALID_REQUEST),
    "nobody": ((), {}, ErrorCode.INVALID_REQUEST),
    "recovering, and not alone": ((0, 1), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    "recovering again": ((0,), {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
    "an unknown recovery state": ((0,), {"leader_recovery_state": 5}, ErrorCode.INVALID_REQUEST),
    "a member with another epoch": ((0, 1), {"epochs": {1: 2}}, ErrorCode.INELIGIBLE_REPLICA),
    "the leader with another epoch": ((0, 1), {"epochs": {0: 2}}, ErrorCode.INELIGIBLE_REPLICA),
}


@pytest.mark.parametrize(("isr", "others", "error"), REFUSED.values(), ids=REFUSED)
def test_a_proposal_that_is_refused(
    world: World, isr: tuple[int, ...], others: dict[str, Any], error: ErrorCode
) -> None:
    world.heartbeat(0, want_fence=True)
    world.heartbeat(0)
    world.propose("t", 1, 2, 0)
    world.heartbeat(1, want_fence=True)
    world.heartbeat(1)
    world.heartbeat(2, want_fence=True)
    world.heartbeat(2)
    known = world.partition("t")
    assert (known.leader, known.leader_epoch, known.partition_epoch) == (0, 2, 4)
    world.taken()
    response = world.propose("t", *isr, **others)
    assert ErrorCode(response.error_code) is error
    assert response.isr == []
    assert world.taken() == []


@pytest.mark.parametrize("version", [2, 3])
def test_members_must_be_alive(world: World, version: int) -> None:
    world.heartbeat(1, want_fence=True)
    world.shut_down(2)
    for member in (1, 2):
        response = world.propose("t", 0, member, version=version)
        assert ErrorCode(response.error_code) is ErrorCode.INELIGIBLE_REPLICA
    world.heartbeat(1)
    assert world.propose("t", 0, 1, version=version).error_code == 0


def test_a_member_that_has_restarted_is_no_member(world: World) -> None:
    before = world.broker(1).epoch
    world.now_ms += world.settings.session_timeout_ms + 1
    world.heartbeat(0)
    world.register(1, life=2)
    world.heartbeat(1)
    response = world.propose("t", 0, 1, epochs={1: before})
    assert ErrorCode(response.error_code) is ErrorCode.INELIGIBLE_REPLICA
    assert world.propose("t", 0, 1).error_code == 0


@pytest.mark.parametrize("epoch", [-1, 500])
def test_the_sender_must_be_the_present_process(world: World, epoch: int) -> None:
    topic = TopicData(topic_id=world.image.topics["t"].topic_id, partitions=[])
    request = AlterPartitionRequest(broker_id=0, broker_epoch=epoch, topics=[topic])
    with pytest.raises(KafkaError) as refused:
        world.do(lambda context: alter_partition(context, request, 3))
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_an_unknown_topic(world: World) -> None:
    request = AlterPartitionRequest(
        broker_id=0,
        broker_epoch=world.broker(0).epoch,
        topics=[TopicData(topic_id=b"u" * 16, partitions=[PartitionData(partition_index=0)])],
    )
    response = world.do(lambda context: alter_partition(context, request, 3))
    assert response.topics[0].topic_id == b"u" * 16
    assert ErrorCode(response.topics[0].partitions[0].error_code) is ErrorCode.UNKNOWN_TOPIC_ID


# --- eligible leader replicas -----------------------------------------------------------------------------------------


@pytest.fixture
def with_elr() -> World:
    world = World()
    world.start(0, 1, 2, 3)
    world.topic("t", (0, 1, 2, 3))
    world.set_topic_config("t", "min.insync.replicas", "3")
    return world


def test_who_leaves_an_isr_below_the_minimum_is_eligible(with_elr: World) -> None:
    with_elr.propose("t", 0, 1)
    assert with_elr.partition("t").elr == (2, 3)
    with_elr.propose("t", 0)
    assert with_elr.partition("t").elr == (1, 2, 3)
    with_elr.propose("t", 0, 1, 2)
    assert with_elr.partition("t").elr == ()


def test_brokers_that_are_fenced(with_elr: World) -> None:
    with_elr.kill(2, 3)
    assert with_elr.partition("t").elr == (3,), "the first one left a full ISR"
    with_elr.kill(1, 2, 3)
    assert with_elr.partition("t").elr == (1, 3)
    for broker_id in (1, 2, 3):
        with_elr.heartbeat(broker_id)
    assert with_elr.partition("t").elr == (1, 3), "who is back has to catch up first"


def test_an_eligible_replica_is_elected(with_elr: World) -> None:
    with_elr.kill(1, 2, 3)
    assert (with_elr.partition("t").isr, with_elr.partition("t").elr) == ((0,), (2, 3))
    with_elr.heartbeat(2)
    with_elr.kill(0, 1, 3)
    partition = with_elr.partition("t")
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (2, (2,), (0, 3), ())
    assert not partition.is_recovering, "it has everything committed"


def test_an_unclean_shutdown_of_the_last_one(with_elr: World) -> None:
    with_elr.kill(1, 2, 3)
    with_elr.register(3, life=2)
    assert with_elr.partition("t").elr == (2,)
    with_elr.now_ms += with_elr.settings.session_timeout_ms + 1
    with_elr.register(0, life=2)
    partition = with_elr.partition("t")
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (-1, (), (2,), (0,))


@pytest.mark.parametrize(("config", "expected"), [("5", 4), ("4", 4), ("1", 1)])
def test_the_minimum_is_never_above_the_factor(with_elr: World, config: str, expected: int) -> None:
    with_elr.set_topic_config("t", "min.insync.replicas", config)
    context = OperationContext(with_elr.controller.state, with_elr.settings)
    assert context.min_isr(with_elr.image.topics["t"]) == expected


@pytest.mark.parametrize("broker", ["", "99"], ids=["all brokers", "this node"])
def test_the_minimum_of_all_topics(broker: str) -> None:
    world = World()
    world.start(0, 1)
    world.topic("t", (0, 1))
    world.set_broker_config(broker, "min.insync.replicas", "2")
    world.propose("t", 0)
    assert world.partition("t").elr == (1,)
