"""Groups with members of both protocols, which change over while members are connected.

The member of the consumer protocol, N, comes before the classic ones in the order of the assignor range: their ids begin with
the client id, or are chosen by the test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import OwnBrokers, TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, ClassicMember, Joined, WireGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.wire_client import Connection, Operator, connect

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: conversion from and to classic groups"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
ALL, FIRST_HALF, SECOND_HALF = [0, 1, 2, 3], [0, 1], [2, 3]
REJOIN, UNKNOWN, NONE = ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE
INCONSISTENT, OLD = ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.ILLEGAL_GENERATION
NO_GROUP, FENCED_INSTANCE = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.FENCED_INSTANCE_ID
MEMBER = Joined(2, "", [])
Open = Callable[[], Connection]


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


@pytest.fixture
def group(make_group: MakeGroup, topic: str) -> WireGroup:
    """The test's group."""
    return make_group(topic)


@pytest.fixture
def classic(group: WireGroup, connections: Open) -> ClassicMember:
    """A classic member on a connection of its own, so that its JoinGroup may wait."""
    return group.classic(connections())


def leads_alone(member: ClassicMember, topic: str, **fields: Any) -> None:
    """It has a classic group of one, and all partitions."""
    joined = member.join(topic, **fields)
    assert joined == Joined(1, member.member_id, [member.member_id])
    assert member.sync({member.member_id: {topic: ALL}}) == {topic: ALL}
    assert member.group.listed() == ("consumer", "Stable", "classic")


def assignments(group: WireGroup) -> Mapping[str, tuple[int, list[int]]]:
    """The epoch and the target partitions, of one topic, of each member."""
    return {
        each.member_id: (
            each.member_epoch,
            [partition for topic in each.target_assignment.topic_partitions for partition in sorted(topic.partitions)],
        )
        for each in group.described().members
    }


def test_there_and_back(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic)
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {})
    assert group.listed() == ("consumer", "Reconciling", "consumer")
    assert group.state() == ("Reconciling", 2, 2)
    assert assignments(group) == {"N": (2, FIRST_HALF), classic.member_id: (1, SECOND_HALF)}
    assert (classic.heartbeat(), classic.heartbeat(), classic.sync()) == (REJOIN, REJOIN, REJOIN)
    assert n.beat(2) == Beat(2)

    # It is told what it keeps, at the old generation, and has to join again when it has revoked the rest.
    assert classic.join(topic, owned={topic: ALL}) == Joined(1, "", [])
    assert classic.sync() == {topic: SECOND_HALF}
    assert (classic.heartbeat(), n.beat(2)) == (REJOIN, Beat(2))
    assert classic.join(topic, owned={topic: SECOND_HALF}) == MEMBER
    assert (classic.heartbeat(), classic.sync()) == (NONE, {topic: SECOND_HALF})
    assert n.beat(2) == Beat(2, {topic: FIRST_HALF})
    assert group.state() == ("Stable", 2, 2)

    assert n.beat(-1) == Beat(-1)
    assert group.listed() == ("consumer", "PreparingRebalance", "classic")
    assert (n.beat(2), classic.heartbeat(3), classic.heartbeat()) == (NO_GROUP, OLD, REJOIN)
    assert classic.join(topic, owned={topic: SECOND_HALF}) == Joined(3, classic.member_id, [classic.member_id])
    assert classic.sync({classic.member_id: {topic: ALL}}) == {topic: ALL}
    assert classic.heartbeat() == NONE


def test_partitions_that_nobody_has_are_free(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    assert classic.join(topic) == Joined(1, classic.member_id, [classic.member_id])
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: FIRST_HALF})  # the other one has never asked for its assignment
    assert classic.heartbeat() == REJOIN
    assert classic.join(topic) == MEMBER
    assert (classic.sync({classic.member_id: {topic: ALL}}), classic.heartbeat()) == ({topic: SECOND_HALF}, NONE)
    assert group.state() == ("Stable", 2, 2)


