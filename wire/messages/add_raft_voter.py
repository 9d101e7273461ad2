"""AddRaftVoter (key 80): a controller becomes a voter of the KRaft quorum (KIP-853).

v1  the sender chooses whether the response waits for the commit
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uint16, uuid


@struct
class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


@request(key=ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterRequest(Message):
    cluster_id: string | None = field()
    timeout_ms: int32 = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    listeners: list[Listener] = field()
    ack_when_committed: bool = field("1+", default=True)


@response(key=ApiKey.ADD_RAFT_VOTER, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(ignorable=True)
