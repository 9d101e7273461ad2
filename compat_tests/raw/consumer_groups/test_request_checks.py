"""Heartbeats that are refused, in the order of the checks: each request would fail the later ones as well."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import OwnBrokers
from ottla.compat_tests.raw.consumer_groups.conftest import MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: refused heartbeats"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
OWNED = [TopicPartitions(topic_id=b"t" * 16, partitions=[0])]
JOINS: dict[str, Any] = {
    "member_id": "A",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": [],
    "topic_partitions": [],
}
BEATS: dict[str, Any] = {"member_id": "A", "member_epoch": 1}


def sent(wire: Connection, version: int, fields: dict[str, Any]) -> tuple[ErrorCode, str | None]:
    """The code and the text of a response."""
    response = wire.call(ConsumerGroupHeartbeatRequest(**fields), version)
    assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
    return ErrorCode(response.error_code), response.error_message


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        pytest.param(1, JOINS | {"member_id": ""}, id="no member id"),
        pytest.param(1, BEATS | {"member_id": "", "member_epoch": -1}, id="no member id, to leave"),
        pytest.param(0, BEATS | {"member_id": ""}, id="no member id in v0"),
        pytest.param(0, BEATS | {"member_id": "", "member_epoch": -1}, id="no member id in v0, to leave"),
        pytest.param(1, JOINS | {"group_id": ""}, id="no group id"),
        pytest.param(1, JOINS | {"instance_id": ""}, id="an empty instance id"),
        pytest.param(1, JOINS | {"rack_id": ""}, id="an empty rack"),
        pytest.param(1, JOINS | {"rebalance_timeout_ms": -1}, id="joins without a rebalance timeout"),
        pytest.param(1, JOINS | {"topic_partitions": None}, id="joins without partitions"),
        pytest.param(1, JOINS | {"topic_partitions": OWNED}, id="joins with partitions"),
        pytest.param(1, JOINS | {"subscribed_topic_names": None}, id="joins without topics"),
        pytest.param(0, JOINS | {"subscribed_topic_names": None}, id="joins without topics in v0"),
        pytest.param(1, BEATS | {"member_epoch": -2}, id="goes away without an instance id"),
        pytest.param(1, BEATS | {"member_epoch": -3}, id="an epoch below -2"),
    ],
)
def test_invalid(wire: Connection, group_id: str, version: int, fields: dict[str, Any]) -> None:
    for also in ({}, {"server_assignor": "sticky"}):
        code, text = sent(wire, version, {"group_id": group_id} | fields | also)
        assert (code, bool(text)) == (ErrorCode.INVALID_REQUEST, True)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (JOINS | {"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (BEATS | {"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (BEATS | {"server_assignor": ""}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (JOINS | {"subscribed_topic_names": None, "subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        (BEATS, ErrorCode.GROUP_ID_NOT_FOUND),
        (BEATS | {"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        (BEATS | {"member_epoch": -2, "instance_id": "i1"}, ErrorCode.GROUP_ID_NOT_FOUND),
        (BEATS | {"subscribed_topic_regex": "("}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_refused(
    make_group: MakeGroup, wire: Connection, group_id: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    found, text = sent(wire, 1, {"group_id": group_id} | fields)
    assert (found, bool(text)) == (code, True)
    assert make_group().listed() is None


def test_a_regex_is_for_v1(make_group: MakeGroup, group_id: str) -> None:
    assert make_group().member("A").join(subscribed_topic_regex="") == Beat(1, {})


def test_members_that_are_not_there(make_group: MakeGroup) -> None:
    group = make_group()
    assert group.member("A").join() == Beat(1, {})
    identities: list[dict[str, Any]] = [{}, {"instance_id": "i1"}]
    for each in identities:
        assert group.member("B", **each).beat(1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert group.member("B", **each).beat(-1) == ErrorCode.UNKNOWN_MEMBER_ID
    # It is looked for before its regular expression is.
    assert group.member("B").beat(1, subscribed_topic_regex="(") == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.member("A").beat(5, subscribed_topic_regex="(") == ErrorCode.FENCED_MEMBER_EPOCH
    assert group.member("A").beat(1, subscribed_topic_regex="(") == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_full_group(own_brokers: OwnBrokers, group_id: str) -> None:
    properties = {"group.consumer.max.size": "2", "group.consumer.assignors": "range"}
    with own_brokers(**properties) as broker, connect(broker.bootstrap) as wire:
        find_coordinator(wire, GROUP, group_id)
        group = WireGroup(wire, group_id)
        assert [group.member(name).join() for name in "AB"] == [Beat(1, {}), Beat(1, {})]
        assert group.member("C").join() == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert group.member("C").beat(1) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert group.member("A").join() == Beat(1, {})
        assert group.member("A").beat(1, server_assignor="uniform") == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_versions_and_feature(wire: Connection) -> None:
    response = wire.call(ApiVersionsRequest(client_software_name="wire", client_software_version="1"), 3)
    versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert (versions[68], versions[69]) == ((0, 1), (0, 1))
    features = {each.name: each.max_version_level for each in response.finalized_features}
    assert features["group.version"] == 1
