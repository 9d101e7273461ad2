"""WriteShareGroupState (key 85): the leader of a partition has changed states of its share partitions kept (KIP-932).

v1  delivery complete count (KIP-1226)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, int64, request, response, string, struct, uuid


@struct
class StateBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_state: int8 = field()  # 0 available, 2 acknowledged, 4 archived
    delivery_count: int16 = field()


@struct
class PartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()  # -1 when it is not written
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field()


@struct
class WriteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Message):
    group_id: string = field()
    topics: list[WriteStateData] = field()


@struct
class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@struct
class WriteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


@response(key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Message):
    results: list[WriteStateResult] = field()
