"""Topics are created, deleted and get more partitions: the cases of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.quorum.active.context import OperationContext
from ottla.controller.quorum.active.new_partitions import check_replicas
from ottla.controller.quorum.active.topic_deletions import DeletionRights
from ottla.metadata.types import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from ottla.security.entities import TOPICS, Entity
from ottla.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.schema import ZERO_UUID

from .helpers.world import World, assigned_topic, counted_topic, directory

ALL_FENCED = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.fixture
def world() -> World:
    """0 to 2 are active, 3 is fenced, 4 shuts down."""
    world = World(default_replication_factor=3)
    world.start(0, 1, 2, 4)
    world.register(3)
    world.shut_down(4)
    world.topic("taken", (0,))
    world.topic("a.b_c", (0,))
    world.taken()
    return world


def numbered(*assignments: tuple[int, list[int]], count: int = -1, factor: int = -1) -> CreatableTopic:
    return CreatableTopic(
        name="t",
        num_partitions=count,
        replication_factor=factor,
        assignments=[CreatableReplicaAssignment(partition_index=number, broker_ids=ids) for number, ids in assignments],
    )


REFUSED: dict[str, tuple[CreatableTopic, ErrorCode, str]] = {
    "it is there": (counted_topic("taken"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'taken' already exists."),
    "it is there, with a dot": (
        counted_topic("a.b_c"),
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'a.b_c' already exists.",
    ),
    "a name like another": (
        counted_topic("a_b.c"),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b.c' collides with existing topic: a.b_c",
    ),
    "no name": (
        counted_topic(""),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: the empty string is not allowed",
    ),
    "a dot": (counted_topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' is not allowed"),
    "configs without a value": (
        counted_topic("t", a=None, b="1", c=None),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: a,c",
    ),
    "no partitions": (
        counted_topic("t", 0),
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    "no replicas": (
        counted_topic("t", 1, 0),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    "neither": (
        counted_topic("t", -2, -2),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    "more replicas than brokers": (
        counted_topic("t", 1, 5),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        (
            "Unable to replicate the partition 5 time(s): The target replication factor of 5 cannot be reached because only "
            "4 broker(s) are registered or some brokers have all their log directories cordoned."
        ),
    ),
    "an assignment and a factor": (
        numbered((0, [0]), factor=1),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    "an assignment and a number": (
        numbered((0, [0]), count=1),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    "a partition twice": (
        numbered((0, [0]), (0, [1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Found multiple manual partition assignments for partition 0",
    ),
    "partitions with holes": (
        numbered((0, [0]), (2, [1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    "an unknown broker": (
        numbered((0, [0, 9])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    "different factors": (
        numbered((0, [0, 1]), (1, [0])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with previous "
            "partitions, which have 2 replica(s)."
        ),
    ),
    "no active broker": (
        numbered((0, [3, 4])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown.",
    ),
}


@pytest.mark.parametrize(("topic", "code", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("validate_only", [False, True], ids=["", "validate only"])
def test_a_topic_that_is_refused(
    world: World, topic: CreatableTopic, code: ErrorCode, message: str, validate_only: bool
) -> None:
    request = CreateTopicsRequest(topics=[topic, counted_topic("other")], validate_only=validate_only)
    results = world.create(request)
    refused = results[topic.name]
    assert (ErrorCode(refused.error_code), refused.error_message) == (code, message)
    assert not results["other"].error_code, "the failure of one topic does not touch the others"
    assert ("other" in world.image.topics) is not validate_only
    assert topic.name not in world.image.topics or topic.name in ("taken", "a.b_c")
    assert world.charged[-1:] == [1], "only what is made is charged"


BAD_REPLICAS = {
    "none": ([], None, "The manual partition assignment includes an empty replica list."),
    "unknown": (
        [1, 2, 9],
        None,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
    "twice": ([1, 2, 2], None, "The manual partition assignment includes the broker 2 more than once."),
    "too few": (
        [1, 2],
        3,
        (
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with previous "
            "partitions, which have 3 replica(s)."
        ),
    ),
}


@pytest.mark.parametrize(("replicas", "factor", "message"), BAD_REPLICAS.values(), ids=BAD_REPLICAS)
def test_replicas_that_no_partition_can_have(
    world: World, replicas: list[int], factor: int | None, message: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        check_replicas(OperationContext(world.controller.state, world.settings), replicas, factor)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


@pytest.mark.parametrize(("replicas", "factor"), [([1], 1), ([1], None), ([1, 2, 3], 3), ([3, 1, 2], None)])
def test_replicas_that_are_good(world: World, replicas: list[int], factor: int | None) -> None:
    check_replicas(OperationContext(world.controller.state, world.settings), replicas, factor)


def test_no_broker_is_there_for_a_topic() -> None:
    world = World(default_replication_factor=3)
    results = world.create(CreateTopicsRequest(topics=[counted_topic("t")]))
    assert results["t"].error_message == f"Unable to replicate the partition 3 time(s): {ALL_FENCED}"
    world.start(0)
    world.shut_down(0)
    world.register(1)
    world.register(2)
    results = world.create(CreateTopicsRequest(topics=[counted_topic("t", 1, 1)]))
    assert ErrorCode(results["t"].error_code) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_isr_of_a_new_topic_is_what_is_active(world: World) -> None:
    world.topic("t", (4, 1, 3, 0))
    partition = world.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((4, 1, 3, 0), (1, 0), 1)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_replicas_are_placed_on_all_brokers_that_can_take_them(world: World) -> None:
    result = world.create(CreateTopicsRequest(topics=[counted_topic("t", 12, 4, k="v")]))["t"]
    assert (result.num_partitions, result.replication_factor) == (12, 4)
    assert [(config.name, config.value) for config in result.configs or []] == [("k", "v")]
    partitions = world.image.topics["t"].partitions
    assert list(partitions) == list(range(12))
    assert all(set(partition.replicas) == {0, 1, 2, 3} for partition in partitions.values()), "4 is shutting down"
    assert all(set(partition.isr) == {0, 1, 2} for partition in partitions.values()), "3 is fenced"
    assert {partition.leader for partition in partitions.values()} == {0, 1, 2}
    assert all(partition.leader == partition.replicas[0] for partition in partitions.values())
    assert world.image.configs[Entity(TOPICS, "t")] == {"k": "v"}


def test_who_may_not_see_configs_sees_no_numbers(world: World) -> None:
    result = world.create(
        CreateTopicsRequest(topics=[counted_topic("t", 2, 1, k="v")]), may_describe=lambda name: False
    )["t"]
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert ErrorCode(result.topic_config_error_code) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not result.error_code and len(world.image.topics["t"].partitions) == 2


def test_a_quota_and_a_config_can_refuse_a_topic(world: World) -> None:
    def charge(partitions: int) -> None:
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too much")

    def config_records(image: Any, topic: str, configs: Mapping[str, str]) -> Any:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "not this")

    request = CreateTopicsRequest(topics=[counted_topic("t", 1, 1, k="v")])
    for others, code in (
        ({"charge": charge}, ErrorCode.THROTTLING_QUOTA_EXCEEDED),
        ({"config_records": config_records, "charge": charge}, ErrorCode.INVALID_CONFIG),
    ):
        result = world.create(request, **others)["t"]
        assert ErrorCode(result.error_code) is code
    assert world.taken() == []


@pytest.mark.parametrize(
    "topics",
    [[counted_topic("t", 10_001, 1)], [counted_topic("t", 9_999, 1), counted_topic("u"), assigned_topic("v", (0,))]],
    ids=["one", "together"],
)
def test_too_many_partitions(world: World, topics: list[CreatableTopic]) -> None:
    with pytest.raises(KafkaError) as refused:
        world.create(CreateTopicsRequest(topics=topics))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert refused.value.message == "Excessively large number of partitions per request."
    assert world.taken() == []


def by_id(*topic_ids: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id) for topic_id in topic_ids])


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])


def test_topics_are_deleted(world: World) -> None:
    known = world.topic("t", (0,), (1,))
    unknown, deleted = world.delete(by_id(known, b"u" * 16))
    assert (unknown.name, ErrorCode(unknown.error_code)) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("t", known, 0)
    assert world.taken()[-1] == [{"is": "RemoveTopic", "v": 0}]
    assert "t" not in world.image.topics and known not in world.image.topics_by_id
    assert world.charged[-1] == 2
    index = world.controller.state.index
    lookups = (index.isr_members, index.leaders, index.directories)
    assert not [key for lookup in lookups for keys in lookup.values() for key in keys if key[0] == known]


def test_a_deleted_topic_can_be_made_again_under_a_name_like_it(world: World) -> None:
    topic_id = world.image.topics["a.b_c"].topic_id
    world.delete(by_name("a.b_c"))
    assert world.topic("a_b_c", (0,)) != topic_id


def test_a_quota_can_refuse_a_deletion(world: World) -> None:
    def charge(partitions: int) -> None:
        raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "too much")

    (refused,) = world.delete(by_name("taken"), charge=charge)
    assert ErrorCode(refused.error_code) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert world.taken() == []


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_may_be_turned_off(world: World, version: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        world.delete(by_name("taken"), version, is_enabled=False)
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("is_described", "by_its_name", "name"), [(False, False, None), (True, False, "taken"), (False, True, "taken")]
)
def test_who_may_not_see_a_topic_learns_nothing_of_its_id(
    world: World, is_described: bool, by_its_name: bool, name: str | None
) -> None:
    topic_id = world.image.topics["taken"].topic_id
    rights = DeletionRights(lambda topic: is_described, lambda topic: False)
    (refused,) = world.delete(by_name("taken") if by_its_name else by_id(topic_id), rights=rights)
    assert ErrorCode(refused.error_code) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (refused.name, refused.topic_id) == (name, ZERO_UUID if by_its_name else topic_id)
    assert "taken" in world.image.topics


def test_who_may_not_make_or_alter_a_topic(world: World) -> None:
    def may_not(name: str) -> bool:
        return False

    result = world.create(CreateTopicsRequest(topics=[counted_topic("t", 1, 1)]), may_create=may_not)["t"]
    assert (ErrorCode(result.error_code), result.error_message) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "Authorization failed.",
    )
    (refused,) = world.add_partitions(more("taken", 2), may_alter=may_not)
    assert ErrorCode(refused.error_code) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert world.taken() == []


# --- more partitions --------------------------------------------------------------------------------------------------


def more(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=[CreatePartitionsAssignment(broker_ids=ids) for ids in assignments] if assignments else None,
    )


@pytest.fixture
def old_and_new() -> World:
    """0 is from before log directories, 1 has two and 3 one."""
    world = World("4.3-IV0", has_elr=False)
    world.start(1, directories=2)
    world.start(3)
    world.register(2)
    world.topic("t", (1, 3), (3, 1))
    world.topic("taken", (1, 3))
    world.taken()
    return world


MORE: dict[str, tuple[CreatePartitionsTopic, ErrorCode, str | None]] = {
    "less": (
        more("t", 1),
        ErrorCode.INVALID_PARTITIONS,
        "The topic t currently has 2 partition(s); 1 would not be an increase.",
    ),
    "as many": (more("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
    "unknown": (more("u", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    "too few assignments": (
        more("t", 4, [1, 3]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
    ),
    "another factor": (
        more("t", 3, [1]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with previous "
            "partitions, which have 2 replica(s)."
        ),
    ),
    "an unknown broker": (
        more("t", 3, [1, 9]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 9, but no such broker is registered.",
    ),
}


@pytest.mark.parametrize(("wanted", "code", "message"), MORE.values(), ids=MORE)
def test_partitions_that_are_not_added(
    old_and_new: World, wanted: CreatePartitionsTopic, code: ErrorCode, message: str | None
) -> None:
    world = old_and_new
    (result,) = world.add_partitions(wanted)
    assert (ErrorCode(result.error_code), result.error_message) == (code, message)
    assert world.taken() == []


def test_partitions_are_added(old_and_new: World) -> None:
    world = old_and_new
    assert [result.error_code for result in world.add_partitions(more("t", 4), more("u", 1))] == [0, 3]
    assert world.charged[-1] == 2
    assert list(world.image.topics["t"].partitions) == [0, 1, 2, 3]
    world.add_partitions(more("t", 5, [1, 3]))
    assert world.partition("t", 4).directories == (UNASSIGNED_DIRECTORY, directory(3))
    world.add_partitions(more("t", 6, [2, 3]))
    assert (world.partition("t", 5).isr, world.partition("t", 5).leader) == ((3,), 3), "2 is fenced"
    world.taken()
    assert [result.error_code for result in world.add_partitions(more("t", 7), validate_only=True)] == [0]
    assert world.taken() == []


def test_no_partition_is_added_where_nobody_could_lead_it(old_and_new: World) -> None:
    world = old_and_new
    world.kill(1, 3)
    (result,) = world.add_partitions(more("t", 3, [1, 3]))
    assert result.error_message == (
        "All brokers specified in the manual partition assignment for partition 2 are fenced or in controlled shutdown."
    )
    (result,) = world.add_partitions(more("t", 3))
    assert (ErrorCode(result.error_code), result.error_message) == (ErrorCode.INVALID_REPLICATION_FACTOR, ALL_FENCED)


def test_too_many_partitions_are_not_added_in_part(old_and_new: World) -> None:
    with pytest.raises(KafkaError) as refused:
        old_and_new.add_partitions(more("t", 6_000), more("taken", 6_001))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert old_and_new.taken() == []


def test_without_log_directories_their_place_is_not_told() -> None:
    world = World("3.6-IV2", has_elr=False)
    world.start(1, log_dirs=[])
    world.topic("t", (1,))
    assert world.partition("t").directories == (MIGRATING_DIRECTORY,)
    assert {record["v"] for batch in world.taken() for record in batch if record["is"] == "Partition"} == {0}
