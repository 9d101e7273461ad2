"""DescribeShareGroupOffsets (key 90): start offsets of share groups (KIP-932).

v1  lag (KIP-1226)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()
    partitions: list[int32] = field()


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: string = field()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field()


@request(key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field()


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int32 = field()
    start_offset: int64 = field()
    leader_epoch: int32 = field()
    lag: int64 = field("1+", default=-1, ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field()


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: string = field()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@response(key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = field()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field()
