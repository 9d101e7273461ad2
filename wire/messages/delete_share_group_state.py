"""DeleteShareGroupState (key 86): a group's coordinator has the state of share partitions forgotten (KIP-932)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class PartitionData(Struct):
    partition: int32 = field()


@struct
class DeleteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Message):
    group_id: string = field()
    topics: list[DeleteStateData] = field()


@struct
class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@struct
class DeleteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


@response(key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Message):
    results: list[DeleteStateResult] = field()
