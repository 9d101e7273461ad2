"""What a controller's listener serves, as clients are told of it, and what it responds where a broker would do otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.handlers.controller.table import CONTROLLER_HANDLERS, SERVED_BY_CONTROLLERS
from ottla.handlers.table import Handler
from ottla.security.acl import Operation, PatternType, Permission, ResourceType
from ottla.tests.controller.quorum.active.helpers.controller_server import LEVELS
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import encode
from ottla.wire.error_codes import error_finder
from ottla.wire.messages import alter_partition_reassignments as reassignments
from ottla.wire.messages import begin_quorum_epoch as begin
from ottla.wire.messages import describe_quorum as quorum
from ottla.wire.messages import end_quorum_epoch as end
from ottla.wire.messages import fetch, vote
from ottla.wire.messages import fetch_snapshot as snapshots
from ottla.wire.messages import incremental_alter_configs as configs
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.registry import request_class
from ottla.wire.schema import Message

from .helpers.controller_world import CLUSTER_ID, HOST, PORT, running

KAFKA = {
    1: (4, 18),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    36: (0, 2),
    37: (0, 3),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    52: (0, 2),
    53: (0, 1),
    54: (0, 1),
    55: (0, 2),
    56: (2, 3),
    57: (0, 2),
    58: (0, 0),
    59: (0, 1),
    60: (0, 2),
    62: (0, 4),
    63: (0, 2),
    64: (0, 0),
    67: (0, 0),
    70: (0, 0),
    73: (0, 0),
    80: (0, 1),
    81: (0, 0),
    82: (0, 0),
}
"""The APIs of Apache Kafka 4.3.1 whose messages name the controller's listener, with their versions."""


async def test_what_clients_are_told(autojump_clock: MockClock) -> None:
    async with running({}, "PLAINTEXT") as world:
        client = world.plain_client()
        response = await client.send(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4)
        assert {each.api_key: (each.min_version, each.max_version) for each in response.api_keys} == {
            **KAFKA,
            int(ApiKey.API_VERSIONS): (0, 5),  # as brokers of Ottla have it
        }
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        assert levels == {**LEVELS, "kraft.version": 1}
        supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
        assert supported["metadata.version"] == (7, 30)
        assert supported["kraft.version"] == (0, 1)
        assert response.finalized_features_epoch == world.server.services.metadata.image.features.epoch
        client.close()


async def test_before_anything_is_committed_the_lowest_metadata_version_is_finalized(autojump_clock: MockClock) -> None:
    async with running({}, "PLAINTEXT", voters=3) as world:
        client = world.plain_client()
        response = await client.send(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 4)
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        assert levels == {"metadata.version": 7, "kraft.version": 1}
        assert response.finalized_features_epoch == -1
        client.close()


