"""The feature that the APIs of share groups (KIP-932) need, and the refusal where the cluster has not finalized it."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.quorum.features import SHARE_VERSION
from .call import Call


def is_enabled(call: Call) -> bool:
    """Whether ``share.version`` 1 is finalized (KafkaApis ``isShareGroupProtocolEnabled``)."""
    features = call.node.finalized_features
    return features is not None and features.levels.get(SHARE_VERSION, 0) >= 1


def check_enabled(call: Call) -> None:
    """KafkaError UNSUPPORTED_VERSION unless share groups are enabled."""
    if not is_enabled(call):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The cluster has no share groups: share.version 1 is not finalized. Upgrade the feature.",
        )
