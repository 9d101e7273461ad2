"""The rights that each request of share groups needs, and what is refused without one of them.

Clients are told apart by the addresses that they come from, and rules name hosts: the administrator may do everything, the client
of a test what it is allowed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests import brokers
from ottla.compat_tests.raw.share_groups.conftest import PROPERTIES
from ottla.compat_tests.raw.share_groups.wire_share import ShareConsumer, ShareGroup, accept
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator
from ottla.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.wire.messages import alter_share_group_offsets as alter
from ottla.wire.messages import delete_share_group_state as delete_state
from ottla.wire.messages import describe_share_group_offsets as offsets
from ottla.wire.messages import initialize_share_group_state as initialize
from ottla.wire.messages import read_share_group_state as read
from ottla.wire.messages import read_share_group_state_summary as summary
from ottla.wire.messages import write_share_group_state as write
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.schema import Message, Struct

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: rights"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
BROKER, ADMIN, CLIENT = "127.0.0.1", "127.0.0.2", "127.0.0.3"
ANYBODY = "User:ANONYMOUS"
OF_GROUP, OF_TOPIC, OF_CLUSTER = ResourceType.GROUP, ResourceType.TOPIC, ResourceType.CLUSTER
G, T, C = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
REFUSALS = {G, T, C}
SHARE_KEY = 2


class Right(NamedTuple):
    """To do something to the test's group, its topic or the cluster, and the error without it."""

    operation: Operation
    resource: ResourceType
    refusal: ErrorCode


READ_GROUP, DESCRIBE_GROUP, DELETE_GROUP = (
    Right(each, OF_GROUP, G) for each in (Operation.READ, Operation.DESCRIBE, Operation.DELETE)
)
READ_TOPIC, DESCRIBE_TOPIC = (Right(each, OF_TOPIC, T) for each in (Operation.READ, Operation.DESCRIBE))
AMONG_BROKERS = Right(Operation.CLUSTER_ACTION, OF_CLUSTER, C)


@dataclasses.dataclass
class World:
    """A broker with an authorizer, an administrator, and the client of the test."""

    admin: Connection
    client: Connection
    topic: str
    group: ShareGroup

    def allow(self, rights: Iterable[tuple[Operation, ResourceType, str]], *hosts: str) -> None:
        """Rules for clients from some hosts."""
        rules = [
            AclCreation(
                resource_type=kind,
                resource_name=name,
                resource_pattern_type=PatternType.LITERAL,
                principal=ANYBODY,
                host=host,
                operation=operation,
                permission_type=Permission.ALLOW,
            )
            for operation, kind, name in rights
            for host in hosts
        ]
        if rules:
            results = self.admin.call(CreateAclsRequest(creations=rules), 3).results
            assert {each.error_code for each in results} == {ErrorCode.NONE}, results

    def grant(self, rights: Iterable[Right]) -> None:
        """Exactly these to the client."""
        everything = DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=CLIENT,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        (deleted,) = self.admin.call(DeleteAclsRequest(filters=[everything]), 3).filter_results
        assert deleted.error_code == ErrorCode.NONE, deleted
        names = {OF_GROUP: self.group.group_id, OF_TOPIC: self.topic, OF_CLUSTER: CLUSTER_NAME}
        self.allow([(each.operation, each.resource, names[each.resource]) for each in rights], CLIENT)


