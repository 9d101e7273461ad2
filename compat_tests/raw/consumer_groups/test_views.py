"""The requests that show groups: ConsumerGroupDescribe, ListGroups, DescribeGroups; and DeleteGroups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.wire_client import CLIENT_ID, Connection
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: listed and described"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
ALL = [0, 1, 2, 3]
CLASSIC, CONSUMER = 0, 1
NOT_ASKED = -0x80000000


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


def partitions(assignment: Any) -> dict[str, list[int]]:
    """Of a described assignment, by name."""
    return {each.topic_name: sorted(each.partitions) for each in assignment.topic_partitions}


@pytest.mark.parametrize("version", [0, 1])
def test_every_field(make_group: MakeGroup, topic: str, version: int) -> None:
    group = make_group(topic)
    a = group.member("A", instance_id="i1", rack_id="r1", server_assignor="range")
    b = group.member("B")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert b.join(topic, topic + "-not") == Beat(3, {})
    assert a.beat(2) == Beat(2, {topic: [0, 1]})

    found = group.described(version)
    assert (found.error_code, found.error_message, found.group_id) == (ErrorCode.NONE, None, group.group_id)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Reconciling", 3, 3)
    assert (found.assignor_name, found.authorized_operations) == ("range", NOT_ASKED)
    first, second = sorted(found.members, key=lambda each: str(each.member_id))
    assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == ("A", "i1", "r1", 2)
    assert (second.member_id, second.instance_id, second.rack_id, second.member_epoch) == ("B", None, None, 3)
    for member in (first, second):
        assert (member.client_id, member.client_host) == (CLIENT_ID, "/127.0.0.1")
        assert member.subscribed_topic_regex == ""
        assert member.member_type == (CONSUMER if version else -1)
    assert first.subscribed_topic_names == [topic]
    assert sorted(second.subscribed_topic_names) == [topic, topic + "-not"]
    # What is to be revoked is still the member's.
    assert (partitions(first.assignment), partitions(first.target_assignment)) == ({topic: ALL}, {topic: [0, 1]})
    assert (partitions(second.assignment), partitions(second.target_assignment)) == ({}, {topic: [2, 3]})


def test_a_classic_member(make_group: MakeGroup, topic: str, connections: Callable[[], Connection]) -> None:
    group = make_group(topic)
    assert group.member("N").join(topic) == Beat(2, {topic: ALL})
    c = group.classic(connections(), group_instance_id="i1")
    c.join(topic)
    (member,) = (each for each in group.described().members if each.member_id == c.member_id)
    assert (member.member_type, member.member_epoch, member.instance_id) == (CLASSIC, 3, "i1")
    assert member.subscribed_topic_names == [topic]


def test_authorized_operations(make_group: MakeGroup, wire: Connection) -> None:
    group = make_group()
    group.member("A").join()
    request = ConsumerGroupDescribeRequest(group_ids=[group.group_id], include_authorized_operations=True)
    (found,) = wire.call(request, 1).groups
    read, delete, describe, describe_configs, alter_configs = (1 << code for code in (3, 6, 8, 10, 11))
    assert found.authorized_operations == read | delete | describe | describe_configs | alter_configs


def test_groups_that_cannot_be_described(make_group: MakeGroup, wire: Connection, topic: str) -> None:
    group = make_group(topic)
    classic = WireGroup(wire, group.group_id + "-classic")
    assert classic.classic().join(topic)
    request = ConsumerGroupDescribeRequest(group_ids=[group.group_id, "", classic.group_id])
    found = {each.group_id: each for each in wire.call(request, 1).groups}
    assert found[""].error_code == ErrorCode.INVALID_GROUP_ID
    for each in (found[group.group_id], found[classic.group_id]):
        assert (each.error_code, bool(each.error_message)) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
        assert (each.group_state, each.group_epoch, each.members) == ("", 0, [])


def test_list(make_group: MakeGroup, topic: str, wire: Connection, configure: Configure) -> None:
    configure(assignment_interval_ms=15_000)
    group = make_group(topic)
    a = group.member("A", server_assignor="range")
    a.join(topic)
    listed = ("consumer", "Stable", "consumer")
    assert group.listed() == listed
    assert (group.listed(4), group.listed(0)) == (("consumer", "Stable", ""), ("consumer", "", ""))
    for types in (["consumer"], ["Consumer"], ["CONSUMER", "share"], ["classic", "consumer"]):
        assert group.listed(types_filter=types) == listed
    for types in (["classic"], ["share"], ["nonsense"], ["nonsense", "classic"], [""]):
        assert group.listed(types_filter=types) is None
    for states in (["Stable"], ["stable"], ["STABLE", "Empty"]):
        assert group.listed(states_filter=states) == listed
    for states in (["Empty"], ["Assigning"], ["nonsense"]):
        assert group.listed(states_filter=states) is None
    assert group.listed(states_filter=["stable"], types_filter=["consumer"]) == listed
    assert group.listed(states_filter=["stable"], types_filter=["classic"]) is None

    group.member("B").join(topic)
    assert group.listed() == ("consumer", "Assigning", "consumer")
    assert group.listed(states_filter=["assigning"]) == ("consumer", "Assigning", "consumer")
    configure(assignment_interval_ms=0)
    a.beat(2)
    assert group.listed() == ("consumer", "Reconciling", "consumer")
    assert group.listed(states_filter=["reconciling"]) == ("consumer", "Reconciling", "consumer")


@pytest.mark.parametrize("version", [5, 6])
def test_classic_describe(make_group: MakeGroup, topic: str, wire: Connection, version: int) -> None:
    group = make_group(topic)
    group.member("A").join(topic)
    (found,) = wire.call(DescribeGroupsRequest(groups=[group.group_id]), version).groups
    assert found.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
    assert bool(found.error_message) == (version >= 6)
    assert (found.group_state, found.protocol_type, found.protocol_data, found.members) == ("Dead", "", "", [])


def test_deletion(make_group: MakeGroup, topic: str, wire: Connection) -> None:
    def deleted() -> ErrorCode:
        (result,) = wire.call(DeleteGroupsRequest(groups_names=[group.group_id]), 2).results
        return ErrorCode(result.error_code)

    group = make_group(topic)
    assert deleted() == ErrorCode.GROUP_ID_NOT_FOUND
    a = group.member("A")
    a.join(topic)
    assert deleted() == ErrorCode.NON_EMPTY_GROUP
    a.beat(-1)
    assert group.listed() == ("consumer", "Empty", "consumer")
    assert deleted() == ErrorCode.NONE
    assert group.listed() is None
    assert group.described().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.join(topic) == Beat(2, {topic: ALL})
