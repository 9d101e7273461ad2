"""Each API with and without each of the rights that it looks at, on a quorum and on a ZooKeeper.

The same calls on Apache Kafka 3.9 are answered as on a ZooKeeper. A quorum has the rights of Kafka's ControllerApis where the
controller handles a request, which it does as the client's.

Clients are told apart by the addresses they come from: nobody has shown who he is, and rules name hosts. The administrator's
may do everything, as may the broker's own, and that of the client under test what a case grants. That the administrator may
change rules is there before the broker starts.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import kazoo.client
import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clusters import KafkaZooKeeperCluster
from ottla.compat_tests.raw.requests import fetch_request
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, topic_metadata
from ottla.controller.zookeeper.nodes import acl_znodes
from ottla.handlers.rights import NOTHING, Right
from ottla.handlers.table import HANDLERS
from ottla.security.acl import (
    CLUSTER_NAME,
    RESOURCE_TYPES,
    WILDCARD,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest

from ..helpers.zookeeper_broker import QUORUM, ZOOKEEPER, broker_factory
from .helpers.rights_cases import (
    BY_CLUSTER_IN_QUORUMS,
    CLUSTER,
    EVERYWHERE,
    KAFKA,
    NOT_ON_KAFKA,
    ON_ZOOKEEPERS,
    PARTIAL,
    REFUSALS,
    Case,
    Grant,
    cluster,
    group,
    topic,
    whole_request,
)

BROKER, ADMIN, CLIENT = "127.0.0.1", "127.0.0.2", "127.0.0.3"
ANONYMOUS = "User:ANONYMOUS"
PROPERTIES = {
    "authorizer.class.name": ACL_AUTHORIZER,
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",  # records of 2020 are there for as long as the tests take
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


OPEN = {"allow.everyone.if.no.acl.found": "true"}
EVERYTHING = [AclEntry(ANONYMOUS, Permission.ALLOW, host, Operation.ALL) for host in (ADMIN, BROKER)]


class Rules:
    """The rules of a broker, over an administrator's connection."""

    def __init__(self, admin: Connection) -> None:
        self.admin = admin

    def create(self, bindings: Iterable[AclBinding]) -> None:
        assert {result.error_code for result in self.create_each(bindings)} <= {0}

    def create_each(self, bindings: Iterable[AclBinding]) -> list[AclCreationResult]:
        creations = [
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in bindings
        ]
        results: list[AclCreationResult] = self.admin.call(CreateAclsRequest(creations=creations), 2).results
        assert len(results) == len(creations)
        return results


class Subject(Rules):
    """A broker, its administrator and a client without rights."""

    def __init__(self, bootstrap: str, *, is_quorum: bool) -> None:
        super().__init__(Connection(bootstrap, source=ADMIN))
        self.is_quorum = is_quorum
        self.client = Connection(bootstrap, source=CLIENT)
        self.create(
            AclBinding(ResourcePattern(kind, WILDCARD), entry)
            for entry in EVERYTHING
            for kind in RESOURCE_TYPES
            if kind is not CLUSTER
        )
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("t", "u")]
        made = self.admin.call(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 5)
        assert [created.error_code for created in made.topics] == [0, 0]

        for key, key_type in (("g", 0), ("x", 1)):
            find = FindCoordinatorRequest(key=key, key_type=key_type)
            eventually(lambda find=find: self.admin.call(find, 3).error_code == 0)
        everything_of_group = OffsetFetchRequest(group_id="g", topics=None)
        eventually(lambda: self.admin.call(everything_of_group, 7).error_code == 0)
        _commit(self.admin, "t", "u")

    @contextlib.contextmanager
    def granted(self, grants: Iterable[Grant]) -> Iterator[Connection]:
        """The client, which may do this and nothing else."""
        self.create(
            AclBinding(
                ResourcePattern(grant.resource_type, grant.name),
                AclEntry(ANONYMOUS, Permission.ALLOW, CLIENT, grant.operation),
            )
            for grant in grants
        )
        try:
            yield self.client
        finally:
            mine = DeleteAclsFilter(
                resource_type_filter=ResourceType.ANY,
                resource_name_filter=None,
                pattern_type_filter=PatternType.ANY,
                principal_filter=None,
                host_filter=CLIENT,
                operation=Operation.ANY,
                permission_type=Permission.ANY,
            )
            assert self.admin.call(DeleteAclsRequest(filters=[mine]), 2).filter_results[0].error_code == 0

    def close(self) -> None:
        self.admin.close()
        self.client.close()


