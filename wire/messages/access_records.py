"""Records of ``__cluster_metadata`` about access rules, SCRAM credentials and delegation tokens (KIP-801, KIP-900).

Each rule has an id, by which it is removed.
"""

from ..schema import Message, field, int8, int32, int64, message, string, uuid


@message(versions="0", flexible="0+", key=18)
class AccessControlEntryRecord(Message):
    id: uuid = field()
    resource_type: int8 = field()
    resource_name: string = field()
    pattern_type: int8 = field()
    principal: string = field()
    host: string = field()
    operation: int8 = field()
    permission_type: int8 = field()


@message(versions="0", flexible="0+", key=19)
class RemoveAccessControlEntryRecord(Message):
    id: uuid = field()


@message(versions="0", flexible="0+", key=11)
class UserScramCredentialRecord(Message):
    name: string = field()
    mechanism: int8 = field()
    salt: bytes = field(secret=True)
    stored_key: bytes = field(secret=True)
    server_key: bytes = field(secret=True)
    iterations: int32 = field()


@message(versions="0", flexible="0+", key=22)
class RemoveUserScramCredentialRecord(Message):
    name: string = field()
    mechanism: int8 = field()


@message(versions="0", flexible="0+", key=10)
class DelegationTokenRecord(Message):
    owner: string = field()
    requester: string = field()
    renewers: list[string] = field()
    issue_timestamp: int64 = field()
    max_timestamp: int64 = field()
    expiration_timestamp: int64 = field()
    token_id: string = field()


@message(versions="0", flexible="0+", key=26)
class RemoveDelegationTokenRecord(Message):
    token_id: string = field()
