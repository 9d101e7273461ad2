"""Subscriptions by regular expression, which the broker resolves in the background."""

from __future__ import annotations

import re

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, ConsumerMember
from ottla.compat_tests.session import eventually

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: regular expressions"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]


def resolved(member: ConsumerMember, epoch: int) -> Beat:
    """The first response with a new epoch."""

    def changed() -> Beat | None:
        found = member.beat(epoch)
        assert isinstance(found, Beat), found
        return None if found == Beat(epoch) else found

    found = eventually(changed)
    assert found is not None
    return found


def joined(member: ConsumerMember, regex: str, *topics: str) -> Beat | ErrorCode:
    """The first heartbeat."""
    fields = {"subscribed_topic_names": list(topics) if topics else None}
    return member.join(subscribed_topic_regex=regex, **fields)


def test_two_topics(make_group: MakeGroup, make_topic: TopicMaker) -> None:
    one, two = make_topic(2), make_topic(1)
    group = make_group(one, two)
    a, b = (group.member(name, server_assignor="range") for name in "AB")
    regex = f"{re.escape(one)}|{re.escape(two)}"
    assert joined(a, regex) == Beat(1, {})
    assert resolved(a, 1) == Beat(2, {one: [0, 1], two: [0]})
    assert group.state() == ("Stable", 2, 2)
    (member,) = group.described().members
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([], regex)

    # The second one with this expression has its topics at once.
    assert joined(b, regex) == Beat(3, {})
    assert group.state() == ("Reconciling", 3, 3)
    assert a.settle(2, {one: [0, 1], two: [0]}) == Beat(3, {one: [0], two: [0]})
    assert b.settle(3, {}) == Beat(3, {one: [1]})


def test_the_whole_name_matches(make_group: MakeGroup, make_topic: TopicMaker) -> None:
    topic = make_topic(1)
    group = make_group(topic)
    a, b = group.member("A"), group.member("B")
    assert joined(a, topic[:-1]) == Beat(1, {})
    assert joined(b, "x", topic) == Beat(2, {topic: [0]})
    assert a.beat(1) == Beat(2)


def test_it_goes(make_group: MakeGroup, make_topic: TopicMaker) -> None:
    topic, other = make_topic(1), make_topic(1)
    group = make_group(topic, other)
    a = group.member("A")
    assert joined(a, re.escape(topic), other) == Beat(2, {other: [0]})
    assert resolved(a, 2) == Beat(3, {topic: [0], other: [0]})
    assert a.beat(3, subscribed_topic_regex="") == Beat(3, {other: [0]})
    assert group.state() == ("Reconciling", 4, 4)
    assert a.beat(3, {other: [0]}) == Beat(4)
    (member,) = group.described().members
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([other], "")


def test_names_beside_an_expression_of_the_same_topic(make_group: MakeGroup, make_topic: TopicMaker) -> None:
    topic = make_topic(1)
    group = make_group(topic)
    a = group.member("A")
    assert joined(a, re.escape(topic), topic) == Beat(2, {topic: [0]})
    assert resolved(a, 2) == Beat(3)
    assert a.beat(3, subscribed_topic_names=[]) == Beat(4)
    assert group.state() == ("Stable", 4, 4)


@pytest.mark.parametrize("regex", ["(", "[", "a**", "(?<n>a)(?=b)", r"(a)\1", "*"])
def test_refused(make_group: MakeGroup, regex: str) -> None:
    group = make_group()
    assert joined(group.member("A"), regex) == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert group.listed() is None


@pytest.mark.parametrize("regex", ["(?i)A", r"\p{Greek}", r"\Qa.b\E", "(?P<n>a)", "[[:alpha:]]+", "a{2,3}?"])
def test_accepted(make_group: MakeGroup, regex: str) -> None:
    assert joined(make_group().member("A"), regex) == Beat(1, {})