def _of_cluster() -> list[AclBinding]:
    return [AclBinding(ResourcePattern(CLUSTER, CLUSTER_NAME), entry) for entry in EVERYTHING]


def _write_rules(zookeeper: str, path: str) -> None:
    """Have the rules of the cluster be there before its broker starts."""
    client = kazoo.client.KazooClient(zookeeper)
    client.start()
    client.create(path, acl_znodes.encode_entries(EVERYTHING), makepath=True)
    client.stop()
    client.close()


@pytest.fixture(scope="module", params=[QUORUM, ZOOKEEPER, pytest.param(KAFKA, marks=pytest.mark.slow)])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    with contextlib.ExitStack() as stack:
        if request.param != KAFKA:
            folder, new_broker = tmp_path_factory.mktemp("ottla"), broker_factory(request.param)
            with new_broker(data_dir=folder, properties={**PROPERTIES, **OPEN}) as broker:
                admin = stack.enter_context(contextlib.closing(Connection(broker.bootstrap_servers, source=ADMIN)))
                Rules(admin).create(_of_cluster())
            bootstrap = stack.enter_context(new_broker(data_dir=folder, properties=PROPERTIES)).bootstrap_servers
        else:
            zookeeper = request.getfixturevalue("zookeeper_server")
            kafka = KafkaZooKeeperCluster(
                tmp_path_factory.mktemp("kafka"), 1, zookeeper=zookeeper, root="/rights", properties=PROPERTIES
            )
            stack.callback(kafka.close)
            _write_rules(zookeeper.address, "/rights/kafka-acl/Cluster/kafka-cluster")
            kafka.start()
            bootstrap = kafka.bootstrap
        subject = Subject(bootstrap, is_quorum=request.param == QUORUM)
        stack.callback(subject.close)
        yield subject


ON_OTTLA = pytest.mark.parametrize("subject", [QUORUM, ZOOKEEPER], indirect=True)
ON_A_QUORUM = pytest.mark.parametrize("subject", [QUORUM], indirect=True)
ON_A_ZOOKEEPER = pytest.mark.parametrize(
    "subject", [ZOOKEEPER, pytest.param(KAFKA, marks=pytest.mark.slow)], indirect=True
)

OF_QUORUMS = [
    whole_request(ApiKey.DESCRIBE_QUORUM, Operation.DESCRIBE, 2),
    whole_request(ApiKey.UPDATE_FEATURES, Operation.ALTER, 2),
    whole_request(ApiKey.UNREGISTER_BROKER, Operation.ALTER, 0),
    whole_request(ApiKey.ADD_RAFT_VOTER, Operation.ALTER, 1),
    whole_request(ApiKey.REMOVE_RAFT_VOTER, Operation.ALTER, 0),
]
CASES = PARTIAL + [
    whole_request(handler.api_key, handler.cluster_right, handler.highest)
    for handler in HANDLERS
    if handler.cluster_right is not None
]
CASES.append(whole_request(ApiKey.ELECT_LEADERS, Operation.ALTER, 0))  # which has no error for the whole answer
SEEN_BELOW = {
    (ApiKey.METADATA, Right(CLUSTER, Operation.DESCRIBE)),
    (ApiKey.LIST_GROUPS, Right(CLUSTER, Operation.DESCRIBE)),
    (ApiKey.LIST_GROUPS, Right(ResourceType.GROUP, Operation.DESCRIBE)),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, Right(ResourceType.TOPIC, Operation.DESCRIBE)),
    (ApiKey.SHARE_GROUP_DESCRIBE, Right(ResourceType.TOPIC, Operation.DESCRIBE)),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, Right(ResourceType.TOPIC, Operation.READ)),
    (ApiKey.DESCRIBE_CLUSTER, Right(CLUSTER, Operation.DESCRIBE)),
    (ApiKey.DELETE_TOPICS, Right(ResourceType.TOPIC, Operation.DESCRIBE)),
    (ApiKey.DESCRIBE_TRANSACTIONS, Right(ResourceType.TOPIC, Operation.DESCRIBE)),
    (ApiKey.LIST_TRANSACTIONS, Right(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE)),
    *(
        (api, Right(kind, Operation.READ))
        for api in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
        for kind in (ResourceType.GROUP, ResourceType.TOPIC)
    ),
}
"""Rights without which something is left out, and nothing is refused; those of share groups have tests of their own."""
OF_TOKENS = {
    (ApiKey.CREATE_DELEGATION_TOKEN, Right(ResourceType.USER, Operation.CREATE_TOKENS)),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, Right(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE)),
    (ApiKey.DESCRIBE_DELEGATION_TOKEN, Right(ResourceType.USER, Operation.DESCRIBE_TOKENS)),
}
"""Those need clients who have shown who they are (``test_rights_to_tokens``)."""