@pytest.mark.parametrize("handler", CONTROLLER_HANDLERS, ids=lambda handler: handler.api_key.name.lower())
def test_an_error_can_be_said_in_every_version(handler: Handler) -> None:
    for version in range(handler.lowest, handler.highest + 1):
        found = SERVED_BY_CONTROLLERS.find_route(handler.api_key << 16 | version).handler
        request = request_class(handler.api_key)()
        encode(found.refuse(version, request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")), version)


# --- DescribeCluster (KIP-919) ----------------------------------------------------------------------------------------


async def test_describe_cluster_names_the_controllers(autojump_clock: MockClock) -> None:
    async with running() as world:
        request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
        response = await world.ask("admin", request)
        assert (response.cluster_id, response.controller_id, response.endpoint_type) == (CLUSTER_ID, 1, 2)
        (controller,) = response.brokers
        assert (controller.broker_id, controller.host, controller.port) == (1, HOST, PORT)
        assert response.cluster_authorized_operations & 1 << Operation.ALTER


@pytest.mark.parametrize(
    ("endpoint_type", "version", "error"),
    [
        (1, 0, ErrorCode.INVALID_REQUEST),
        (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_describe_cluster_of_other_nodes(
    endpoint_type: int, version: int, error: ErrorCode, autojump_clock: MockClock
) -> None:
    async with running() as world:
        request = DescribeClusterRequest() if version == 0 else DescribeClusterRequest(endpoint_type=endpoint_type)
        assert (await world.ask("admin", request, version)).error_code == error


async def test_describe_cluster_takes_registrations_of_controllers(autojump_clock: MockClock) -> None:
    async with running({}, "PLAINTEXT", levels={"metadata.version": 14}, is_registered=False) as world:
        await world.quorum.active()
        await world.until(lambda: world.server.services.metadata.is_loaded)
        client = world.plain_client()
        response = await client.send(DescribeClusterRequest(endpoint_type=2), 2)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        client.close()


# --- what a controller decides before an operation ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=0),
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=-1),
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=0),
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])], timeout_ms=0),
        reassignments.AlterPartitionReassignmentsRequest(timeout_ms=0),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_a_request_whose_time_is_up_does_nothing(request_: Message, autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.add_broker()
        response = await world.ask("admin", request_)
        assert set(error_finder(type(response))(response)) == {ErrorCode.REQUEST_TIMED_OUT}
        assert "t" not in world.server.services.metadata.image.topics


@pytest.mark.parametrize(
    "request_",
    [
        CreateAclsRequest(creations=[AclCreation()]),
        DeleteAclsRequest(filters=[DeleteAclsFilter()]),
        DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_without_an_authorizer_there_are_no_rules(request_: Message, autojump_clock: MockClock) -> None:
    async with running({}, "PLAINTEXT") as world:
        client = world.plain_client()
        response = await client.send(request_, 3)
        assert set(error_finder(type(response))(response)) == {ErrorCode.SECURITY_DISABLED}
        client.close()


async def test_access_rules_are_told(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.grant("alice", Operation.READ, ResourceType.TOPIC, "t")
        any_ = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            principal_filter=None,
            host_filter=None,
            pattern_type_filter=PatternType.ANY,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        (resource,) = (await world.ask("admin", any_)).resources
        assert (resource.resource_name, [each.principal for each in resource.acls]) == ("t", ["User:alice"])


async def test_a_config_of_all_brokers_holds_for_the_controller(autojump_clock: MockClock) -> None:
    async with running() as world:
        change = configs.AlterableConfig(name="max.connections.per.ip", config_operation=0, value="77")
        resource = configs.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        (result,) = (await world.ask("admin", configs.IncrementalAlterConfigsRequest(resources=[resource]))).responses
        assert (result.error_code, result.error_message) == (0, None)
        asked = [
            DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=None) for name in ("", "1")
        ]
        of_all, own = (await world.ask("admin", DescribeConfigsRequest(resources=asked))).results
        assert {each.name: each.value for each in of_all.configs} == {"max.connections.per.ip": "77"}
        assert next(each.value for each in own.configs if each.name == "max.connections.per.ip") == "77"


async def test_a_change_of_nothing_has_no_error(autojump_clock: MockClock) -> None:
    async with running() as world:
        assert (await world.ask("admin", AlterClientQuotasRequest())).entries == []


# --- the older versions of what Raft responds to ------------------------------------------------------------------------

METADATA = "__cluster_metadata"
METADATA_ID = (1).to_bytes(16, "big")


def fetching(version: int) -> Message:
    asked = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = fetch.FetchTopic(topic=METADATA, partitions=[asked])
    if version >= 13:
        topic = fetch.FetchTopic(topic_id=METADATA_ID, partitions=[asked])
    return fetch.FetchRequest(topics=[topic], max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)


def voting(version: int) -> Message:
    asked = vote.PartitionData(replica_epoch=1, replica_id=2)
    return vote.VoteRequest(topics=[vote.TopicData(topic_name=METADATA, partitions=[asked])])


def beginning(version: int) -> Message:
    told = begin.PartitionData(leader_id=1, leader_epoch=1)
    return begin.BeginQuorumEpochRequest(topics=[begin.TopicData(topic_name=METADATA, partitions=[told])])


def ending(version: int) -> Message:
    told = end.PartitionData(leader_id=1, leader_epoch=0)
    return end.EndQuorumEpochRequest(topics=[end.TopicData(topic_name=METADATA, partitions=[told])])


def fetching_snapshot(version: int) -> Message:
    asked = snapshots.PartitionSnapshot(current_leader_epoch=1)
    return snapshots.FetchSnapshotRequest(topics=[snapshots.TopicSnapshot(name=METADATA, partitions=[asked])])


def describing(version: int) -> Message:
    topic = quorum.TopicData(topic_name=METADATA, partitions=[quorum.PartitionData()])
    return quorum.DescribeQuorumRequest(topics=[topic])


@pytest.mark.parametrize(
    "request_of", [fetching, voting, beginning, ending, fetching_snapshot, describing], ids=lambda each: each.__name__
)
async def test_raft_responds_in_every_version(request_of: Callable[[int], Message], autojump_clock: MockClock) -> None:
    """The response says as much as its version can: later ones have the leader's address, and more."""
    async with running({}, "PLAINTEXT") as world:
        client = world.plain_client()
        handler = SERVED_BY_CONTROLLERS.by_key[request_of(0).api_key]
        for version in range(handler.lowest, handler.highest + 1):
            response = await client.send(request_of(version), version)
            assert ErrorCode.UNKNOWN_SERVER_ERROR not in error_finder(type(response))(response)
        client.close()
