"""ListOffsets (key 2)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, int64, request, response, string, struct


@struct
class ListOffsetsPartition(Struct):
    partition_index: int32 = field()
    current_leader_epoch: int32 = field("4+", default=-1, ignorable=True)
    timestamp: int64 = field()
    max_num_offsets: int32 = field("0", default=1)


@struct
class ListOffsetsTopic(Struct):
    name: string = field()
    partitions: list[ListOffsetsPartition] = field()


@request(key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+")
class ListOffsetsRequest(Message):
    replica_id: int32 = field()
    isolation_level: int8 = field("2+")
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
