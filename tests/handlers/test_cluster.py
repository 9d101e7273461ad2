"""DescribeCluster, DescribeLogDirs and the ACL requests, at every version.

Of the list of what other brokers got wrong, here are: a live controller id, a cluster id that is never null, ACL elements
of type UNKNOWN. Names in ACLs are not checked, since there is no authorizer to keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult

from ..helpers.zookeeper_broker import QUORUM, on_both_kinds

__all__ = ["on_both_kinds"]

Send = Callable[..., Any]


@pytest.mark.parametrize("version", range(3))
def test_the_cluster(send: Send, broker: ottla.Broker, version: int) -> None:
    response = send(DescribeClusterRequest(), version)
    host, port = broker.bootstrap_servers.split(":")
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == (broker.cluster_id, 1)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in response.brokers] == [
        (1, host, int(port), None, False)
    ]
    assert response.cluster_authorized_operations == -(1 << 31)
    asked = send(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert asked.cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize("version", [1, 2])
def test_this_is_no_endpoint_of_controllers(send: Send, version: int) -> None:
    response = send(DescribeClusterRequest(endpoint_type=2), version)
    assert (response.error_code, response.brokers) == (ErrorCode.MISMATCHED_ENDPOINT_TYPE, [])
    assert send(DescribeClusterRequest(endpoint_type=7), version).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def log_dir(send: Send, version: int, topics: list[DescribableLogDirTopic] | None) -> DescribeLogDirsResult:
    response = send(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    (result,) = response.results
    assert isinstance(result, DescribeLogDirsResult)
    return result


@pytest.mark.parametrize("version", range(1, 6))
def test_the_data_folder_and_its_partitions(send: Send, broker: ottla.Broker, version: int) -> None:
    send(CreateTopicsRequest(topics=[CreatableTopic(name="stored", num_partitions=3, replication_factor=1)]), 4)
    result = log_dir(send, version, None)
    assert (result.error_code, result.log_dir) == (0, str(broker.data_dir))
    (topic,) = [topic for topic in result.topics if topic.name == "stored"]
    assert [(p.partition_index, p.partition_size, p.offset_lag, p.is_future_key) for p in topic.partitions] == [
        (0, 0, 0, False),
        (1, 0, 0, False),
        (2, 0, 0, False),
    ]
    if version >= 4:
        assert result.total_bytes > result.usable_bytes > 0
    else:
        assert (result.total_bytes, result.usable_bytes) == (-1, -1)
    assert not result.is_cordoned


def test_partitions_asked_for(send: Send) -> None:
    send(CreateTopicsRequest(topics=[CreatableTopic(name="stored", num_partitions=3, replication_factor=1)]), 4)
    asked = [
        DescribableLogDirTopic(topic="stored", partitions=[1, 9]),
        DescribableLogDirTopic(topic="none", partitions=[0]),
    ]
    (topic,) = log_dir(send, 4, asked).topics
    assert (topic.name, [p.partition_index for p in topic.partitions]) == ("stored", [1])
    assert log_dir(send, 4, []).topics == []


ANY, UNKNOWN = 1, 0


@pytest.mark.parametrize("version", range(1, 4))
def test_acls_are_answered_one_by_one(send: Send, cluster_kind: str, version: int) -> None:
    described = send(
        DescribeAclsRequest(resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY),
        version,
    )
    assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
    rule = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
    created = send(CreateAclsRequest(creations=[rule, rule]), version)
    assert [r.error_code for r in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    asked = DeleteAclsFilter(resource_type_filter=2, operation=ANY, permission_type=ANY)
    deleted = send(DeleteAclsRequest(filters=[asked]), version)
    assert [(r.error_code, r.matching_acls) for r in deleted.filter_results] == [(ErrorCode.SECURITY_DISABLED, [])]
    assert described.error_message == "No Authorizer is configured on the broker"
    by_whom = "." if cluster_kind == QUORUM else " on the broker"
    for message in (created.results[0].error_message, deleted.filter_results[0].error_message):
        assert message == f"No Authorizer is configured{by_whom}"


def test_elements_nobody_knows_are_refused(send: Send, cluster_kind: str) -> None:
    """A controller looks first whether there is an authorizer."""
    described = send(
        DescribeAclsRequest(resource_type_filter=UNKNOWN, pattern_type_filter=ANY, operation=ANY, permission_type=ANY),
        3,
    )
    assert described.error_code == ErrorCode.INVALID_REQUEST
    rule = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=0, permission_type=3)
    refusal = ErrorCode.SECURITY_DISABLED if cluster_kind == QUORUM else ErrorCode.INVALID_REQUEST
    assert send(CreateAclsRequest(creations=[rule]), 3).results[0].error_code == refusal
    asked = DeleteAclsFilter(resource_type_filter=2, operation=ANY, permission_type=UNKNOWN)
    assert send(DeleteAclsRequest(filters=[asked]), 3).filter_results[0].error_code == refusal
