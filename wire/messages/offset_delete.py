"""OffsetDelete (key 47): deletes a group's offsets of some partitions (KIP-496)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: int32 = field()


@struct
class OffsetDeleteRequestTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteRequestPartition] = field()


@request(key=ApiKey.OFFSET_DELETE, versions="0", flexible=None)
class OffsetDeleteRequest(Message):
    group_id: string = field()
    topics: list[OffsetDeleteRequestTopic] = field()


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class OffsetDeleteResponseTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteResponsePartition] = field()


@response(key=ApiKey.OFFSET_DELETE, versions="0", flexible=None)
class OffsetDeleteResponse(Message):
    error_code: int16 = field()
    throttle_time_ms: int32 = field(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = field()
