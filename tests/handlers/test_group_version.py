"""The feature ``group.version``: what a broker tells of it, and the APIs of consumer groups with it and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Send = Callable[..., Any]

FEATURE = "group.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def told(send: Send, version: int) -> tuple[tuple[int, int] | None, int | None]:
    """The supported range, and the finalized level."""
    response = send(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), version)
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    return supported.get(FEATURE), finalized.get(FEATURE)


def updated(send: Send, level: int, kind: int, *, is_check: bool = False) -> ErrorCode:
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=kind)
    response = send(UpdateFeaturesRequest(feature_updates=[update], validate_only=is_check), 2)
    return ErrorCode(response.error_code)


def codes(send: Send) -> set[ErrorCode]:
    """Of a heartbeat for another member than there is, and of a description."""
    heartbeat = send(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=7), 1)
    described = send(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    return {ErrorCode(heartbeat.error_code), ErrorCode(described.groups[0].error_code)} - {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }


def test_a_new_cluster_has_consumer_groups(send: Send) -> None:
    assert told(send, 4) == ((0, 1), 1)
    assert told(send, 3) == (None, 1)  # whose lowest versions cannot be 0
    assert ErrorCode.UNSUPPORTED_VERSION not in codes(send)


def test_without_the_feature_their_apis_are_refused(send: Send) -> None:
    assert updated(send, 0, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    assert updated(send, 0, SAFE_DOWNGRADE, is_check=True) == ErrorCode.NONE
    assert told(send, 4) == ((0, 1), 1)
    assert updated(send, 0, SAFE_DOWNGRADE) == ErrorCode.NONE
    eventually(lambda: told(send, 4) == ((0, 1), None))
    assert codes(send) == {ErrorCode.UNSUPPORTED_VERSION}
    assert updated(send, 2, UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    assert updated(send, 1, UNSAFE_DOWNGRADE) == ErrorCode.INVALID_UPDATE_VERSION
    assert updated(send, 1, UPGRADE) == ErrorCode.NONE
    eventually(lambda: told(send, 4) == ((0, 1), 1))
    assert ErrorCode.UNSUPPORTED_VERSION not in codes(send)
