"""ReadShareGroupState (key 84): the leader of a partition reads the state of its share partitions (KIP-932)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, int64, request, response, string, struct, uuid


@struct
class PartitionData(Struct):
    partition: int32 = field()
    leader_epoch: int32 = field()


@struct
class ReadStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Message):
    group_id: string = field()
    topics: list[ReadStateData] = field()


@struct
class StateBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_state: int8 = field()  # 0 available, 2 acknowledged, 4 archived
    delivery_count: int16 = field()


@struct
class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    state_epoch: int32 = field()
    start_offset: int64 = field()  # -1 when it is not known yet
    state_batches: list[StateBatch] = field()


@struct
class ReadStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


@response(key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Message):
    results: list[ReadStateResult] = field()