def test_every_right_that_an_api_declares_has_a_case() -> None:
    declared = {(handler.api_key, right) for handler in HANDLERS for right in handler.rights or ()}
    tried = {(case.api, Right(grant.resource_type, grant.operation)) for case in PARTIAL for grant in case.grants}
    assert declared == tried | SEEN_BELOW | OF_TOKENS
    assert {handler.api_key for handler in HANDLERS if handler.rights is NOTHING} <= {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }


def refusals(response: Any) -> set[int]:
    """The refusals in an answer, wherever in it they stand."""
    if isinstance(response, list):
        return {code for element in response for code in refusals(element)}
    found: set[int] = set()
    for name in getattr(response, "__annotations__", ()):
        value = getattr(response, name)
        found |= {value} & REFUSALS if name.endswith("error_code") else refusals(value)
    return found


def _name(case: Case) -> str:
    return f"{case.api.name.lower()}-{case.version}"


@pytest.mark.parametrize("case", [case for case in CASES if case.kinds == EVERYWHERE], ids=_name)
def test_an_api_is_refused_without_one_of_its_rights_and_not_with_all(subject: Subject, case: Case) -> None:
    is_refused_without_one_of_its_rights(subject, case)


@ON_OTTLA
@pytest.mark.parametrize("case", [case for case in CASES if case.kinds == NOT_ON_KAFKA], ids=_name)
def test_an_api_that_kafkas_zookeeper_mode_has_not(subject: Subject, case: Case) -> None:
    is_refused_without_one_of_its_rights(subject, case)


@ON_A_ZOOKEEPER
@pytest.mark.parametrize("case", [case for case in CASES if case.kinds == ON_ZOOKEEPERS], ids=_name)
def test_an_api_among_brokers_on_a_zookeeper(subject: Subject, case: Case) -> None:
    is_refused_without_one_of_its_rights(subject, case)


@ON_A_QUORUM
@pytest.mark.parametrize(
    "case", [*OF_QUORUMS, BY_CLUSTER_IN_QUORUMS, *(case for case in CASES if case.kinds == {QUORUM})], ids=_name
)
def test_an_api_or_a_right_of_quorums(subject: Subject, case: Case) -> None:
    is_refused_without_one_of_its_rights(subject, case)


def is_refused_without_one_of_its_rights(subject: Subject, case: Case) -> None:
    """And with all of them it is not."""
    for missing in case.grants:
        with subject.granted(grant for grant in case.grants if grant is not missing) as client:
            assert refusals(client.call(case.request(), case.version)) == missing.refusal, missing
    with subject.granted(case.grants) as client:
        assert refusals(client.call(case.request(), case.version)) == set()


def test_what_a_client_may_not_describe_is_left_out_of_all_topics(subject: Subject) -> None:
    with subject.granted([topic(Operation.DESCRIBE, "u")]) as client:
        assert [each.name for each in client.call(MetadataRequest(topics=None), 9).topics] == ["u"]
    with subject.granted([topic(Operation.READ, "t")]) as client:
        assert [each.name for each in client.call(MetadataRequest(topics=None), 9).topics] == ["t"]


def test_a_topic_that_may_not_be_described_shows_only_what_was_asked_by(subject: Subject) -> None:
    topic_id = topic_metadata(subject.admin, "t").topic_id
    with subject.granted([]) as client:
        by_name = client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics[0]
        by_id = client.call(MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)]), 12).topics[0]
    assert (by_name.name, by_name.topic_id, by_name.partitions) == ("t", bytes(16), [])
    assert (by_id.name, by_id.topic_id, by_id.partitions) == (None, topic_id, [])


def test_a_deletion_by_id_does_not_tell_the_name_of_a_topic_that_may_not_be_described(subject: Subject) -> None:
    topic_id = topic_metadata(subject.admin, "t").topic_id
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=10_000)
    with subject.granted([]) as client:
        (hidden,) = client.call(by_id, 6).responses
    with subject.granted([topic(Operation.DESCRIBE)]) as client:
        (shown,) = client.call(by_id, 6).responses
    assert (hidden.name, refusals(hidden)) == (None, {29})
    assert (shown.name, refusals(shown)) == ("t", {29})


