"""Joins, epochs, leaving and the end of a session, step by step; which partitions members get by the assignor ``simple``."""

from __future__ import annotations

import time

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat
from ottla.compat_tests.raw.share_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.raw.share_groups.wire_share import ShareGroup, ShareMember
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: heartbeats"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
ALL = [0, 1, 2, 3]
FENCED, UNKNOWN = ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def four(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


@pytest.fixture
def group(make_group: MakeGroup, four: str) -> ShareGroup:
    """The test's group, in which the topic's partitions have their states; its epoch is 4."""
    group = make_group(four)
    group.initialize(four)
    assert group.state()[0] == "Empty"
    return group


def test_partitions_are_assigned_when_their_states_are_there(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    a = group.member("A")
    assert a.join(four) == Beat(2, {})
    assert a.until(Beat(2, {}), {four: ALL}) == Beat(3, {four: ALL})
    assert group.state() == ("Stable", 3, 3)
    assert a.beat(3) == Beat(3)


def test_one_member(group: ShareGroup, four: str) -> None:
    a, epoch = group.member("A"), group.state()[1]
    assert a.join(four) == Beat(epoch + 1, {four: ALL})
    assert group.state() == ("Stable", epoch + 1, epoch + 1)
    assert a.beat(epoch + 1) == Beat(epoch + 1)
    assert a.beat(epoch + 1, four) == Beat(epoch + 1, {four: ALL})  # one with topics is answered in full


def test_what_a_response_has(group: ShareGroup, four: str) -> None:
    a = group.member("A")
    response = a.heartbeat(0, subscribed_topic_names=[four])
    assert (response.member_id, response.heartbeat_interval_ms, response.error_message) == ("A", 5000, None)
    response = a.heartbeat(-1)
    assert (response.member_id, response.heartbeat_interval_ms, response.assignment) == ("A", 0, None)
    response = a.heartbeat(1)
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == (None, 0, 0)
    assert response.error_message


def test_a_second_member(group: ShareGroup, four: str) -> None:
    a, b, epoch = group.member("A"), group.member("B"), group.state()[1]
    assert a.join(four) == Beat(epoch + 1, {four: ALL})
    joined = b.join(four)
    assert isinstance(joined, Beat)
    assert (joined.epoch, len((joined.assigned or {})[four])) == (epoch + 2, 2)  # nobody need let go of anything first
    left = a.beat(epoch + 1)
    assert isinstance(left, Beat)
    assert (left.epoch, sorted((left.assigned or {})[four] + (joined.assigned or {})[four])) == (epoch + 2, ALL)
    assert group.state() == ("Stable", epoch + 2, epoch + 2)


def test_an_assignment_waits_for_the_interval(group: ShareGroup, four: str, configure: Configure) -> None:
    a, b, epoch = group.member("A"), group.member("B"), group.state()[1]
    assert a.join(four) == Beat(epoch + 1, {four: ALL})
    configure(assignment_interval_ms=15_000)
    assert b.join(four) == Beat(epoch + 1, {})
    assert group.state() == ("Stable", epoch + 2, epoch + 1)
    assert (b.beat(epoch + 1), a.beat(epoch + 1)) == (Beat(epoch + 1), Beat(epoch + 1))
    configure(assignment_interval_ms=0)
    found = b.beat(epoch + 1)
    assert isinstance(found, Beat)
    assert (found.epoch, len((found.assigned or {})[four])) == (epoch + 2, 2)


def test_epochs(group: ShareGroup, four: str) -> None:
    a, b = group.member("A"), group.member("B")
    first = a.joined(four).epoch
    b.joined(four)
    now = a.beat(first)
    assert isinstance(now, Beat)
    assert now.epoch == first + 1
    assert a.beat(first) == Beat(first + 1)  # its response may have been lost
    assert a.beat(first, four) == now
    assert (a.beat(first - 1), a.beat(first + 2)) == (FENCED, FENCED)
    assert a.beat(first + 1) == Beat(first + 1)
    assert a.beat(0, four) == now  # a known member that joins again keeps what it has


def test_leaving(group: ShareGroup, four: str) -> None:
    a, b = group.member("A"), group.member("B")
    first = a.joined(four).epoch
    b.joined(four)
    assert b.beat(-1) == Beat(-1)
    assert group.state() == ("Stable", first + 2, first + 1)
    assert a.beat(first) == Beat(first + 2)
    assert (b.beat(first + 1), b.beat(-1)) == (UNKNOWN, UNKNOWN)
    assert a.beat(-1) == Beat(-1)
    assert group.state()[0] == "Empty"
    assert a.beat(first + 2) == UNKNOWN
    assert group.listed() == ("share", "Empty", "share")


def test_the_end_of_a_session(group: ShareGroup, four: str, configure: Configure) -> None:
    configure(session_timeout_ms=1000, heartbeat_interval_ms=300)
    a, b = group.member("A"), group.member("B")
    epoch = a.joined(four).epoch
    eventually(lambda: group.state() == ("Empty", epoch + 1, epoch))
    assert a.beat(epoch) == UNKNOWN
    assert b.join(four) == Beat(epoch + 2, {four: ALL})
    alive_until = time.monotonic() + 2
    while time.monotonic() < alive_until:
        assert b.beat(epoch + 2) == Beat(epoch + 2)
        time.sleep(0.05)


def test_no_such_topic(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    a = group.member("A")
    assert a.join(four + "-not") == Beat(2, {})
    assert group.state() == ("Stable", 2, 2)


def test_other_topics(group: ShareGroup, four: str, make_topic: TopicMaker) -> None:
    a, other = group.member("A"), make_topic(1)
    group.names.learn(other)
    joined = a.joined(four)
    # What it does not read any more goes at once, what it reads comes when there are states for it.
    changed = a.beat(joined.epoch, other)
    assert changed == Beat(joined.epoch + 1, {})
    now = a.until(Beat(joined.epoch + 1, {}), {other: [0]})
    assert a.beat(now.epoch, other, four) == Beat(now.epoch + 1, {other: [0], four: ALL})
    assert a.beat(now.epoch + 1, four, other) == Beat(now.epoch + 1, {other: [0], four: ALL})


def test_partitions_are_added(group: ShareGroup, four: str, wire: Connection) -> None:
    a = group.member("A")
    now = a.joined(four)
    enlarge(wire, four, 6)
    after = a.until(now, {four: [0, 1, 2, 3, 4, 5]})
    # One epoch for the partitions, one for their states.
    assert group.state() == ("Stable", now.epoch + 2, now.epoch + 2)
    assert after.epoch == now.epoch + 2


def test_a_topic_is_made(group: ShareGroup, four: str, operator: Operator, topics_to_delete: list[str]) -> None:
    a, later = group.member("A"), four + "-later"
    now = a.joined(four, later)
    topics_to_delete.append(later)
    operator.create_topic(later, 2, {})
    group.names.learn(later)
    assert a.until(now, {four: ALL, later: [0, 1]}).epoch == now.epoch + 2


def test_a_topic_is_deleted(group: ShareGroup, four: str, make_topic: TopicMaker, operator: Operator) -> None:
    a, other = group.member("A"), make_topic(1)
    group.names.learn(other)
    now = a.join_all(four, other)
    operator.delete_topic(other)
    assert a.until(now, {four: ALL}).epoch == now.epoch + 1


def sizes(members: list[ShareMember], topic: str, epoch: int) -> list[int]:
    """How many partitions each member gets, when all have heard of the last epoch; each partition has an owner."""
    found = []
    for member in members:
        response = member.heartbeat(epoch, subscribed_topic_names=[topic])
        assert response.error_code == ErrorCode.NONE
        found.append((member.group.names.to_names(response.assignment.topic_partitions)).get(topic, []))
    assert {number for each in found for number in each} == set(range(members[0].group.partition_count(topic)))
    return [len(each) for each in found]


@pytest.mark.parametrize(
    ("partitions", "members", "expected"),
    [
        pytest.param(6, 3, [2, 2, 2], id="as many each"),
        pytest.param(5, 3, [2, 2, 1], id="some one more"),
        pytest.param(1, 3, [1, 1, 1], id="one for all"),
        pytest.param(2, 4, [1, 1, 1, 1], id="two share each"),
        pytest.param(3, 4, [2, 2, 1, 1], id="each partition has two"),
        pytest.param(2, 3, [2, 1, 1], id="three share two"),
    ],
)
def test_sizes(
    make_group: MakeGroup, make_topic: TopicMaker, partitions: int, members: int, expected: list[int]
) -> None:
    topic = make_topic(partitions)
    group = make_group(topic)
    group.initialize(topic)
    all_members = [group.member(name) for name in "ABCD"[:members]]
    epochs = [member.joined(topic).epoch for member in all_members]
    for member, epoch in zip(all_members, epochs, strict=True):
        member.beat(epoch)
    assert sorted(sizes(all_members, topic, epochs[-1]), reverse=True) == expected


def enlarge(wire: Connection, topic: str, count: int) -> None:
    """CreatePartitions."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)], timeout_ms=20_000
    )
    assert wire.call(request, 3).results[0].error_code == ErrorCode.NONE