def test_a_join_that_waits(group: WireGroup, classic: ClassicMember, connections: Open, topic: str) -> None:
    leads_alone(classic, topic)
    other = group.classic(connections())
    other.send_join(topic)
    assert other.receive_join().error_code == ErrorCode.MEMBER_ID_REQUIRED
    other.send_join(topic)
    assert other.connection.is_silent()
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {})
    assert other.receive_join().error_code == REJOIN
    assert set(assignments(group)) == {"N", classic.member_id, other.member_id}
    assert other.join(topic) == MEMBER
    assert (other.sync(), other.heartbeat()) == ({}, NONE)


def test_a_classic_member_joins(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic.send_join(topic)
    response = classic.receive_join()
    assert (response.error_code, len(response.member_id)) == (ErrorCode.MEMBER_ID_REQUIRED, 22)

    classic.member_id = "z"  # one that the broker has not made will do
    classic.send_join(topic, protocols=["range", "roundrobin"])
    response = classic.receive_join()
    assert (response.error_code, response.generation_id, response.member_id) == (NONE, 3, "z")
    assert (response.protocol_type, response.protocol_name, response.leader) == ("consumer", "range", "")
    assert (response.members, response.skip_assignment) == ([], False)
    assert (classic.sync(), classic.heartbeat()) == ({}, NONE)
    assert n.settle(2, {topic: ALL}) == Beat(3, {topic: FIRST_HALF})
    assert (classic.heartbeat(), classic.sync()) == (REJOIN, {})
    assert classic.join(topic) == Joined(3, "", [])
    assert (classic.sync(), classic.heartbeat()) == ({topic: SECOND_HALF}, NONE)
    assert group.state() == ("Stable", 3, 3)


def test_requests_of_classic_members_that_are_refused(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic.member_id = "z"
    assert classic.join(topic, protocols=["own", "range"]) == Joined(3, "", [])
    assert n.settle(2, {topic: ALL}) == Beat(3, {topic: FIRST_HALF})
    classic.join(topic, protocols=["own", "range"])
    protocol: dict[str, Any] = {"protocol_name": "own"}
    assert classic.sync(**protocol) == {topic: SECOND_HALF}
    assert classic.sync(generation=2, **protocol) == classic.sync(generation=4, **protocol) == OLD
    assert classic.sync(protocol_name="range") == classic.sync(protocol_name="own", protocol_type="x") == INCONSISTENT
    assert (classic.heartbeat(2), classic.heartbeat(4)) == (OLD, OLD)
    assert (classic.heartbeat(3, "N"), classic.heartbeat(3, "nobody")) == (UNKNOWN, UNKNOWN)
    other = group.classic()
    assert other.join(topic, protocol_type="connect") == INCONSISTENT
    assert other.join(topic, protocol_type="") == INCONSISTENT
    assert other.join(topic, protocols=["roundrobin"]) == INCONSISTENT  # none in common with the other classic members
    other.member_id = "nobody"
    assert other.leave() == UNKNOWN
    assert group.state() == ("Stable", 3, 3)


def test_any_protocol_will_do_for_the_first_classic_member(
    group: WireGroup, classic: ClassicMember, topic: str
) -> None:
    assert group.member("N").join(topic) == Beat(2, {topic: ALL})
    classic.member_id = "z"
    assert classic.join(topic, protocols=["own"]) == Joined(3, "", [])
    assert group.classic().join(topic, protocols=["range"]) == INCONSISTENT


def test_old_versions_need_no_member_id(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    assert group.member("N").join(topic) == Beat(2, {topic: ALL})
    classic.send_join(topic, version=3)
    response = classic.receive_join()
    assert (response.error_code, response.generation_id, len(response.member_id)) == (NONE, 3, 22)


def test_a_classic_member_reads_other_topics(
    group: WireGroup, classic: ClassicMember, topic: str, make_topic: TopicMaker
) -> None:
    other = make_topic(1)
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic.member_id = "z"
    assert classic.join(other) == Joined(3, "", [])
    assert classic.sync() == {other: [0]}
    assert classic.join(topic, owned={other: [0]}) == Joined(3, "", [])
    assert (classic.sync(), classic.heartbeat()) == ({}, REJOIN)
    assert classic.join(topic) == Joined(4, "", [])
    assert n.settle(2, {topic: ALL}) == Beat(4, {topic: FIRST_HALF})
    assert group.state() == ("Reconciling", 4, 4)


def test_classic_members_leave(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic.member_id = "z"
    assert classic.join(topic) == Joined(3, "", [])
    assert (classic.leave(), classic.leave()) == (NONE, UNKNOWN)
    assert group.state() == ("Assigning", 4, 3)
    assert n.beat(2) == Beat(4)


def test_the_last_member_of_the_consumer_protocol_leaves_by_leavegroup(
    group: WireGroup, classic: ClassicMember, topic: str
) -> None:
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic.member_id = "z"
    assert classic.join(topic) == Joined(3, "", [])
    as_classic = group.classic()
    as_classic.member_id = "N"
    assert as_classic.heartbeat(3) == UNKNOWN
    assert as_classic.leave() == NONE
    assert group.listed() == ("consumer", "PreparingRebalance", "classic")
    assert classic.join(topic) == Joined(4, "z", ["z"])


def test_all_leave(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic)
    n = group.member("N")
    assert n.join(topic) == Beat(2, {})
    assert classic.leave() == NONE
    assert group.state() == ("Assigning", 3, 2)
    assert n.beat(2) == Beat(3, {topic: ALL})
    assert n.beat(-1) == Beat(-1)
    assert group.listed() == ("consumer", "Empty", "consumer")


def test_empty_groups_change_over(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic)
    assert classic.leave() == NONE
    assert group.listed() == ("consumer", "Empty", "classic")
    n = group.member("N")
    assert n.beat(2) == NO_GROUP
    assert n.join(topic) == Beat(2, {topic: ALL})
    assert group.listed() == ("consumer", "Stable", "consumer")
    assert n.beat(-1) == Beat(-1)
    assert classic.join(topic) == UNKNOWN
    assert group.listed() == ("consumer", "Empty", "consumer")
    classic.member_id = ""
    leads_alone(classic, topic)


def test_groups_that_stay_classic(make_group: MakeGroup, group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic)
    n = group.member("N")
    assert n.beat(2) == n.beat(-1) == NO_GROUP
    assert classic.heartbeat() == NONE
    assert classic.leave() == NONE
    classic.member_id = ""
    assert isinstance(classic.join(topic, protocol_type="connect"), Joined)
    assert n.join(topic) == NO_GROUP
    assert group.listed() == ("connect", "CompletingRebalance", "classic")


def test_user_data_of_a_subscription(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic, user_data=b"mine")
    assert group.member("N").join(topic) == Beat(2, {})


def test_user_data_of_an_assignment(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    assert isinstance(classic.join(topic), Joined)
    assert classic.sync({classic.member_id: {topic: ALL}}, user_data=b"mine") == {topic: ALL}
    assert group.member("N").join(topic) == NO_GROUP
    assert (group.listed(), classic.heartbeat()) == (("consumer", "Stable", "classic"), NONE)


def test_a_malformed_subscription(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    assert isinstance(classic.join(topic, metadata=b"\0"), Joined)
    assert group.member("N").join(topic) == NO_GROUP
    assert group.listed() == ("consumer", "CompletingRebalance", "classic")


def test_a_static_member_becomes_classic_and_comes_back(group: WireGroup, connections: Open, topic: str) -> None:
    n, later = (group.member(name, instance_id="i1", server_assignor="range") for name in ("N", "N2"))
    assert n.join(topic) == Beat(2, {topic: ALL})
    classic = group.classic(connections(), group_instance_id="i1")
    assert classic.join(topic, owned={topic: ALL}) == MEMBER
    assert group.listed() == ("consumer", "Stable", "classic")
    assert (classic.heartbeat(), n.beat(2)) == (NONE, NO_GROUP)
    assert classic.sync() == {topic: ALL}

    assert later.join(topic) == Beat(2, {topic: ALL})
    assert group.state() == ("Stable", 2, 2)
    assert (classic.heartbeat(), classic.sync(), classic.leave()) == (FENCED_INSTANCE, FENCED_INSTANCE, UNKNOWN)
    assert classic.leave(by_instance=True) == NONE
    assert group.state() == ("Empty", 3, 2)


def test_a_static_member_becomes_classic_beside_another(group: WireGroup, connections: Open, topic: str) -> None:
    n, m = (group.member("N", instance_id="i1", server_assignor="range"), group.member("M", server_assignor="range"))
    assert n.join(topic) == Beat(2, {topic: ALL})
    assert m.join(topic) == Beat(3, {})
    assert n.settle(2, {topic: ALL}) == Beat(3, {topic: FIRST_HALF})
    assert m.settle(3, {}) == Beat(3, {topic: SECOND_HALF})

    classic, later = (group.classic(connections(), group_instance_id="i1") for _ in range(2))
    assert classic.join(topic) == Joined(3, "", [])
    assert (classic.heartbeat(), classic.sync()) == (NONE, {topic: FIRST_HALF})
    assert (n.beat(3), m.beat(3)) == (FENCED_INSTANCE, Beat(3))
    assert later.join(topic) == Joined(3, "", [])
    assert (classic.heartbeat(), classic.sync()) == (FENCED_INSTANCE, FENCED_INSTANCE)
    assert (later.heartbeat(), later.sync()) == (NONE, {topic: FIRST_HALF})
    assert group.state() == ("Stable", 3, 3)
    assert later.leave(by_instance=True) == NONE
    assert group.state() == ("Assigning", 4, 3)


def test_two_new_members_and_a_classic_one(group: WireGroup, classic: ClassicMember, topic: str) -> None:
    leads_alone(classic, topic)
    n, m = (group.member(name, server_assignor="range") for name in "NM")
    assert (n.join(topic), m.join(topic)) == (Beat(2, {}), Beat(3, {}))
    assert assignments(group) == {"M": (3, FIRST_HALF), "N": (2, [2]), classic.member_id: (1, [3])}
    assert classic.join(topic, owned={topic: ALL}) == Joined(1, "", [])
    assert classic.sync() == {topic: [3]}
    assert classic.join(topic, owned={topic: [3]}) == Joined(3, "", [])
    assert (n.settle(2, {}), m.settle(3, {})) == (Beat(3, {topic: [2]}), Beat(3, {topic: FIRST_HALF}))
    assert (group.state(), classic.heartbeat()) == (("Stable", 3, 3), NONE)

    assert n.beat(-1) == Beat(-1)
    assert classic.heartbeat() == NONE  # there is no new target yet
    assert m.beat(3) == Beat(4)
    assert classic.heartbeat() == REJOIN
    assert classic.join(topic, owned={topic: [3]}) == Joined(4, "", [])
    assert (classic.sync(), classic.heartbeat()) == ({topic: SECOND_HALF}, NONE)


@pytest.mark.parametrize("policy", ["disabled", "upgrade", "downgrade"])
def test_policies(own_brokers: OwnBrokers, group_id: str, fresh_name: Callable[[str], str], policy: str) -> None:
    properties = {"group.consumer.migration.policy": policy, "group.consumer.assignment.interval.ms": "0"}
    with own_brokers(**properties) as broker, connect(broker.bootstrap) as wire, connect(broker.bootstrap) as second:
        topic = fresh_name("policies")
        Operator(broker.bootstrap).create_topic(topic, 4, {})
        find_coordinator(wire, GROUP, group_id)
        group = WireGroup(wire, group_id, topic)
        classic, n = group.classic(second), group.member("N")
        leads_alone(classic, topic)
        joined = n.join(topic)
        if policy != "upgrade":
            assert joined == NO_GROUP
            assert group.listed() == ("consumer", "Stable", "classic")
            assert classic.leave() == NONE
            assert isinstance(n.join(topic), Beat)  # an empty one changes over in any case
            classic.member_id = "z"
        joined_again = classic.join(topic)
        assert isinstance(joined_again, Joined) if policy != "disabled" else joined_again == INCONSISTENT
        assert n.beat(-1) == Beat(-1)
        kind, state = {
            "disabled": ("consumer", "Empty"),
            "upgrade": ("consumer", "Assigning"),
            "downgrade": ("classic", "PreparingRebalance"),
        }[policy]
        assert group.listed() == ("consumer", state, kind)
