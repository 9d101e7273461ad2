"""The feature that the APIs of consumer groups (KIP-848) need, and the refusal where the cluster has not finalized it."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..controller.quorum.features import GROUP_VERSION
from .call import Call


def check_enabled(call: Call) -> None:
    """KafkaError UNSUPPORTED_VERSION unless ``group.version`` 1 is finalized (KafkaApis ``isConsumerGroupProtocolEnabled``)."""
    features = call.node.finalized_features
    if features is None or features.levels.get(GROUP_VERSION, 0) < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The cluster has no consumer groups of KIP-848: group.version 1 is not finalized. Use group.protocol=classic, or "
            "upgrade the feature.",
        )
