"""Heartbeats that are refused, in the order of the checks; groups of other kinds with the same id; the APIs' versions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import OwnBrokers
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.raw.share_groups.conftest import Configure, MakeGroup
from ottla.compat_tests.raw.share_groups.wire_share import ShareGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: refused heartbeats"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
JOINS: dict[str, Any] = {"member_id": "A", "member_epoch": 0, "subscribed_topic_names": ["topic"]}
BEATS: dict[str, Any] = {"member_id": "A", "member_epoch": 1}
VERSIONS = {
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
}
"""The share group APIs of Kafka 4.3.1, by their keys."""


def sent(wire: Connection, fields: dict[str, Any]) -> tuple[ErrorCode, str | None]:
    """The code and the text of a response."""
    response = wire.call(ShareGroupHeartbeatRequest(**fields), 1)
    assert (response.member_id, response.member_epoch, response.assignment) == (None, 0, None)
    return ErrorCode(response.error_code), response.error_message


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(JOINS | {"member_id": ""}, id="no member id"),
        pytest.param(BEATS | {"member_id": "", "member_epoch": -1}, id="no member id, to leave"),
        pytest.param(JOINS | {"member_id": "A" * 37}, id="a long member id"),
        pytest.param(JOINS | {"group_id": ""}, id="no group id"),
        pytest.param(JOINS | {"rack_id": ""}, id="an empty rack"),
        pytest.param(JOINS | {"subscribed_topic_names": None}, id="joins without topics"),
        pytest.param(JOINS | {"subscribed_topic_names": []}, id="joins with no topics"),
        pytest.param(BEATS | {"member_epoch": -2}, id="an epoch below -1"),
    ],
)
def test_invalid(wire: Connection, group_id: str, fields: dict[str, Any]) -> None:
    assert sent(wire, {"group_id": group_id} | fields)[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("epoch", [1, -1])
def test_no_group(make_group: MakeGroup, wire: Connection, group_id: str, epoch: int) -> None:
    code, text = sent(wire, {"group_id": group_id} | BEATS | {"member_epoch": epoch})
    assert (code, bool(text)) == (ErrorCode.GROUP_ID_NOT_FOUND, True)
    assert make_group().listed() is None


def test_members_that_are_not_there(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    group.member("A").joined(topic)
    for epoch in (1, 2, -1):
        assert group.member("B").beat(epoch) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_longest_member_id(make_group: MakeGroup, topic: str) -> None:
    assert isinstance(make_group(topic).member("A" * 36).join(topic), Beat)


def test_groups_of_other_kinds(make_group: MakeGroup, wire: Connection, topic: str, group_id: str) -> None:
    share = make_group(topic)
    consumers = WireGroup(wire, group_id + "-consumer", topic)
    assert isinstance(consumers.member("C").join(topic), Beat)
    other = ShareGroup(wire, consumers.group_id, topic)
    assert other.member("A").join(topic) == ErrorCode.GROUP_ID_NOT_FOUND
    assert other.member("A").beat(1) == ErrorCode.GROUP_ID_NOT_FOUND
    classic = WireGroup(wire, group_id + "-classic", topic)
    assert classic.classic().join(topic)
    assert ShareGroup(wire, classic.group_id, topic).member("A").join(topic) == ErrorCode.GROUP_ID_NOT_FOUND

    share.member("A").joined(topic)
    same = WireGroup(wire, group_id, topic)
    assert same.member("C").join(topic) == ErrorCode.GROUP_ID_NOT_FOUND
    assert same.classic().join(topic) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_share_group_stays_one(make_group: MakeGroup, wire: Connection, topic: str, group_id: str) -> None:
    group = make_group(topic)
    group.initialize(topic)
    assert group.state()[0] == "Empty"
    same = WireGroup(wire, group_id, topic)
    assert same.member("C").join(topic) == ErrorCode.GROUP_ID_NOT_FOUND
    assert same.classic().join(topic) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group(own_brokers: OwnBrokers, group_id: str) -> None:
    properties = {"group.share.max.size": "2", "group.share.assignment.interval.ms": "15000"}
    with own_brokers(**properties) as broker, connect(broker.bootstrap) as wire:
        find_coordinator(wire, GROUP, group_id)
        group = ShareGroup(wire, group_id)
        assert [group.member(name).joined("topic").epoch for name in "AB"] == [2, 2]
        assert group.member("C").join("topic") == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert group.member("C").beat(1) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert group.member("A").join("topic") == Beat(2, {})


def test_versions_and_feature(wire: Connection) -> None:
    response = wire.call(ApiVersionsRequest(client_software_name="wire", client_software_version="1"), 3)
    versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert {key: versions.get(key) for key in VERSIONS} == VERSIONS
    features = {each.name: each.max_version_level for each in response.finalized_features}
    assert features["share.version"] == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session_timeout_ms", 999),
        ("session_timeout_ms", 60_001),
        ("heartbeat_interval_ms", 99),
        ("heartbeat_interval_ms", 15_001),
        ("record_lock_duration_ms", 999),
        ("record_lock_duration_ms", 60_001),
        ("delivery_count_limit", 1),
        ("delivery_count_limit", 11),
        ("partition_max_record_locks", 99),
        ("partition_max_record_locks", 4_001),
        ("assignment_interval_ms", 15_001),
        ("auto_offset_reset", "none"),
        ("auto_offset_reset", "by_duration:1h"),
        ("isolation_level", "serializable"),
        ("renew_acknowledge_enable", "perhaps"),
        ("nonsense", 1),
    ],
)
def test_settings_that_are_refused(configure: Configure, name: str, value: object) -> None:
    with pytest.raises(AssertionError, match="share"):
        configure(**{name: value})
