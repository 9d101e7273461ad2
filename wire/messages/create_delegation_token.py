"""CreateDelegationToken (key 38): makes a token with which to authenticate (KIP-48).

v1  the response is sent before the throttling, not after it
v3  owner and requester may differ (KIP-373)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class CreatableRenewers(Struct):
    principal_type: string = field()
    principal_name: string = field()


@request(key=ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    owner_principal_type: string | None = field("3+")
    owner_principal_name: string | None = field("3+")
    renewers: list[CreatableRenewers] = field()
    max_lifetime_ms: int64 = field()  # -1 for the default


@response(key=ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    error_code: int16 = field()
    principal_type: string = field()
    principal_name: string = field()
    token_requester_principal_type: string = field("3+")
    token_requester_principal_name: string = field("3+")
    issue_timestamp_ms: int64 = field()
    expiry_timestamp_ms: int64 = field()
    max_timestamp_ms: int64 = field()
    token_id: string = field()
    hmac: bytes = field(secret=True)
    throttle_time_ms: int32 = field()
