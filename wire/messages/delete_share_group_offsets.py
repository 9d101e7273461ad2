"""DeleteShareGroupOffsets (key 92): deletes an empty share group's offsets of some topics (KIP-932)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()


@request(key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Message):
    group_id: string = field()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field()


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@response(key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field()
