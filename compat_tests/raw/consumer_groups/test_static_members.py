"""Static members: an instance id stays with its partitions while its process changes (KIP-848)."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat
from ottla.compat_tests.session import eventually

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: static members"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
ALL, FIRST_HALF, SECOND_HALF = [0, 1, 2, 3], [0, 1], [2, 3]
FENCED, UNKNOWN = ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID
UNRELEASED, FENCED_INSTANCE = ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


def test_an_instance_is_replaced(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    old, new = (group.member(name, instance_id="i1", server_assignor="range") for name in ("A", "A2"))
    assert old.join(topic) == Beat(2, {topic: ALL})
    assert new.join(topic) == UNRELEASED
    assert new.beat(2) == FENCED_INSTANCE
    assert group.member("A2", instance_id="i9").beat(2) == UNKNOWN
    assert old.beat(-2) == Beat(-2)
    assert group.state() == ("Reconciling", 2, 2)
    assert (old.beat(2), old.beat(1), old.beat(-2)) == (FENCED, FENCED, Beat(-2))

    b = group.member("B", server_assignor="range")
    assert b.join(topic) == Beat(3, {})
    assert new.join(topic) == Beat(3, {topic: FIRST_HALF})
    assert group.state() == ("Reconciling", 3, 3)
    assert b.beat(3) == Beat(3, {topic: SECOND_HALF})
    assert old.beat(2) == FENCED_INSTANCE
    assert group.state() == ("Stable", 3, 3)
    assert sorted(each.member_id for each in group.described().members) == ["A2", "B"]


def test_it_comes_back_with_other_topics(make_group: MakeGroup, make_topic: TopicMaker, topic: str) -> None:
    other = make_topic(1)
    group = make_group(topic, other)
    old, new = (group.member(name, instance_id="i1") for name in ("A", "A2"))
    assert old.join(topic) == Beat(2, {topic: ALL})
    assert old.beat(-2) == Beat(-2)
    assert new.join(other) == Beat(3, {other: [0]})
    assert group.state() == ("Stable", 3, 3)


def test_the_same_process_comes_back(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a = group.member("A", instance_id="i1")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert a.join(topic) == UNRELEASED
    assert a.beat(-2) == Beat(-2)
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert group.state() == ("Stable", 2, 2)


def test_it_leaves_for_good(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a, other = (group.member(name, instance_id="i1") for name in ("A", "A2"))
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert other.beat(-1) == FENCED_INSTANCE
    assert other.beat(-2) == FENCED_INSTANCE
    assert group.member("A", instance_id="i9").beat(-1) == UNKNOWN
    assert a.beat(-1) == Beat(-1)
    assert group.state() == ("Empty", 3, 2)
    assert other.join(topic) == Beat(4, {topic: ALL})


def test_its_instance_id_is_left_out(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    assert group.member("A", instance_id="i1").join(topic) == Beat(2, {topic: ALL})
    plain = group.member("A")
    assert plain.beat(2) == Beat(2)
    assert plain.beat(-1) == Beat(-1)
    assert group.state() == ("Empty", 3, 2)


def test_its_session_goes_on_without_it(make_group: MakeGroup, topic: str, configure: Configure) -> None:
    configure(session_timeout_ms=1000, heartbeat_interval_ms=300)
    group = make_group(topic)
    a = group.member("A", instance_id="i1")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert a.beat(-2) == Beat(-2)
    eventually(lambda: group.state() == ("Empty", 3, 2))
    assert a.beat(-2) == UNKNOWN


def test_range_puts_them_first(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a = group.member("A", server_assignor="range")
    z = group.member("Z", instance_id="i1", server_assignor="range")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert z.join(topic) == Beat(3, {})
    assert a.settle(2, {topic: ALL}) == Beat(3, {topic: SECOND_HALF})
    assert z.settle(3, {}) == Beat(3, {topic: FIRST_HALF})
