"""ListOffsets (key 2): the offset for a timestamp, or one of the special offsets.

Special timestamps: -1 latest, -2 earliest; -3 greatest timestamp (v7, KIP-734), -4 earliest on local disk (v8, KIP-405),
-5 last in tiered storage (v9, KIP-1005), -6 earliest not uploaded yet (v11, KIP-1023).

v0  a list of segment starts
v1  one offset with its timestamp
v2  isolation level; throttle time
v3  the response is sent before the throttling, not after it
v4  leader epochs (KIP-320)
v5  the response may be OFFSET_NOT_AVAILABLE (KIP-207)
v10 a limit for lookups in tiered storage (KIP-1075)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, int64, request, response, string, struct


@struct
class ListOffsetsPartition(Struct):
    partition_index: int32 = field()
    current_leader_epoch: int32 = field("4+", default=-1, ignorable=True)
    timestamp: int64 = field()  # ms, or a special one
    max_num_offsets: int32 = field("0", default=1)  # v0 lists segment starts


@struct
class ListOffsetsTopic(Struct):
    name: string = field()
    partitions: list[ListOffsetsPartition] = field()


@request(key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest(Message):
    replica_id: int32 = field()  # -1 consumer, -2 debugging
    isolation_level: int8 = field("2+")  # 0 uncommitted, 1 committed
    topics: list[ListOffsetsTopic] = field()
    timeout_ms: int32 = field("10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    old_style_offsets: list[int64] = field("0")
    timestamp: int64 = field("1+", default=-1)
    offset: int64 = field("1+", default=-1)
    leader_epoch: int32 = field("4+", default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    name: string = field()
    partitions: list[ListOffsetsPartitionResponse] = field()


@response(key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsResponse(Message):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field()
