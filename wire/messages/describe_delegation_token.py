"""DescribeDelegationToken (key 41): tokens by owner (KIP-48).

v1  the response is sent before the throttling, not after it
v3  requester beside owner (KIP-373)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class DescribeDelegationTokenOwner(Struct):
    principal_type: string = field()
    principal_name: string = field()


@request(key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    owners: list[DescribeDelegationTokenOwner] | None = field()


@struct
class DescribedDelegationTokenRenewer(Struct):
    principal_type: string = field()
    principal_name: string = field()


@struct
class DescribedDelegationToken(Struct):
    principal_type: string = field()
    principal_name: string = field()
    token_requester_principal_type: string = field("3+")
    token_requester_principal_name: string = field("3+")
    issue_timestamp: int64 = field()
    expiry_timestamp: int64 = field()
    max_timestamp: int64 = field()
    token_id: string = field()
    hmac: bytes = field(secret=True)
    renewers: list[DescribedDelegationTokenRenewer] = field()


@response(key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    error_code: int16 = field()
    tokens: list[DescribedDelegationToken] = field()
    throttle_time_ms: int32 = field()
