"""UpdateFeatures (key 57): raises and lowers the finalized levels of features (KIP-584).

v1  ``validate_only``, and the kind of a downgrade (KIP-778)
v2  no result per feature
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class FeatureUpdateKey(Struct):
    feature: string = field()
    max_version_level: int16 = field()
    allow_downgrade: bool = field("0")
    upgrade_type: int8 = field("1+", default=1)


@request(key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message):
    timeout_ms: int32 = field(default=60000)
    feature_updates: list[FeatureUpdateKey] = field()
    validate_only: bool = field("1+")


@struct
class UpdatableFeatureResult(Struct):
    feature: string = field()
    error_code: int16 = field()
    error_message: string | None = field()


@response(key=ApiKey.UPDATE_FEATURES, versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    results: list[UpdatableFeatureResult] = field("0-1", ignorable=True)
