"""Each API of a controller's listener with and without the rights that it needs (ControllerApis, ControllerApisTest)."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.handlers.controller.table import CONTROLLER_HANDLERS
from ottla.security.acl import SUPPORTED_OPERATIONS, Operation, ResourceType
from ottla.wire.api_keys import ApiKey
from ottla.wire.error_codes import error_finder
from ottla.wire.messages import alter_client_quotas as quotas
from ottla.wire.messages import alter_configs as legacy
from ottla.wire.messages import alter_user_scram_credentials as scram
from ottla.wire.messages import create_partitions as partitions
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.registry import request_class
from ottla.wire.schema import Message

from .helpers.controller_world import World, running

CLUSTER, TOPIC, GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
Op = Operation
NONE = ErrorCode.NONE
OF_CLUSTER, OF_TOPIC = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
OF_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED

BY_CLUSTER = {
    ApiKey.FETCH: Op.CLUSTER_ACTION,
    ApiKey.FETCH_SNAPSHOT: Op.CLUSTER_ACTION,
    ApiKey.VOTE: Op.CLUSTER_ACTION,
    ApiKey.BEGIN_QUORUM_EPOCH: Op.CLUSTER_ACTION,
    ApiKey.END_QUORUM_EPOCH: Op.CLUSTER_ACTION,
    ApiKey.UPDATE_RAFT_VOTER: Op.CLUSTER_ACTION,
    ApiKey.ADD_RAFT_VOTER: Op.ALTER,
    ApiKey.REMOVE_RAFT_VOTER: Op.ALTER,
    ApiKey.DESCRIBE_QUORUM: Op.DESCRIBE,
    ApiKey.ALTER_PARTITION: Op.CLUSTER_ACTION,
    ApiKey.BROKER_REGISTRATION: Op.CLUSTER_ACTION,
    ApiKey.BROKER_HEARTBEAT: Op.CLUSTER_ACTION,
    ApiKey.CONTROLLER_REGISTRATION: Op.CLUSTER_ACTION,
    ApiKey.ALLOCATE_PRODUCER_IDS: Op.CLUSTER_ACTION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: Op.CLUSTER_ACTION,
    ApiKey.ENVELOPE: Op.CLUSTER_ACTION,
    ApiKey.UNREGISTER_BROKER: Op.ALTER,
    ApiKey.ELECT_LEADERS: Op.ALTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Op.ALTER,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Op.DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Op.ALTER,
    ApiKey.ALTER_CLIENT_QUOTAS: Op.ALTER_CONFIGS,
    ApiKey.UPDATE_FEATURES: Op.ALTER,
    ApiKey.DESCRIBE_CLUSTER: Op.ALTER,
    ApiKey.DESCRIBE_ACLS: Op.DESCRIBE,
    ApiKey.CREATE_ACLS: Op.ALTER,
    ApiKey.DELETE_ACLS: Op.ALTER,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Op.DESCRIBE,
}
"""The right to the cluster that an API takes as a whole."""

REQUESTS: dict[ApiKey, Message] = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion(name="u", mechanism=1)]
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: quotas.AlterClientQuotasRequest(
        entries=[quotas.EntryData(entity=[quotas.EntityData(entity_type="user", entity_name="u")], ops=[])]
    ),
    ApiKey.CREATE_ACLS: CreateAclsRequest(creations=[AclCreation()]),
    ApiKey.DELETE_ACLS: DeleteAclsRequest(filters=[DeleteAclsFilter()]),
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterRequest(endpoint_type=2),
}
"""Where a request without any entry has no error either."""

BY_RESOURCE = {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
FOR_ALL = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
}


def test_each_api_is_in_one_of_the_tables() -> None:
    assert {handler.api_key for handler in CONTROLLER_HANDLERS} == BY_CLUSTER.keys() | BY_RESOURCE | FOR_ALL


def errors(response: Message) -> set[int]:
    return {code for code in error_finder(type(response))(response) if code}


@pytest.mark.parametrize("api", BY_CLUSTER, ids=lambda api: api.name.lower())
async def test_a_right_to_the_cluster(api: ApiKey, autojump_clock: MockClock) -> None:
    """Any other one does not do."""
    request = REQUESTS.get(api) or request_class(api)()
    async with running() as world:
        wanted = BY_CLUSTER[api]
        for operation in SUPPORTED_OPERATIONS[CLUSTER]:
            if operation is not wanted and (operation, wanted) != (Op.ALTER, Op.DESCRIBE):  # the one implies the other
                await world.grant("alice", operation)
        assert errors(await world.ask("alice", request)) == {OF_CLUSTER}
        await world.grant("alice", wanted)
        assert OF_CLUSTER not in errors(await world.ask("alice", request))


# --- topics -----------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The error of a topic, and that of its configs where it was made."""

    error: ErrorCode
    of_configs: ErrorCode = NONE


