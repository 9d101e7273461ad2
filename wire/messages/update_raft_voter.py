"""UpdateRaftVoter (key 82): a voter tells the leader of the quorum its new addresses and versions (KIP-853)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uint16, uuid


@struct
class KRaftVersionFeature(Struct):
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@struct
class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


@request(key=ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterRequest(Message):
    cluster_id: string | None = field()
    current_leader_epoch: int32 = field()
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    listeners: list[Listener] = field()
    kraft_version_feature: KRaftVersionFeature = field()


@struct
class CurrentLeader(Struct):
    leader_id: int32 = field(default=-1)
    leader_epoch: int32 = field(default=-1)
    host: string = field()
    port: int32 = field()


@response(key=ApiKey.UPDATE_RAFT_VOTER, versions="0", flexible="0+")
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    current_leader: CurrentLeader | None = field(tag=0)
