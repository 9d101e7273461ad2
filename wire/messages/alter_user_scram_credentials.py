"""AlterUserScramCredentials (key 51): adds, replaces and removes SCRAM credentials (KIP-554)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class ScramCredentialDeletion(Struct):
    name: string = field()
    mechanism: int8 = field()


@struct
class ScramCredentialUpsertion(Struct):
    name: string = field()
    mechanism: int8 = field()
    iterations: int32 = field()
    salt: bytes = field(secret=True)
    salted_password: bytes = field(secret=True)


@request(key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = field()
    upsertions: list[ScramCredentialUpsertion] = field()


@struct
class AlterUserScramCredentialsResult(Struct):
    user: string = field()
    error_code: int16 = field()
    error_message: string | None = field()


@response(key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[AlterUserScramCredentialsResult] = field()