def test_authorized_operations_are_those_that_are_granted(subject: Subject) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="t")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    about_cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    with subject.granted([topic(Operation.READ), cluster(Operation.CREATE)]) as client:
        answer = client.call(asked, 10)
        assert answer.topics[0].topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
        assert answer.cluster_authorized_operations == 0
        assert client.call(about_cluster, 0).cluster_authorized_operations == 0
        about_group = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    with subject.granted([group(Operation.READ)]) as client:
        (described,) = client.call(about_group, 5).groups
        assert described.authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
    with subject.granted([cluster(Operation.ALTER), topic(Operation.DESCRIBE)]) as client:
        alter = 1 << Operation.ALTER | 1 << Operation.DESCRIBE
        assert client.call(asked, 10).cluster_authorized_operations == alter
        assert client.call(about_cluster, 0).cluster_authorized_operations == alter


def _commit(connection: Connection, *names: str) -> None:
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=1)])
        for name in names
    ]
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    answer = connection.call(request, 8)
    assert {p.error_code for each in answer.topics for p in each.partitions} == {0}


def test_what_a_client_may_not_describe_is_left_out_of_groups_and_their_offsets(subject: Subject) -> None:
    everything = OffsetFetchRequest(group_id="g", topics=None)
    with subject.granted([]) as client:
        assert client.call(ListGroupsRequest(), 3).groups == []
    with subject.granted([group(Operation.DESCRIBE), topic(Operation.DESCRIBE, "u")]) as client:
        assert [each.group_id for each in client.call(ListGroupsRequest(), 3).groups] == ["g"]
        assert [each.name for each in client.call(everything, 7).topics] == ["u"]
    with subject.granted([cluster(Operation.DESCRIBE)]) as client:
        assert "g" in {each.group_id for each in client.call(ListGroupsRequest(), 3).groups}


@ON_A_QUORUM
def test_a_consumer_group_with_a_topic_that_a_client_may_not_describe_is_not_described(subject: Subject) -> None:
    _join(subject.admin, subscribed_topic_names=["t", "u"])
    request = ConsumerGroupDescribeRequest(group_ids=["members"], include_authorized_operations=True)
    with subject.granted([group(Operation.DESCRIBE, "members"), topic(Operation.DESCRIBE, "t")]) as client:
        (hidden,) = client.call(request, 1).groups
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    grants = [group(Operation.DESCRIBE, "members"), topic(Operation.DESCRIBE, "t"), topic(Operation.DESCRIBE, "u")]
    with subject.granted(grants) as client:
        (shown,) = client.call(request, 1).groups
        assert (shown.error_code, [each.member_id for each in shown.members]) == (ErrorCode.NONE, ["A"])
        assert shown.authorized_operations == 1 << Operation.DESCRIBE


@ON_A_QUORUM
def test_an_expression_does_not_find_what_its_client_may_not_describe(subject: Subject) -> None:
    with subject.granted([group(Operation.READ, "members"), topic(Operation.DESCRIBE, "t")]) as client:
        _join(client, member_id="B", subscribed_topic_regex="[tu]")

        def found() -> list[list[int]] | None:
            beat = ConsumerGroupHeartbeatRequest(group_id="members", member_id="B", member_epoch=0)
            beat.rebalance_timeout_ms, beat.subscribed_topic_regex, beat.topic_partitions = 1000, "[tu]", []
            response = client.call(beat, 1)
            return [each.topic_id for each in response.assignment.topic_partitions]

        topic_id = topic_metadata(subject.admin, "t").topic_id
        assert eventually(found) == [topic_id]


def _join(connection: Connection, member_id: str = "A", **fields: Any) -> None:
    """A member joins the group ``members``, alone."""
    leave = ConsumerGroupHeartbeatRequest(group_id="members", member_id="A", member_epoch=-1)
    connection.call(leave, 1)
    join = ConsumerGroupHeartbeatRequest(
        group_id="members", member_id=member_id, rebalance_timeout_ms=1000, topic_partitions=[], **fields
    )
    assert connection.call(join, 1).error_code == ErrorCode.NONE


def test_what_a_client_may_not_describe_is_left_out_of_transactions(subject: Subject) -> None:
    admin = subject.admin
    begin = InitProducerIdRequest(transactional_id="listed", transaction_timeout_ms=60_000)
    # The coordinator may be loading yet, and hold no producer ids.
    began = eventually(lambda: (answer := admin.call(begin, 4)).error_code == 0 and answer)
    producer = began.producer_id, began.producer_epoch
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="listed",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("t", "u")],
    )
    answer = admin.call(added, 3)
    assert {p.partition_error_code for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition} == {0}
    everything, one = ListTransactionsRequest(), DescribeTransactionsRequest(transactional_ids=["listed"])
    right = Grant(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE, "listed", frozenset())
    with subject.granted([]) as client:
        assert client.call(everything, 0).transaction_states == []
    with subject.granted([right, topic(Operation.DESCRIBE, "u")]) as client:
        assert [state.transactional_id for state in client.call(everything, 0).transaction_states] == ["listed"]
        (described,) = client.call(one, 0).transaction_states
    assert (described.error_code, [each.topic for each in described.topics]) == (0, ["u"])
    ended = EndTxnRequest(transactional_id="listed", producer_id=producer[0], producer_epoch=producer[1])
    assert admin.call(ended, 3).error_code == 0


