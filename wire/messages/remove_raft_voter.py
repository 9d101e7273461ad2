"""RemoveRaftVoter (key 81): a controller leaves the voters of the KRaft quorum (KIP-853)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, request, response, string, uuid


@request(key=ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterRequest(Message):
    cluster_id: string | None = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()


@response(key=ApiKey.REMOVE_RAFT_VOTER, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(ignorable=True)
