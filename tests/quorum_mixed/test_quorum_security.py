"""Access rules, SCRAM users, delegation tokens and users' quotas of a cluster of KRaft, at brokers of both kinds.

The controller is Apache Kafka's: what Ottla is asked to change it forwards with the client's principal.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.login import Refused
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, connect, topic_metadata
from ottla.security.acl import Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.security.scram import ScramMechanism
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.wire.schema import Message

from ..mixed.helpers.mixed import BOTH, KAFKA, OTTLA, PATIENCE_S
from ..mixed.test_mixed_acls import EVERYTHING, test_what_one_kind_changes_the_other_goes_by
from ..mixed.test_mixed_tokens import PROPERTIES as LISTENER
from ..mixed.test_mixed_tokens import check_token, of
from .helpers.on_quorum import QuorumMixed, running

__all__ = ["test_what_one_kind_changes_the_other_goes_by"]

pytestmark = pytest.mark.slow

PROPERTIES = {
    **LISTENER,
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "default.replication.factor": "1",
}
NOT_AUTHORIZED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumMixed]:
    """A node of Apache Kafka and a broker of Ottla, which know each other by SASL/PLAIN."""
    folder = tmp_path_factory.mktemp("quorum-secured")
    with running(folder, 1, 1, security=of("admin"), **PROPERTIES) as mixed:
        yield mixed


@pytest.fixture
def cluster(secured: QuorumMixed) -> Iterator[QuorumMixed]:
    """None of its brokers has logged an error when the test has ended."""
    yield secured
    assert secured.troubles() == []


def address(cluster: QuorumMixed, kind: str) -> str:
    return cluster.cluster.broker(cluster.one(kind)).address


@contextlib.contextmanager
def user(cluster: QuorumMixed, name: str, kind: str) -> Iterator[Connection]:
    """A connection of a user to the broker of a kind."""
    with connect(address(cluster, kind), security=of(name)) as connection:
        yield connection


@pytest.fixture
def brokers(cluster: QuorumMixed) -> Iterator[list[Connection]]:
    """Connections to the broker of Ottla, and to that of Kafka."""
    with user(cluster, "admin", OTTLA) as ours, user(cluster, "admin", KAFKA) as theirs:
        yield [ours, theirs]


def make_topic(connection: Connection, name: str, leader: int) -> int:
    """Create a topic with one replica; the error."""
    placed = [CreatableReplicaAssignment(partition_index=0, broker_ids=[leader])]
    new = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=placed)
    (result,) = connection.call(CreateTopicsRequest(topics=[new], timeout_ms=30_000), 7).topics
    error: int = result.error_code
    return error


def allow(connection: Connection, topic: str, operation: Operation, permission: Permission = Permission.ALLOW) -> None:
    rule = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=permission,
    )
    (result,) = connection.call(CreateAclsRequest(creations=[rule]), 3).results
    assert result.error_code == 0


def forget_rules(connection: Connection) -> None:
    (deleted,) = connection.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), 3).filter_results
    assert deleted.error_code == 0


def requests(topic: str) -> list[tuple[Message, int]]:
    """What a broker forwards, each with its version."""
    config = AlterableConfig(name="retention.ms", config_operation=0, value="1")
    entity = [EntityData(entity_type="user", entity_name="alice")]
    op = OpData(key="producer_byte_rate", value=1.0, remove=False)
    creation = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:alice",
        host="*",
        operation=Operation.ALL,
        permission_type=Permission.ALLOW,
    )
    moved = [ReassignablePartition(partition_index=0, replicas=[1])]
    metadata_log = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    deletion = ScramCredentialDeletion(name="alice", mechanism=1)
    update = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
    return [
        (CreateTopicsRequest(topics=[CreatableTopic(name=f"{topic}-new", num_partitions=1, replication_factor=1)]), 7),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=30_000), 6),
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic, count=9, assignments=None)]), 3),
        (
            IncrementalAlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])]
            ),
            1,
        ),
        (AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])]), 1),
        (CreateAclsRequest(creations=[creation]), 3),
        (DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), 3),
        (AlterUserScramCredentialsRequest(deletions=[deletion]), 0),
        (ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=topic, partitions=[0])], timeout_ms=30_000), 2),
        (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=moved)]), 0),
        (DescribeQuorumRequest(topics=[metadata_log]), 1),
        (UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000), 1),
    ]


def test_a_user_without_rights_is_denied_what_is_forwarded_for_him(cluster: QuorumMixed, topic: str) -> None:
    """In the same words by either kind."""
    with user(cluster, "admin", OTTLA) as admin:
        assert make_topic(admin, topic, cluster.one(OTTLA)) == 0
        eventually(lambda: topic_metadata(admin, topic).error_code == 0, PATIENCE_S)
    answers: dict[str, list[Any]] = {}
    for kind in BOTH:
        with user(cluster, "alice", kind) as alice:
            answers[kind] = [alice.call(*request) for request in requests(topic)]
    for (request, _), ours, theirs in zip(requests(topic), answers[OTTLA], answers[KAFKA], strict=True):
        assert in_words(ours) == in_words(theirs), request
        assert any(f"error_code={code.value}" in repr(ours) for code in NOT_AUTHORIZED), ours
    with user(cluster, "admin", KAFKA) as admin:
        assert topic_metadata(admin, topic).error_code == 0, "it is there"


def in_words(response: Any) -> str:
    """A response without the form in which Apache Kafka prints a request."""
    return re.sub(r"Request Request\(.*\) needs", "Request needs", repr(response))


@pytest.mark.parametrize("kind", BOTH)
def test_rules_that_one_kind_is_told_hold_at_the_other(cluster: QuorumMixed, kind: str, topic: str) -> None:
    other = next(each for each in BOTH if each != kind)
    with user(cluster, "admin", other) as admin, user(cluster, "alice", kind) as alice:
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert make_topic(alice, topic, cluster.one(kind)) == denied
        allow(admin, topic, Operation.CREATE)
        allow(admin, topic, Operation.DESCRIBE)
        eventually(lambda: make_topic(alice, topic, cluster.one(kind)) in (0, ErrorCode.TOPIC_ALREADY_EXISTS))
        eventually(lambda: topic_metadata(alice, topic).error_code == 0, PATIENCE_S)

        def written() -> int:
            (partition,) = alice.call(produce_request(topic, {0: batch(b"x")}), 9).responses[0].partition_responses
            error: int = partition.error_code
            return error

        def read() -> int:
            (partition,) = alice.call(fetch_request(topic, {0: 0}), 12).responses[0].partitions
            error: int = partition.error_code
            return error

        assert (written(), read()) == (denied, denied)
        allow(admin, topic, Operation.WRITE)
        allow(admin, topic, Operation.READ)
        eventually(lambda: (written(), read()) == (0, 0))
        allow(admin, topic, Operation.WRITE, Permission.DENY)
        eventually(lambda: (written(), read()) == (denied, 0))
        forget_rules(admin)
        eventually(lambda: (written(), read()) == (denied, denied))


def is_let_in(at: str, name: str, password: str, mechanism: str) -> bool:
    security = of(name)
    scram = type(security)("SASL_PLAINTEXT", mechanism, name, password)
    try:
        with connect(at, security=scram):
            return True
    except Refused:
        return False


@pytest.mark.parametrize("kind", BOTH)
def test_a_scram_user_that_one_kind_was_told_of_is_let_in_by_the_other(cluster: QuorumMixed, kind: str) -> None:
    name, mechanism, salt = f"carol-{kind}", ScramMechanism.SHA_256, os.urandom(16)

    def told(password: str) -> AlterUserScramCredentialsRequest:
        salted = mechanism.salted_password(password, salt, 4096)
        credential = ScramCredentialUpsertion(
            name=name, mechanism=1, iterations=4096, salt=salt, salted_password=salted
        )
        return AlterUserScramCredentialsRequest(upsertions=[credential])

    with user(cluster, "admin", kind) as admin:
        places = [address(cluster, each) for each in BOTH]
        for password in ("first", "second"):
            (result,) = admin.call(told(password), 0).results
            assert result.error_code == 0, result
            for at in places:
                eventually(lambda at=at, p=password: is_let_in(at, name, p, mechanism.sasl_name))
        deletion = ScramCredentialDeletion(name=name, mechanism=1)
        (result,) = admin.call(AlterUserScramCredentialsRequest(deletions=[deletion]), 0).results
        assert result.error_code == 0, result
        for at in places:
            eventually(lambda at=at: not is_let_in(at, name, "second", mechanism.sasl_name))


@pytest.mark.parametrize("first", BOTH)
def test_a_token_of_one_kind_is_used_at_the_other(cluster: QuorumMixed, first: str) -> None:
    other = next(each for each in BOTH if each != first)
    check_token([address(cluster, first), address(cluster, other)], lambda token: None)


@pytest.mark.parametrize("kind", BOTH)
def test_a_users_quota_that_one_kind_was_told_holds_at_the_other(cluster: QuorumMixed, kind: str, topic: str) -> None:
    other = next(each for each in BOTH if each != kind)
    entity = [EntityData(entity_type="user", entity_name="alice")]

    def set_rate(connection: Connection, rate: float | None) -> None:
        op = OpData(key="producer_byte_rate", value=rate or 0.0, remove=rate is None)
        (result,) = connection.call(AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[op])]), 1).entries
        assert result.error_code == 0, result

    with user(cluster, "admin", kind) as admin, user(cluster, "alice", other) as alice:
        assert make_topic(admin, topic, cluster.one(other)) == 0
        allow(admin, topic, Operation.WRITE)

        def throttle() -> int | None:
            answer = alice.call(produce_request(topic, {0: batch(bytes(1_000))}, acks=1), 9)
            throttled: int = answer.throttle_time_ms
            return None if answer.responses[0].partition_responses[0].error_code else throttled

        eventually(lambda: throttle() == 0, PATIENCE_S)
        set_rate(admin, 100.0)
        eventually(throttle, PATIENCE_S)
        set_rate(admin, None)
        eventually(lambda: throttle() == 0, PATIENCE_S)
        forget_rules(admin)
