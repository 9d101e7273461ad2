"""Joins, epochs, revocation and release, leaving and the end of a session, step by step.

Where a test holds an assignment back, the group's assignment interval is longer than the test. Two members use the assignor
range, whose result does not depend on the order in which a broker keeps them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, ConsumerMember, WireGroup
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: heartbeats"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
ALL, FIRST_HALF, SECOND_HALF = [0, 1, 2, 3], [0, 1], [2, 3]
FENCED, UNKNOWN = ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


@dataclass
class Pair:
    """A group of A and B on a topic of four partitions."""

    group: WireGroup
    topic: str
    a: ConsumerMember
    b: ConsumerMember


@pytest.fixture
def four(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


@pytest.fixture
def pair(make_group: MakeGroup, four: str) -> Pair:
    """A alone has all, at epoch 2."""
    group = make_group(four)
    a, b = (group.member(name, server_assignor="range") for name in "AB")
    assert a.join(four) == Beat(2, {four: ALL})
    return Pair(group, four, a, b)


@pytest.fixture
def shared(pair: Pair) -> Pair:
    """A and B have a half each, at epoch 3."""
    assert pair.b.join(pair.topic) == Beat(3, {})
    assert pair.a.beat(2) == Beat(2, {pair.topic: FIRST_HALF})
    assert pair.a.beat(2, {pair.topic: FIRST_HALF}) == Beat(3)
    assert pair.b.beat(3) == Beat(3, {pair.topic: SECOND_HALF})
    return pair


def test_one_member(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    a = group.member("A")
    assert a.join(four) == Beat(2, {four: ALL})
    assert group.state() == ("Stable", 2, 2)
    assert a.beat(2, {four: ALL}) == Beat(2)
    assert a.beat(2) == Beat(2)
    assert group.state() == ("Stable", 2, 2)


def test_what_a_response_has(make_group: MakeGroup, four: str) -> None:
    a = make_group(four).member("A")
    response = a.heartbeat(0, {}, subscribed_topic_names=[four], rebalance_timeout_ms=60_000)
    assert (response.member_id, response.heartbeat_interval_ms, response.error_message) == ("A", 5000, None)
    response = a.heartbeat(-1)
    assert (response.member_id, response.heartbeat_interval_ms, response.assignment) == ("A", 0, None)
    response = a.heartbeat(1)
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == (None, 0, 0)
    assert response.error_message


def test_the_broker_makes_member_ids_in_v0(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    response = group.member("", version=0).heartbeat(0, {}, subscribed_topic_names=[four], rebalance_timeout_ms=60_000)
    assert (response.error_code, response.member_epoch, len(response.member_id)) == (ErrorCode.NONE, 2, 22)
    assert group.member(response.member_id, version=0).beat(2) == Beat(2)


def test_no_topics(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    a = group.member("A")
    assert a.join() == Beat(1, {})
    assert group.state() == ("Stable", 1, 1)
    assert a.beat(1, subscribed_topic_names=[four]) == Beat(2, {four: ALL})


def test_no_such_topic(make_group: MakeGroup, four: str) -> None:
    group = make_group(four)
    a = group.member("A")
    assert a.join(four + "-not") == Beat(2, {})
    assert group.state() == ("Stable", 2, 2)
    assert group.member("B").join(four + "-not", four) == Beat(3, {four: ALL})
    assert a.beat(2) == Beat(3)


def test_a_second_member_waits_for_the_first(pair: Pair, configure: Configure) -> None:
    group, topic, a, b = pair.group, pair.topic, pair.a, pair.b
    configure(assignment_interval_ms=15_000)
    assert b.join(topic) == Beat(2, {})
    assert group.state() == ("Assigning", 3, 2)
    assert (b.beat(2), a.beat(2)) == (Beat(2), Beat(2))

    configure(assignment_interval_ms=0)
    assert b.beat(2) == Beat(3)
    assert group.state() == ("Reconciling", 3, 3)
    assert a.beat(2) == Beat(2, {topic: FIRST_HALF})
    for not_revoked in (a.beat(2), a.beat(2, {topic: ALL}), a.beat(2, {topic: [0, 3]})):
        assert not_revoked == Beat(2)
    assert a.full(2, {topic: ALL}, topic) == Beat(2, {topic: FIRST_HALF})  # its response may have been lost
    assert b.beat(3) == Beat(3)
    assert a.beat(2, {topic: FIRST_HALF}) == Beat(3)
    assert group.state() == ("Reconciling", 3, 3)
    assert b.beat(3) == Beat(3, {topic: SECOND_HALF})
    assert group.state() == ("Stable", 3, 3)


def test_a_member_may_own_less_than_it_was_given(shared: Pair) -> None:
    assert shared.a.beat(3, {}) == Beat(3)
    assert shared.a.full(3, {}, shared.topic) == Beat(3, {shared.topic: FIRST_HALF})


def test_retries_with_the_epoch_before(shared: Pair) -> None:
    a, topic = shared.a, shared.topic
    for owned in (FIRST_HALF, [0], []):
        assert a.beat(2, {topic: owned} if owned else {}) == Beat(3)
    assert a.full(2, {topic: FIRST_HALF}, topic) == Beat(3, {topic: FIRST_HALF})
    assert (a.beat(2, {topic: ALL}), a.beat(2, {topic: [0, 1, 2]}), a.beat(2)) == (FENCED, FENCED, FENCED)
    assert (a.beat(1, {}), a.beat(4), a.beat(4, {})) == (FENCED, FENCED, FENCED)


def test_a_known_member_joins_again(shared: Pair) -> None:
    assert shared.a.join(shared.topic) == Beat(3, {shared.topic: FIRST_HALF})
    assert shared.group.state() == ("Stable", 3, 3)
    assert shared.a.beat(3, {shared.topic: FIRST_HALF}) == Beat(3)


def test_leaving(shared: Pair) -> None:
    group, topic, a, b = shared.group, shared.topic, shared.a, shared.b
    assert b.beat(-1) == Beat(-1)
    assert group.state() == ("Assigning", 4, 3)
    assert a.beat(3) == Beat(4, {topic: ALL})
    assert (b.beat(3), b.beat(-1)) == (UNKNOWN, UNKNOWN)
    assert a.beat(-1) == Beat(-1)
    assert group.state() == ("Empty", 5, 4)
    assert a.beat(4) == UNKNOWN
    assert b.join(topic) == Beat(6, {topic: ALL})


def test_other_topics(pair: Pair, make_topic: TopicMaker) -> None:
    group, topic, a, other = pair.group, pair.topic, pair.a, make_topic(1)
    group.names.learn(other)
    assert a.beat(2, subscribed_topic_names=[other]) == Beat(2, {})
    assert group.state() == ("Reconciling", 3, 3)
    assert a.beat(2) == Beat(2)
    assert a.beat(2, {}) == Beat(3, {other: [0]})
    assert a.beat(3, subscribed_topic_names=[other, topic]) == Beat(4, {other: [0], topic: ALL})
    assert a.beat(4, subscribed_topic_names=[topic, other]) == Beat(4)
    assert group.state() == ("Stable", 4, 4)


def test_topics_no_longer_read_go_before_there_is_a_target(
    pair: Pair, make_topic: TopicMaker, configure: Configure
) -> None:
    group, topic, a, other = pair.group, pair.topic, pair.a, make_topic(1)
    group.names.learn(other)
    configure(assignment_interval_ms=15_000)
    assert a.beat(2, subscribed_topic_names=[other]) == Beat(2, {})
    assert group.state() == ("Assigning", 3, 2)
    assert a.beat(2, {}) == Beat(2)
    assert a.beat(2, subscribed_topic_names=[topic]) == Beat(2)
    configure(assignment_interval_ms=0)
    assert a.beat(2) == Beat(4, {topic: ALL})


def test_partitions_are_added(pair: Pair, wire: Connection) -> None:
    topic, a = pair.topic, pair.a
    enlarge(wire, topic, 6)
    assert seen(a, 2, {topic: ALL}) == Beat(3, {topic: [0, 1, 2, 3, 4, 5]})
    assert pair.group.state() == ("Stable", 3, 3)


def test_a_topic_is_made(pair: Pair, operator: Operator, topics_to_delete: list[str]) -> None:
    topic, a = pair.topic, pair.a
    later = topic + "-later"
    assert a.beat(2, subscribed_topic_names=[topic, later]) == Beat(3)
    topics_to_delete.append(later)
    operator.create_topic(later, 2, {})
    pair.group.names.learn(later)
    assert seen(a, 3, {topic: ALL}) == Beat(4, {topic: ALL, later: [0, 1]})


def test_a_topic_is_deleted(pair: Pair, make_topic: TopicMaker, operator: Operator) -> None:
    topic, a, other = pair.topic, pair.a, make_topic(1)
    pair.group.names.learn(other)
    assert a.beat(2, subscribed_topic_names=[topic, other]) == Beat(3, {topic: ALL, other: [0]})
    operator.delete_topic(other)
    assert seen(a, 3, {topic: ALL, other: [0]}) == Beat(3, {topic: ALL})
    assert pair.group.state() == ("Reconciling", 4, 4)
    assert a.beat(3, {topic: ALL}) == Beat(4)


def test_uniform_moves_as_little_as_it_can(make_group: MakeGroup, make_topic: TopicMaker) -> None:
    topic = make_topic(6)
    group = make_group(topic)
    a, b, c = (group.member(name, server_assignor="uniform") for name in "ABC")
    assert a.join(topic) == Beat(2, {topic: [0, 1, 2, 3, 4, 5]})
    assert b.join(topic) == Beat(3, {})
    assert a.settle(2, {topic: [0, 1, 2, 3, 4, 5]}) == Beat(3, {topic: [0, 1, 2]})
    assert b.settle(3, {}) == Beat(3, {topic: [3, 4, 5]})
    assert c.join(topic) == Beat(4, {})
    assert a.settle(3, {topic: [0, 1, 2]}) == Beat(4, {topic: [0, 1]})
    assert b.settle(3, {topic: [3, 4, 5]}) == Beat(4, {topic: [3, 4]})
    assert c.settle(4, {}) == Beat(4, {topic: [2, 5]})


def test_the_assignor_that_most_members_ask_for(make_group: MakeGroup, four: str, make_topic: TopicMaker) -> None:
    other = make_topic(1)
    group = make_group(four, other)
    a, b, c = (group.member(name) for name in "ABC")
    a.join(four, server_assignor="range")
    assert group.described().assignor_name == "range"
    b.join(four, server_assignor="uniform")
    c.join(four)
    assert c.beat(4, server_assignor="uniform", subscribed_topic_names=[four, other]) in (
        Beat(5),
        Beat(5, {other: [0]}),
    )
    assert group.described().assignor_name == "uniform"


def test_the_end_of_a_session(make_group: MakeGroup, four: str, configure: Configure) -> None:
    configure(session_timeout_ms=1000, heartbeat_interval_ms=300)
    group = make_group(four)
    a, b = group.member("A"), group.member("B")
    assert a.join(four) == Beat(2, {four: ALL})
    eventually(lambda: group.state() == ("Empty", 3, 2))
    assert a.beat(2, {four: ALL}) == UNKNOWN
    assert b.join(four) == Beat(4, {four: ALL})
    alive_until = time.monotonic() + 2
    while time.monotonic() < alive_until:
        assert b.beat(4) == Beat(4)
        time.sleep(0.05)


def test_the_end_of_the_time_to_revoke(pair: Pair) -> None:
    topic, a, b = pair.topic, pair.a, pair.b
    assert a.beat(2, rebalance_timeout_ms=1000) == Beat(2)
    assert b.join(topic) == Beat(3, {})
    assert a.beat(2) == Beat(2, {topic: FIRST_HALF})
    eventually(lambda: a.beat(2) == UNKNOWN)
    assert b.beat(3) == Beat(4, {topic: ALL})


def seen(member: ConsumerMember, epoch: int, owned: dict[str, list[int]]) -> Beat:
    """The first response that has a new epoch or new partitions: the coordinator hears of changed topics a moment later."""

    def changed() -> Beat | None:
        found = member.beat(epoch, owned)
        assert isinstance(found, Beat)
        return None if found == Beat(epoch) else found

    found = eventually(changed)
    assert found is not None
    return found


def enlarge(wire: Connection, topic: str, count: int) -> None:
    """CreatePartitions."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)], timeout_ms=20_000
    )
    assert wire.call(request, 3).results[0].error_code == ErrorCode.NONE
