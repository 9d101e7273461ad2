"""Vote (key 52): a candidate, or one that wants to become one, asks a voter for its vote (KIP-595, KIP-996).

v1  directory ids, by which a voter is known beside its id (KIP-853)
v2  a vote that is asked for in advance and binds nobody (KIP-996)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uint16, uuid


@struct
class PartitionData(Struct):
    partition_index: int32 = field()
    replica_epoch: int32 = field()
    replica_id: int32 = field()
    replica_directory_id: uuid = field("1+", ignorable=True)
    voter_directory_id: uuid = field("1+", ignorable=True)
    last_offset_epoch: int32 = field()
    last_offset: int64 = field()
    pre_vote: bool = field("2+")


@struct
class TopicData(Struct):
    topic_name: string = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteRequest(Message):
    cluster_id: string | None = field(default=None)
    voter_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[TopicData] = field()


@struct
class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    vote_granted: bool = field()


@struct
class NodeEndpoint(Struct):
    node_id: int32 = field("1+")
    host: string = field("1+")
    port: uint16 = field("1+")


@struct
class ResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[ResponsePartitionData] = field()


@response(key=ApiKey.VOTE, versions="0-2", flexible="0+")
class VoteResponse(Message):
    error_code: int16 = field()
    topics: list[ResponseTopicData] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)
