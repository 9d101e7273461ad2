"""ApiVersions (key 18): which APIs and versions the broker serves, the first request on a connection.

The answer always has response header v0. A request of a version the broker does not know is answered in v0 with
UNSUPPORTED_VERSION and, since KIP-511, with the range of this API, so that the client can ask again.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  name and version of the client's software; features as tagged fields (KIP-511, KIP-584)
v4  the lowest version of a feature may be 0 (KAFKA-17011)
v5  the client names the cluster and node it expects, the response may be REBOOTSTRAP_REQUIRED (KIP-1242)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@request(key=ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsRequest(Message):
    client_software_name: string = field("3+", ignorable=True)
    client_software_version: string = field("3+", ignorable=True)
    cluster_id: string | None = field("5+", default=None, ignorable=True)
    node_id: int32 = field("5+", default=-1, ignorable=True)


@struct
class ApiVersion(Struct):
    api_key: int16 = field()
    min_version: int16 = field()
    max_version: int16 = field()


@struct
class SupportedFeatureKey(Struct):
    name: string = field("3+")
    min_version: int16 = field("3+")
    max_version: int16 = field("3+")


@struct
class FinalizedFeatureKey(Struct):
    name: string = field("3+")
    max_version_level: int16 = field("3+")
    min_version_level: int16 = field("3+")


@response(key=ApiKey.API_VERSIONS, versions="0-5", flexible="3+")
class ApiVersionsResponse(Message):
    error_code: int16 = field()
    api_keys: list[ApiVersion] = field()  # also with UNSUPPORTED_VERSION
    throttle_time_ms: int32 = field("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, ignorable=True)
    finalized_features_epoch: int64 = field("3+", default=-1, tag=1, ignorable=True)  # -1 when unknown
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field("3+", tag=3, ignorable=True)