def test_a_right_that_is_taken_away_is_missed_by_the_next_fetch_of_a_session(subject: Subject) -> None:
    def fetched(client: Connection, session_id: int, epoch: int) -> tuple[int, dict[str, int]]:
        request = fetch_request("t", {0: 0} if epoch == 0 else {}, session=(session_id, epoch))
        if epoch == 0:
            request.topics += fetch_request("u", {0: 0}).topics
        response = client.call(request, 12)
        assert response.error_code == 0
        return response.session_id, {each.topic: each.partitions[0].error_code for each in response.responses}

    with subject.granted([topic(Operation.READ, "t")]) as client:
        session_id, answered = fetched(client, 0, 0)
        assert session_id and answered == {"t": 0, "u": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        _, answered = fetched(client, session_id, 1)
        assert answered["u"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED  # every time
    with subject.granted([topic(Operation.READ, "u")]) as client:
        _, answered = fetched(client, session_id, 2)
    assert answered["t"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert answered.get("u", 0) == 0


@ON_OTTLA
def test_no_session_is_made_of_what_may_not_be_fetched(subject: Subject) -> None:
    """There is room for a thousand, which those who may fetch need. A follower's would take that of a consumer."""
    asked = fetch_request("t", {0: 0}, session=(0, 0))
    with subject.granted([topic(Operation.READ, "u")]) as client:
        assert client.call(asked, 12).session_id == 0
        by_id = fetch_request("t", {0: 0}, session=(0, 0))
        by_id.topics[0].topic_id = bytes(15) + b"t"
        assert client.call(by_id, 13).session_id == 0
    asked.replica_id = 7
    with subject.granted([topic(Operation.READ, "t")]) as client:
        assert client.call(asked, 12).session_id == 0


@pytest.mark.parametrize(
    ("pattern", "operation", "is_taken"),
    [
        (ResourcePattern(ResourceType.TOPIC, "t"), Operation.CLUSTER_ACTION, True),
        (ResourcePattern(ResourceType.TOPIC, "*", PatternType.PREFIXED), Operation.READ, True),
        (ResourcePattern(ResourceType.TOPIC, "a/b"), Operation.READ, None),
        (ResourcePattern(ResourceType.TOPIC, ""), Operation.READ, False),
        (ResourcePattern(CLUSTER, "another"), Operation.ALTER, False),
    ],
)
def test_what_can_be_a_rule(
    subject: Subject, pattern: ResourcePattern, operation: Operation, is_taken: bool | None
) -> None:
    """None: on a quorum only. In a ZooKeeper names are paths."""
    is_taken = subject.is_quorum if is_taken is None else is_taken
    good = AclBinding(
        ResourcePattern(ResourceType.GROUP, "g"), AclEntry(ANONYMOUS, Permission.DENY, CLIENT, Operation.READ)
    )
    asked = AclBinding(pattern, AclEntry(ANONYMOUS, Permission.ALLOW, CLIENT, operation))
    with subject.granted([]):
        codes = [result.error_code for result in subject.create_each([good, asked])]
    assert codes == [0, 0 if is_taken else ErrorCode.INVALID_REQUEST]


@ON_OTTLA
def test_a_refusal_is_in_the_audit_log_with_its_request(subject: Subject, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"), subject.granted([]) as client:
        client.call(OffsetFetchRequest(group_id="audited", topics=None), 7)
    (line,) = [line for line in caplog.messages if "audited" in line]
    assert line == (
        f"Principal = {ANONYMOUS} is Denied Operation = Describe from host = {CLIENT} on resource = Group:LITERAL:audited "
        "for request = OffsetFetch with resourceRefCount = 1"
    )


def test_one_topic_that_is_refused_does_not_touch_the_others(subject: Subject) -> None:
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=2)])
        for name in ("t", "u", "none")
    ]
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics)
    with subject.granted([group(Operation.READ), topic(Operation.READ, "u")]) as client:
        answer = client.call(request, 8)
    assert {each.name: each.partitions[0].error_code for each in answer.topics} == {"t": 29, "u": 0, "none": 29}
