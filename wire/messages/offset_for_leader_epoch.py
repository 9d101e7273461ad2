"""OffsetForLeaderEpoch (key 23): where a leader epoch ends in the leader's log (KIP-101, KIP-279).

v1  the response names the epoch it found
v2  current leader epoch, for fencing (KIP-320); throttle time
v3  replica id; -2 stands for a debugging consumer that sees beyond the high watermark (KIP-392)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class OffsetForLeaderPartition(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field("2+", default=-1, ignorable=True)
    leader_epoch: int32 = field()


@struct
class OffsetForLeaderTopic(Struct):
    topic: string = field()
    partitions: list[OffsetForLeaderPartition] = field()


@request(key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Message):
    replica_id: int32 = field("3+", default=-2, ignorable=True)  # -1 consumer, -2 debugging
    topics: list[OffsetForLeaderTopic] = field()


@struct
class EpochEndOffset(Struct):
    error_code: int16 = field()
    partition: int32 = field()
    leader_epoch: int32 = field("1+", default=-1, ignorable=True)
    end_offset: int64 = field(default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: string = field()
    partitions: list[EpochEndOffset] = field()


@response(key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field()
