"""Access rules in a cluster of a broker of Kafka 3.9 and one of Ottla: what either changes, the other goes by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.compat_tests.clusters import OttlaWithOneKafka
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.compat_tests.zookeeper import ZooKeeperProcess
from ottla.security.acl import Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest

pytestmark = pytest.mark.slow

PROPERTIES = {"authorizer.class.name": ACL_AUTHORIZER, "super.users": "User:ANONYMOUS"}
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperProcess) -> Iterator[list[Connection]]:
    """Connections to the broker of Ottla, and to that of Kafka."""
    cluster = OttlaWithOneKafka(
        tmp_path_factory.mktemp("acls"), 2, zookeeper=zookeeper_server, root="/mixed-acls", properties=PROPERTIES
    )
    try:
        cluster.start()
        connections = [Connection(cluster.broker(number).address) for number in (1, 2)]
        yield connections
        for connection in connections:
            connection.close()
    finally:
        cluster.close()


def create(connection: Connection, name: str, pattern_type: PatternType, operation: Operation) -> None:
    rule = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        resource_pattern_type=pattern_type,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )
    (result,) = connection.call(CreateAclsRequest(creations=[rule]), 3).results
    assert result.error_code == 0


def rules(connection: Connection) -> set[tuple[str, int, int]]:
    answer: Any = connection.call(DescribeAclsRequest(**EVERYTHING), 3)
    return {(r.resource_name, r.pattern_type, acl.operation) for r in answer.resources for acl in r.acls}


@pytest.mark.parametrize("first", [0, 1], ids=["ottla", "kafka"])
def test_what_one_kind_changes_the_other_goes_by(brokers: list[Connection], first: int) -> None:
    here, there = brokers[first], brokers[1 - first]
    read = ("literal", PatternType.LITERAL, Operation.READ)
    write = ("literal", PatternType.LITERAL, Operation.WRITE)
    prefixed = ("pre", PatternType.PREFIXED, Operation.ALTER_CONFIGS)
    create(here, *read)
    create(here, *prefixed)
    eventually(lambda: rules(there) == {read, prefixed})
    create(there, *write)
    eventually(lambda: rules(here) == {read, write, prefixed})
    (deleted,) = there.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), 3).filter_results
    assert len(deleted.matching_acls) == 3
    eventually(lambda: rules(here) == rules(there) == set())
