"""ApiVersions (key 18): which APIs this broker serves.

Behaviour: the list is computed from what is served (``table.ServedApis``). A name or version of the client's software that
does not match Kafka's pattern (KIP-511) is answered INVALID_REQUEST. A request at a version this broker does not know is
answered before its body is read, in the layout of version 0 with UNSUPPORTED_VERSION and the range of this one API, and
the connection stays open for the retry.

A broker that is alone has transactions V2 (KIP-890) finalized: a client that knows ``transaction.version`` 2 uses them. In a
cluster of several nothing is finalized, as in Kafka 3.9's ZooKeeper mode, and so transactions are V1: the broker verifies that a
partition was added (``transaction.partition.verification.enable``); the epoch is the version of ``/feature``. On a ZooKeeper,
where brokers of Apache Kafka may be in the cluster, requests of transactions V2 are not served at all.

Version notes: 1 adds the throttle time; 3 is flexible and carries the client's software and the features; 4 allows a
feature's lowest version to be 0 (in 3 such a feature is finalized without being among the supported ones); 5 (KIP-1242) carries
the cluster id and node id that the client believes it talks to, and is answered REBOOTSTRAP_REQUIRED when they are those of
another broker or cluster.
"""

from __future__ import annotations

import re

from ..base.errors import ErrorCode, KafkaError
from ..transaction_coordinator.transaction import TRANSACTIONS_V2
from ..wire.api_keys import ApiKey
from ..wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from .call import Call
from .table import ServedApis

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_TRANSACTION_VERSION = "transaction.version"
_LOWEST_CAN_BE_0_FROM = 4


def _ranges(served: ServedApis) -> list[ApiVersion]:
    return [
        ApiVersion(
            api_key=int(handler.api_key),
            min_version=handler.lowest if handler.advertise_from is None else handler.advertise_from,
            max_version=handler.highest,
        )
        for handler in sorted(served.by_key.values(), key=lambda handler: handler.api_key)
    ]


def _supported_features(version: int) -> list[SupportedFeatureKey]:
    if version < _LOWEST_CAN_BE_0_FROM:
        return []
    return [SupportedFeatureKey(name=_TRANSACTION_VERSION, min_version=0, max_version=TRANSACTIONS_V2)]


async def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"client software {name!r} {version!r} is not a name and a version"
            )
        call.client_software_name, call.client_software_version = name, version
    if request.cluster_id is not None and request.cluster_id != call.broker.cluster_id:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED, f"this is cluster {call.broker.cluster_id}")
    if request.node_id != -1 and request.node_id != call.broker.broker_id:
        raise KafkaError(ErrorCode.REBOOTSTRAP_REQUIRED, f"this is broker {call.broker.broker_id}")
    served = call.broker.served
    if not served.has_features:
        return ApiVersionsResponse(api_keys=_ranges(served))
    features = call.broker.metadata.image.features
    if features is not None:
        return ApiVersionsResponse(api_keys=_ranges(served), finalized_features_epoch=features.epoch)
    return ApiVersionsResponse(
        api_keys=_ranges(served),
        supported_features=_supported_features(call.version),
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name=_TRANSACTION_VERSION, max_version_level=TRANSACTIONS_V2, min_version_level=TRANSACTIONS_V2
            )
        ],
    )


def error_response(request: ApiVersionsRequest, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


def unsupported_version(served: ServedApis) -> ApiVersionsResponse:
    """The answer to a version this broker does not know; encoded as version 0."""
    own = [entry for entry in _ranges(served) if entry.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
