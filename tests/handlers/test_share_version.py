"""The feature ``share.version``: what a broker tells of it, and the APIs of share groups with it and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from ottla.wire.messages.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

Send = Callable[..., Any]

FEATURE = "share.version"
UPGRADE, SAFE_DOWNGRADE = 1, 2
NOT_YET = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


def told(send: Send) -> tuple[tuple[int, int] | None, int | None]:
    """The supported range, and the finalized level."""
    response = send(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 4)
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    return supported.get(FEATURE), finalized.get(FEATURE)


def updated(send: Send, level: int, kind: int) -> ErrorCode:
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=kind)
    return ErrorCode(send(UpdateFeaturesRequest(feature_updates=[update]), 2).error_code)


def codes(send: Send) -> set[ErrorCode]:
    """Of every API, for a group that does not exist."""
    offsets = DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[])
    return {
        ErrorCode(send(ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=7), 1).error_code),
        ErrorCode(send(ShareGroupDescribeRequest(group_ids=["g"]), 1).groups[0].error_code),
        ErrorCode(send(DescribeShareGroupOffsetsRequest(groups=[offsets]), 1).groups[0].error_code),
        ErrorCode(send(AlterShareGroupOffsetsRequest(group_id="g"), 0).error_code),
        ErrorCode(send(DeleteShareGroupOffsetsRequest(group_id="g"), 0).error_code),
    } - NOT_YET


def test_a_new_cluster_has_share_groups(send: Send) -> None:
    assert told(send) == ((0, 1), 1)
    assert ErrorCode.UNSUPPORTED_VERSION not in codes(send)


def test_without_the_feature_their_apis_are_refused(send: Send) -> None:
    assert updated(send, 0, SAFE_DOWNGRADE) == ErrorCode.NONE
    eventually(lambda: told(send) == ((0, 1), None))
    assert codes(send) == {ErrorCode.UNSUPPORTED_VERSION}
    assert updated(send, 1, UPGRADE) == ErrorCode.NONE
    eventually(lambda: told(send) == ((0, 1), 1))
    assert ErrorCode.UNSUPPORTED_VERSION not in codes(send)
