"""AlterShareGroupOffsets (key 91): sets the start offsets of an empty share group (KIP-932)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int32 = field()
    start_offset: int64 = field()


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field()


@request(key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Message):
    group_id: string = field()
    topics: list[AlterShareGroupOffsetsRequestTopic] = field()


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field()


@response(key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field()
