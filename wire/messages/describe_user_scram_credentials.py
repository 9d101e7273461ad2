"""DescribeUserScramCredentials (key 50): SCRAM mechanisms and iterations of users, never the secrets (KIP-554)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class UserName(Struct):
    name: string = field()


@request(key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = field()


@struct
class CredentialInfo(Struct):
    mechanism: int8 = field()
    iterations: int32 = field()


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: string = field()
    error_code: int16 = field()
    error_message: string | None = field()
    credential_infos: list[CredentialInfo] = field()


@response(key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    results: list[DescribeUserScramCredentialsResult] = field()