@pytest.mark.parametrize(
    ("grants", "of_own", "of_other"),
    [
        ([], OF_TOPIC, OF_TOPIC),
        ([(Op.CREATE, TOPIC, "own")], Outcome(NONE, OF_TOPIC), OF_TOPIC),
        ([(Op.CREATE, TOPIC, "own"), (Op.DESCRIBE_CONFIGS, TOPIC, "own")], Outcome(NONE), OF_TOPIC),
        ([(Op.CREATE, CLUSTER, "kafka-cluster")], Outcome(NONE, OF_TOPIC), Outcome(NONE, OF_TOPIC)),
        (
            [(Op.CREATE, CLUSTER, "kafka-cluster"), (Op.DESCRIBE_CONFIGS, TOPIC, "other")],
            Outcome(NONE, OF_TOPIC),
            Outcome(NONE),
        ),
        ([(Op.DESCRIBE_CONFIGS, TOPIC, "own"), (Op.ALTER, CLUSTER, "kafka-cluster")], OF_TOPIC, OF_TOPIC),
    ],
    ids=["nothing", "create one", "and describe it", "create any", "and describe one", "others"],
)
async def test_create_topics(
    grants: list[tuple[Op, ResourceType, str]],
    of_own: Outcome | ErrorCode,
    of_other: Outcome | ErrorCode,
    autojump_clock: MockClock,
) -> None:
    async with running() as world:
        await world.add_broker()
        for operation, kind, name in grants:
            await world.grant("alice", operation, kind, name)
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("own", "other")]
        response = await world.ask("alice", CreateTopicsRequest(topics=topics, timeout_ms=1000))
        seen = {
            each.name: Outcome(ErrorCode(each.error_code), ErrorCode(each.topic_config_error_code))
            for each in response.topics
        }
        wanted = {"own": of_own, "other": of_other}
        assert seen == {name: Outcome(each) if isinstance(each, ErrorCode) else each for name, each in wanted.items()}
        for each in response.topics:  # the numbers are only for who may see the configs
            assert (each.num_partitions == 1) == (seen[each.name] == Outcome(NONE))


@pytest.mark.parametrize(
    ("grants", "by_name", "by_id", "is_named"),
    [
        ([], OF_TOPIC, OF_TOPIC, False),
        ([(Op.DESCRIBE, TOPIC, "t")], OF_TOPIC, OF_TOPIC, True),
        ([(Op.DELETE, TOPIC, "t")], NONE, NONE, True),
        ([(Op.DELETE, CLUSTER, "kafka-cluster")], NONE, NONE, True),
        ([(Op.ALTER, CLUSTER, "kafka-cluster"), (Op.ALTER, TOPIC, "t")], OF_TOPIC, OF_TOPIC, True),
    ],
    ids=["nothing", "describe", "delete", "delete on the cluster", "alter"],
)
async def test_delete_topics(
    grants: list[tuple[Op, ResourceType, str]],
    by_name: ErrorCode,
    by_id: ErrorCode,
    is_named: bool,
    autojump_clock: MockClock,
) -> None:
    """Who may not even describe a topic is not told its name, nor whether there is one of a name."""
    for named, wanted in ((True, by_name), (False, by_id)):
        async with running() as world:
            await world.add_broker()
            ids = await world.create("t")
            for operation, kind, name in grants:
                await world.grant("alice", operation, kind, name)
            state = DeleteTopicState(name="t") if named else DeleteTopicState(name=None, topic_id=ids["t"])
            (result,) = (await world.ask("alice", DeleteTopicsRequest(topics=[state], timeout_ms=1000))).responses
            assert result.error_code == wanted
            assert (result.name == "t") == (named or is_named)
            absent = DeleteTopicsRequest(topics=[DeleteTopicState(name="none")], timeout_ms=1000)
            (result,) = (await world.ask("alice", absent)).responses
            may_all = (Op.DELETE, CLUSTER, "kafka-cluster") in grants
            assert result.error_code == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if may_all else OF_TOPIC)


