"""Leaders are elected on request and from time to time: the cases of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

from .helpers.world import World

PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
NO_PREFERRED = (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
NOBODY = (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")
DONE = (ErrorCode.NONE, None)

Outcome = tuple[ErrorCode, str | None]


def elect(world: World, election: int, partitions: dict[str, list[int]] | None) -> dict[tuple[str, int], Outcome]:
    named = None
    if partitions is not None:
        named = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in partitions.items()]
    request = ElectLeadersRequest(election_type=election, topic_partitions=named)
    response = world.do(lambda context: elect_leaders(context, request))
    return {
        (topic.topic, result.partition_id): (ErrorCode(result.error_code), result.error_message or None)
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def changes(world: World) -> list[dict[str, object]]:
    return [
        {key: value for key, value in record.items() if key not in ("is", "v")}
        for batch in world.taken()
        for record in batch
    ]


@pytest.fixture
def world() -> World:
    world = World(has_elr=False)
    world.start(0, 1, 2, 3, 4)
    return world


@pytest.mark.parametrize("names_all", [False, True], ids=["named", "all"])
def test_unclean_elections(world: World, names_all: bool) -> None:
    world.topic("t", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    world.kill(2, 3)
    world.kill(1, 2, 3)
    assert [(world.partition("t", n).leader, world.partition("t", n).isr) for n in range(3)] == [
        (-1, (1,)),
        (4, (4,)),
        (0, (0,)),
    ]
    world.taken()
    wanted = None if names_all else {"t": [0, 1, 2]}
    not_needed = {} if names_all else {("t", 1): NOT_NEEDED, ("t", 2): NOT_NEEDED}
    assert elect(world, UNCLEAN, wanted) == {("t", 0): NOBODY, **not_needed}
    assert world.taken() == []

    world.heartbeat(2)
    world.propose("t", 2, 4, number=1)
    world.taken()
    assert elect(world, UNCLEAN, wanted) == {("t", 0): DONE, **not_needed}
    assert changes(world) == [{"partition_id": 0, "isr": [2], "leader": 2, "leader_recovery_state": 1}]
    assert world.partition("t", 1).leader == 4, "the preferred one is not what was asked for"


def test_a_preferred_election_is_never_unclean(world: World) -> None:
    world.topic("t", (1, 2, 3))
    world.kill(2, 3)
    world.kill(1, 2, 3)
    world.heartbeat(2)
    world.set_topic_config("t", "unclean.leader.election.enable", "true")
    world.taken()
    assert elect(world, PREFERRED, {"t": [0]}) == {("t", 0): NO_PREFERRED}
    assert world.taken() == []


def test_preferred_elections() -> None:
    world = World(has_elr=False)
    world.start(1, 2, 3, 4)
    world.register(0)
    world.shut_down(1)
    world.topic("t", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    world.taken()
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as u")
    no_partition = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-9")
    others = {("t", 1): NOT_NEEDED, ("t", 9): no_partition, ("u", 0): unknown, ("u", 1): unknown}
    wanted = {"t": [0, 1, 2, 9], "u": [0, 1]}
    assert elect(world, PREFERRED, wanted) == {("t", 0): NO_PREFERRED, ("t", 2): NO_PREFERRED, **others}
    assert world.taken() == []

    world.now_ms += world.settings.session_timeout_ms + 1
    for broker_id in (2, 3, 4, 0):
        world.heartbeat(broker_id)
    world.register(1, life=2)
    world.heartbeat(1)
    world.propose("t", 1, 2, 3)
    world.propose("t", 0, 2, 1, number=2)
    world.taken()
    assert elect(world, PREFERRED, wanted) == {("t", 0): DONE, ("t", 2): DONE, **others}
    assert changes(world) == [{"partition_id": 0, "leader": 1}, {"partition_id": 2, "leader": 0}]


def test_an_unknown_election(world: World) -> None:
    with pytest.raises(KafkaError) as refused:
        elect(world, 7, None)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, "Unknown election type 7")


def test_preferred_leaders_lead_again_from_time_to_time() -> None:
    world = World(has_elr=False)
    world.start(2, 3, 4)
    world.register(0)
    world.register(1)
    world.topic("t", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    world.heartbeat(1)
    world.propose("t", 1, 2, 3)
    world.taken()
    assert world.do(balance_leaders) is False
    assert changes(world) == [{"partition_id": 0, "leader": 1}]
    assert list(world.controller.state.index.not_preferred) == [(world.image.topics["t"].topic_id, 2)]
    world.heartbeat(0)
    world.propose("t", 0, 2, 1, number=2)
    world.taken()
    world.do(balance_leaders)
    assert changes(world) == [{"partition_id": 2, "leader": 0}]
    assert not world.controller.state.index.not_preferred


def test_so_many_are_elected_in_a_turn(world: World) -> None:
    world.topic("t", *[(1, 2)] * 1_500)
    world.heartbeat(1, want_fence=True)
    world.heartbeat(1)
    for number in range(1_500):
        world.propose("t", 1, 2, number=number)
    world.taken()
    world.now_ms = 300_000
    for broker_id in range(5):
        world.heartbeat(broker_id)
    assert world.controller.tick(300_000) == 300_010, "the rest follows at once"
    world.commit()
    assert len(changes(world)) == 1_000
    assert world.controller.tick(300_010) is not None
    world.commit()
    assert len(changes(world)) == 500
    assert all(partition.leader == 1 for partition in world.image.topics["t"].partitions.values())


@pytest.mark.parametrize("setting", ["none", "static", "all brokers", "this node", "topic"])
def test_unclean_leaders_where_that_is_allowed(setting: str) -> None:
    world = World(has_elr=False, unclean_leader_election=setting == "static")
    world.start(0, 1, 2, 3, 4)
    world.topic("t", (1, 2, 4), (1, 3, 4), (0, 2, 4))
    for broker_id in range(5):
        world.heartbeat(broker_id, want_fence=True)
    assert [(world.partition("t", n).leader, world.partition("t", n).isr) for n in range(3)] == [(-1, (4,))] * 3
    world.heartbeat(2)
    elected = [(2, (2,)), (-1, (4,)), (2, (2,))]
    assert [(world.partition("t", n).leader, world.partition("t", n).isr) for n in range(3)] == (
        elected if setting == "static" else [(-1, (4,))] * 3
    )
    if setting == "topic":
        world.set_topic_config("t", "unclean.leader.election.enable", "true")
    elif setting in ("all brokers", "this node"):
        world.set_broker_config("" if setting == "all brokers" else "99", "unclean.leader.election.enable", "true")
    world.taken()
    assert world.do(elect_unclean_leaders) is False
    assert len(changes(world)) == (0 if setting in ("none", "static") else 2)
    assert [(world.partition("t", n).leader, world.partition("t", n).isr) for n in range(3)] == (
        [(-1, (4,))] * 3 if setting == "none" else elected
    )


def test_several_brokers_are_fenced(world: World) -> None:
    world.topic("t", (1, 2, 3), (2, 3, 4), (0, 2, 1))
    world.kill(2, 3)
    found = [(world.partition("t", n).leader, world.partition("t", n).isr) for n in range(3)]
    assert found == [(1, (1,)), (4, (4,)), (0, (0, 1))]
    assert not world.controller.state.index.has_leaderships(2)
