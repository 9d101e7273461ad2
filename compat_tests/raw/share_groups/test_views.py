"""The requests that show share groups: ShareGroupDescribe, ListGroups, DescribeGroups; and DeleteGroups."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.raw.share_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.wire_client import CLIENT_ID, Connection
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: listed and described"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
ALL = [0, 1, 2, 3]
NOT_ASKED = -0x80000000


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


def test_every_field(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    now = group.member("A", rack_id="r1").join_all(topic)
    joined = group.member("B").join(topic + "-not", topic)
    assert isinstance(joined, Beat)
    epoch = now.epoch + 1

    found = group.described()
    assert (found.error_code, found.error_message, found.group_id) == (ErrorCode.NONE, None, group.group_id)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", epoch, epoch)
    assert (found.assignor_name, found.authorized_operations) == ("simple", NOT_ASKED)
    first, second = sorted(found.members, key=lambda each: str(each.member_id))
    assert (first.member_id, first.rack_id, first.member_epoch) == ("A", "r1", now.epoch)
    assert (second.member_id, second.rack_id, second.member_epoch) == ("B", None, epoch)
    for member in (first, second):
        assert (member.client_id, member.client_host) == (CLIENT_ID, "/127.0.0.1")
    assert first.subscribed_topic_names == [topic]
    assert sorted(second.subscribed_topic_names) == [topic, topic + "-not"]
    (assigned,) = first.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name) == (group.names.id_of(topic), topic)
    assert sorted(assigned.partitions) == ALL
    assert {each.topic_name: sorted(each.partitions) for each in second.assignment.topic_partitions} == joined.assigned


def test_authorized_operations(make_group: MakeGroup, wire: Connection, topic: str) -> None:
    group = make_group()
    group.member("A").joined(topic)
    request = ShareGroupDescribeRequest(group_ids=[group.group_id], include_authorized_operations=True)
    (found,) = wire.call(request, 1).groups
    read, delete, describe, describe_configs, alter_configs = (1 << code for code in (3, 6, 8, 10, 11))
    assert found.authorized_operations == read | delete | describe | describe_configs | alter_configs


def test_groups_that_cannot_be_described(make_group: MakeGroup, wire: Connection, topic: str) -> None:
    group = make_group(topic)
    consumers = WireGroup(wire, group.group_id + "-consumers", topic)
    consumers.member("C").join(topic)
    request = ShareGroupDescribeRequest(group_ids=[group.group_id, "", consumers.group_id])
    found = {each.group_id: each for each in wire.call(request, 1).groups}
    assert found[""].error_code == ErrorCode.INVALID_GROUP_ID
    for each in (found[group.group_id], found[consumers.group_id]):
        assert (each.error_code, bool(each.error_message)) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
        assert (each.group_state, each.group_epoch, each.members) == ("", 0, [])


def test_by_the_apis_of_other_groups(make_group: MakeGroup, wire: Connection, topic: str) -> None:
    group = make_group(topic)
    group.member("A").joined(topic)
    (found,) = wire.call(ConsumerGroupDescribeRequest(group_ids=[group.group_id]), 1).groups
    assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    for version, code in ((5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        (found,) = wire.call(DescribeGroupsRequest(groups=[group.group_id]), version).groups
        assert (found.error_code, found.group_state, found.members) == (code, "Dead", [])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group.group_id, topics=None)])
    found = wire.call(request, 9).groups[0]  # it has none, and no error
    assert (found.error_code, found.topics) == (ErrorCode.NONE, [])
    for member_id, epoch in (("", -1), ("A", 2)):
        assert committed(wire, group.group_id, topic, member_id, epoch) == ErrorCode.GROUP_ID_NOT_FOUND
    group.member("A").beat(-1)
    assert committed(wire, group.group_id, topic, "", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    of_topic = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    response = wire.call(OffsetDeleteRequest(group_id=group.group_id, topics=[of_topic]), 0)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def committed(wire: Connection, group_id: str, topic: str, member_id: str, epoch: int) -> ErrorCode:
    """OffsetCommit."""
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    return ErrorCode(wire.call(request, 9).topics[0].partitions[0].error_code)


def test_list(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a = group.member("A")
    assert group.listed() is None
    now = a.joined(topic)
    listed = ("share", "Stable", "share")
    assert group.listed() == listed
    assert (group.listed(4), group.listed(0)) == (("share", "Stable", ""), ("share", "", ""))
    for types in (["share"], ["Share"], ["SHARE", "classic"]):
        assert group.listed(types_filter=types) == listed
    for types in (["classic"], ["consumer"], ["nonsense"]):
        assert group.listed(types_filter=types) is None
    for states in (["Stable"], ["stable"], ["Empty", "STABLE"]):
        assert group.listed(states_filter=states) == listed
    for states in (["Empty"], ["Dead"], ["nonsense"]):
        assert group.listed(states_filter=states) is None
    assert group.listed(states_filter=["stable"], types_filter=["share"]) == listed
    assert now.epoch == 2
    a.beat(-1)
    assert group.listed(states_filter=["empty"]) == ("share", "Empty", "share")


def deleted(wire: Connection, group_id: str) -> ErrorCode:
    """DeleteGroups of one."""
    (result,) = wire.call(DeleteGroupsRequest(groups_names=[group_id]), 2).results
    return ErrorCode(result.error_code)


def test_deletion(make_group: MakeGroup, topic: str, wire: Connection) -> None:
    group = make_group(topic)
    assert deleted(wire, group.group_id) == ErrorCode.GROUP_ID_NOT_FOUND
    a = group.member("A")
    a.join_all(topic)
    assert deleted(wire, group.group_id) == ErrorCode.NON_EMPTY_GROUP
    a.beat(-1)
    assert deleted(wire, group.group_id) == ErrorCode.NONE
    assert group.listed() is None
    assert group.described().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert a.join(topic) == Beat(2, {})
    assert a.until(Beat(2, {}), {topic: ALL}) == Beat(3, {topic: ALL})


def test_a_deleted_group_begins_anew(make_group: MakeGroup, ten: str, wire: Connection, configure: Configure) -> None:
    configure(auto_offset_reset="earliest")
    group = make_group(ten)
    group.initialize(ten)
    reader = group.consumer("A", ten)
    assert reader.take() == [(0, 9, 1)]
    assert reader.close() == ErrorCode.NONE
    assert deleted(wire, group.group_id) == ErrorCode.NONE
    group.initialize(ten)
    # Its state is new; a leader that had the partition already delivers again what was not acknowledged.
    assert reader.gather(10).keys() == set(range(10))