async def test_create_partitions(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.add_broker()
        await world.create("own", "other")
        await world.grant("alice", Op.ALTER, TOPIC, "own")
        topics = [partitions.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("own", "other")]
        response = await world.ask("alice", partitions.CreatePartitionsRequest(topics=topics, timeout_ms=1000))
        assert {each.name: each.error_code for each in response.results} == {"own": NONE, "other": OF_TOPIC}


# --- settings ---------------------------------------------------------------------------------------------------------

RESOURCES = {
    "topic": (2, "t"),
    "broker": (4, "11"),
    "logger": (8, "1"),
    "client metrics": (16, "m"),
    "group": (32, "g"),
}
REFUSED = {
    "topic": OF_TOPIC,
    "broker": OF_CLUSTER,
    "logger": OF_CLUSTER,
    "client metrics": OF_CLUSTER,
    "group": OF_GROUP,
}


def incremental_request() -> Message:
    resources = [
        incremental.AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in RESOURCES.values()
    ]
    return incremental.IncrementalAlterConfigsRequest(resources=resources)


def legacy_request() -> Message:
    resources = [
        legacy.AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in RESOURCES.values()
    ]
    return legacy.AlterConfigsRequest(resources=resources)


async def outcome(world: World, request: Message) -> dict[str, int]:
    """By resource, the error if it is a refusal, else None."""
    names = {resource: name for name, resource in RESOURCES.items()}
    response = await world.ask("alice", request)
    return {names[each.resource_type, each.resource_name]: each.error_code for each in response.responses}


@pytest.mark.parametrize(
    ("operation", "kind", "name", "opened"),
    [
        (Op.ALTER_CONFIGS, TOPIC, "t", {"topic"}),
        (Op.ALTER_CONFIGS, GROUP, "g", {"group"}),
        (Op.ALTER_CONFIGS, CLUSTER, "kafka-cluster", {"broker", "client metrics"}),
        (Op.CLUSTER_ACTION, CLUSTER, "kafka-cluster", {"logger"}),
        (Op.ALTER, CLUSTER, "kafka-cluster", set()),
    ],
    ids=["topic", "group", "cluster", "cluster action", "alter the cluster"],
)
async def test_incremental_alter_configs(
    operation: Op, kind: ResourceType, name: str, opened: set[str], autojump_clock: MockClock
) -> None:
    async with running() as world:
        assert await outcome(world, incremental_request()) == REFUSED
        await world.grant("alice", operation, kind, name)
        seen = await outcome(world, incremental_request())
        assert {each for each in REFUSED if seen[each] != REFUSED[each]} == opened


async def test_alter_configs(autojump_clock: MockClock) -> None:
    """It is not for loggers."""
    async with running() as world:
        assert await outcome(world, legacy_request()) == {**REFUSED, "logger": ErrorCode.INVALID_REQUEST}
        await world.grant("alice", Op.ALTER_CONFIGS, TOPIC, "t")
        seen = await outcome(world, legacy_request())
        assert {each for each in REFUSED if seen[each] == REFUSED[each]} == {"broker", "client metrics", "group"}


async def test_describe_configs(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.add_broker()
        await world.create("t")
        resources = [
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in ((2, "t"), (4, "1"), (4, "11"))
        ]
        request = DescribeConfigsRequest(resources=resources)
        seen = (await world.ask("alice", request)).results
        assert [each.error_code for each in seen] == [OF_TOPIC, OF_CLUSTER, OF_CLUSTER]
        await world.grant("alice", Op.DESCRIBE_CONFIGS)
        await world.grant("alice", Op.DESCRIBE_CONFIGS, TOPIC, "t")
        topic, own, other = (await world.ask("alice", request)).results
        assert {"retention.ms", "cleanup.policy"} <= {each.name for each in topic.configs}
        assert "super.users" in {each.name for each in own.configs}
        assert (other.error_code, other.configs) == (ErrorCode.INVALID_REQUEST, [])
