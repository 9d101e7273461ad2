"""InitializeShareGroupState (key 83): a group's coordinator has the state of share partitions begun (KIP-932)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class PartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    start_offset: int64 = field()  # -1 when it is not known yet


@struct
class InitializeStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Message):
    group_id: string = field()
    topics: list[InitializeStateData] = field()


@struct
class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@struct
class InitializeStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


@response(key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Message):
    results: list[InitializeStateResult] = field()
