"""ReadShareGroupStateSummary (key 87): a group's coordinator asks where share partitions are (KIP-932).

v1  delivery complete count (KIP-1226)

In Kafka 3.9 version 0, then unstable, had no leader epoch.
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class PartitionData(Struct):
    partition: int32 = field()
    leader_epoch: int32 = field()


@struct
class ReadStateSummaryData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Message):
    group_id: string = field()
    topics: list[ReadStateSummaryData] = field()


@struct
class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


@response(key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Message):
    results: list[ReadStateSummaryResult] = field()
