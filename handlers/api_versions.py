"""ApiVersions (key 18): which APIs this broker serves.

Behaviour: the list is computed from what is served (``table.ServedApis``); of what is not Kafka's only other Ottla brokers are
told. A name or version of the client's software that does not match Kafka's pattern (KIP-511) is answered INVALID_REQUEST. A
request at a version this broker does not know is answered before its body is read, in the layout of version 0 with
UNSUPPORTED_VERSION and the range of this one API, and the connection stays open for the retry.

A broker that is alone has transactions V2 (KIP-890) finalized: a client that knows ``transaction.version`` 2 uses them. In a
cluster of several nothing is finalized, as in Kafka 3.9's ZooKeeper mode, and so transactions are V1: the broker verifies that a
partition was added (``transaction.partition.verification.enable``); the epoch is the version of ``/feature``. On a ZooKeeper,
where brokers of Apache Kafka may be in the cluster, requests of transactions V2 are not served at all. In a cluster of KRaft the
finalized features are those of the metadata log, and the epoch is the offset up to which this broker has it.

Version notes: 1 adds the throttle time; 3 is flexible and carries the client's software and the features; 4 allows a
feature's lowest version to be 0 (in 3 such a feature is finalized without being among the supported ones); 5 (KIP-1242) carries
the cluster id and node id that the client believes it talks to, and is answered REBOOTSTRAP_REQUIRED when they are those of
another broker or cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..metadata.types import FinalizedFeatures, VersionRange
from ..transaction_coordinator.transaction import TRANSACTIONS_V2
from ..wire.api_keys import FIRST_OF_OTTLA, ApiKey
from ..wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from .call import NodeCall
from .table import ServedApis

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_TRANSACTION_VERSION = "transaction.version"
_OF_ONE_ALONE = FinalizedFeatures(0, {_TRANSACTION_VERSION: TRANSACTIONS_V2})
_SUPPORTED_BY_ONE_ALONE = {_TRANSACTION_VERSION: VersionRange(0, TRANSACTIONS_V2)}
_LOWEST_CAN_BE_0_FROM = 4


ASKING_SOFTWARE = "ottla-broker"
"""An Ottla broker's name for itself in requests to another for Ottla's own APIs."""


def _ranges(served: ServedApis, software: str = "") -> list[ApiVersion]:
    """Of Ottla's own APIs only other Ottla brokers are told."""
    return [
        ApiVersion(
            api_key=int(handler.api_key),
            min_version=handler.lowest if handler.advertise_from is None else handler.advertise_from,
            max_version=handler.highest,
        )
        for handler in sorted(served.by_key.values(), key=lambda handler: handler.api_key)
        if handler.api_key < FIRST_OF_OTTLA or software == ASKING_SOFTWARE
    ]


def _supported_features(supported: Mapping[str, VersionRange], version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
        for name, (lowest, highest) in supported.items()
        if lowest or version >= _LOWEST_CAN_BE_0_FROM
    ]


def _finalized_features(levels: Mapping[str, int]) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
    ]


async def handle(call: NodeCall, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"client software {name!r} {version!r} is not a name and a version"
            )
        call.client_software_name, call.client_software_version = name, version
    if request.cluster_id is not None and request.cluster_id != call.node.cluster_id:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED, f"this is cluster {call.node.cluster_id}")
    if request.node_id != -1 and request.node_id != call.node.node_id:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED, f"this is broker {call.node.node_id}")
    served = call.node.served
    ranges = _ranges(served, request.client_software_name)
    if not served.has_features:
        return ApiVersionsResponse(api_keys=ranges)
    features = call.node.finalized_features
    supported = call.node.supported_features
    if features is None:
        features, supported = _OF_ONE_ALONE, _SUPPORTED_BY_ONE_ALONE
    return ApiVersionsResponse(
        api_keys=ranges,
        supported_features=_supported_features(supported, call.version),
        finalized_features_epoch=features.epoch,
        finalized_features=_finalized_features(features.levels),
    )


def error_response(request: ApiVersionsRequest, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


def unsupported_version(served: ServedApis) -> ApiVersionsResponse:
    """The response to a version this broker does not know; encoded as version 0."""
    own = [entry for entry in _ranges(served) if entry.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