@pytest.fixture(scope="module")
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker where everything is forbidden, but to the administrator and the broker."""
    rules = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "auto.create.topics.enable": "false",
    }
    kind = request.config.getoption("--broker")
    with brokers.process(kind, tmp_path_factory.mktemp("guarded"), properties=PROPERTIES | rules) as broker:
        yield broker.bootstrap


@pytest.fixture
def world(guarded: str, fresh_name: Callable[[str], str], request: pytest.FixtureRequest) -> Iterator[World]:
    """With a topic of two partitions, and a share group without members whose states are initialized."""
    admin, client = Connection(guarded, source=ADMIN), Connection(guarded, source=CLIENT)
    everything = [(Operation.ALL, kind, "*") for kind in (OF_GROUP, OF_TOPIC, ResourceType.TRANSACTIONAL_ID)]
    everything.append((Operation.ALL, OF_CLUSTER, CLUSTER_NAME))
    topic, group_id = fresh_name("rights"), fresh_name("rights-group")
    made = World(admin, client, topic, ShareGroup(admin, group_id))
    # In one request: the first rule for the cluster takes the right to add more from everybody else.
    made.allow(everything, BROKER, ADMIN)
    Operator(guarded).create_topic(topic, 2, {})
    find_coordinator(admin, GROUP, group_id)
    made.group.initialize(topic)
    yield made
    admin.close()
    client.close()


def codes(response: Any) -> set[ErrorCode]:
    """All that a response says of errors."""
    found: set[ErrorCode] = set()
    if isinstance(response, Struct):
        for spec in response.fields:
            value = getattr(response, spec.name)
            found |= {ErrorCode(value)} if spec.name.endswith("error_code") else codes(value)
    elif isinstance(response, list):
        for each in response:
            found |= codes(each)
    return found


def is_refused(world: World, request: Message, version: int, *expected: ErrorCode) -> bool:
    """Whether exactly these errors about rights are in a response."""
    return refusals(world, request, version) == set(expected)


def refusals(world: World, request: Message, version: int) -> set[ErrorCode]:
    """The errors of a response that are about rights."""
    return codes(world.client.call(request, version)) & REFUSALS


MakeRequest = Callable[[World], tuple[Message, int]]


def heartbeat(world: World) -> tuple[Message, int]:
    return ShareGroupHeartbeatRequest(
        group_id=world.group.group_id, member_id="A", member_epoch=0, subscribed_topic_names=[world.topic]
    ), 1


def describe(world: World) -> tuple[Message, int]:
    return ShareGroupDescribeRequest(group_ids=[world.group.group_id]), 1


def describe_offsets(world: World) -> tuple[Message, int]:
    topic = offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=world.topic, partitions=[0])
    group = offsets.DescribeShareGroupOffsetsRequestGroup(group_id=world.group.group_id, topics=[topic])
    return offsets.DescribeShareGroupOffsetsRequest(groups=[group]), 1


def alter_offsets(world: World) -> tuple[Message, int]:
    partition = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topic = alter.AlterShareGroupOffsetsRequestTopic(topic_name=world.topic, partitions=[partition])
    return alter.AlterShareGroupOffsetsRequest(group_id=world.group.group_id, topics=[topic]), 0


def delete_offsets(world: World) -> tuple[Message, int]:
    topic = DeleteShareGroupOffsetsRequestTopic(topic_name=world.topic)
    return DeleteShareGroupOffsetsRequest(group_id=world.group.group_id, topics=[topic]), 0


def delete_group(world: World) -> tuple[Message, int]:
    return DeleteGroupsRequest(groups_names=[world.group.group_id]), 2


def state_request(module: Any, verb: str, what: str = "") -> MakeRequest:
    """One of those that brokers send each other."""

    def make(world: World) -> tuple[Message, int]:
        data = getattr(module, f"{verb}State{what}Data")
        topic = data(topic_id=world.group.names.id_of(world.topic), partitions=[module.PartitionData(partition=0)])
        request = getattr(module, f"{verb}ShareGroupState{what}Request")
        return request(group_id=world.group.group_id, topics=[topic]), 0

    return make


def find_share_coordinator(world: World) -> tuple[Message, int]:
    return FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[f"{world.group.group_id}:{'A' * 22}:0"]), 6


CASES: Sequence[tuple[str, MakeRequest, Sequence[Right]]] = [
    ("ShareGroupHeartbeat", heartbeat, (READ_GROUP, DESCRIBE_TOPIC)),
    ("ShareGroupDescribe", describe, (DESCRIBE_GROUP,)),
    ("DescribeShareGroupOffsets", describe_offsets, (DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    ("AlterShareGroupOffsets", alter_offsets, (READ_GROUP, READ_TOPIC)),
    ("DeleteShareGroupOffsets", delete_offsets, (DELETE_GROUP, READ_TOPIC)),
    ("DeleteGroups", delete_group, (DELETE_GROUP,)),
    ("InitializeShareGroupState", state_request(initialize, "Initialize"), (AMONG_BROKERS,)),
    ("ReadShareGroupState", state_request(read, "Read"), (AMONG_BROKERS,)),
    ("WriteShareGroupState", state_request(write, "Write"), (AMONG_BROKERS,)),
    ("DeleteShareGroupState", state_request(delete_state, "Delete"), (AMONG_BROKERS,)),
    ("ReadShareGroupStateSummary", state_request(summary, "Read", "Summary"), (AMONG_BROKERS,)),
    ("FindCoordinator", find_share_coordinator, (AMONG_BROKERS,)),
]


@pytest.mark.parametrize(("make", "rights"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
def test_each_right_is_needed(world: World, make: MakeRequest, rights: Sequence[Right]) -> None:
    world.group.names.learn(world.topic)
    request, version = make(world)
    for lacking in rights:
        world.grant(each for each in rights if each != lacking)
        eventually(partial(is_refused, world, request, version, lacking.refusal))
    world.grant(rights)
    eventually(lambda: refusals(world, request, version) == set())


def test_members_topics_are_described_to_those_who_may_see_them(world: World) -> None:
    world.group.member("A").join_all(world.topic)
    request, version = describe(world)
    world.grant([DESCRIBE_GROUP])
    eventually(lambda: refusals(world, request, version) == {T})
    (group,) = world.client.call(request, version).groups
    assert (group.error_code, group.members) == (T, [])
    world.grant([DESCRIBE_GROUP, DESCRIBE_TOPIC])
    eventually(lambda: refusals(world, request, version) == set())
    (group,) = world.client.call(request, version).groups
    assert [each.member_id for each in group.members] == ["A"]


def test_all_offsets_are_those_of_topics_that_may_be_seen(world: World) -> None:
    group = offsets.DescribeShareGroupOffsetsRequestGroup(group_id=world.group.group_id, topics=None)
    request = offsets.DescribeShareGroupOffsetsRequest(groups=[group])

    def names() -> list[str]:
        (found,) = world.client.call(request, 1).groups
        return [topic.topic_name for topic in found.topics]

    world.grant([DESCRIBE_GROUP, DESCRIBE_TOPIC])
    eventually(lambda: names() == [world.topic])
    world.grant([DESCRIBE_GROUP])
    eventually(lambda: names() == [])


def test_fetches_and_acknowledgements(world: World) -> None:
    a = ShareConsumer(world.group, "A", world.topic, world.client)
    brief = {"max_wait_ms": 0}
    world.grant([READ_TOPIC])
    eventually(lambda: a.fetch(**brief) == G)
    assert a.acknowledge(accept(0), epoch=1) == G
    world.grant([READ_GROUP])
    eventually(lambda: error_of(a.fetch(epoch=0, **brief)) == T)
    assert a.acknowledge(accept(0)) == T
    world.grant([READ_GROUP, READ_TOPIC])
    eventually(lambda: error_of(a.fetch(epoch=0, **brief)) == ErrorCode.NONE)
    assert a.acknowledge(accept(0)) not in REFUSALS


def error_of(found: Any) -> ErrorCode:
    """Of what a fetch says of a partition."""
    return found if isinstance(found, ErrorCode) else found.error


def test_no_rights_at_all(world: World) -> None:
    world.grant([])
    for _, make, rights in CASES:
        world.group.names.learn(world.topic)
        request, version = make(world)
        eventually(partial(refusals, world, request, version))
        assert refusals(world, request, version) <= {each.refusal for each in rights}
    assert world.client.call(MetadataRequest(topics=None), 12).topics == []
