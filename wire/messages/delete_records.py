"""DeleteRecords (key 21): raises the log start offset of partitions (KIP-107).

v1  the response is sent before the throttling, not after it
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int32 = field()
    offset: int64 = field()  # -1 for the high watermark


@struct
class DeleteRecordsTopic(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartition] = field()


@request(key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    topics: list[DeleteRecordsTopic] = field()
    timeout_ms: int32 = field()


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int32 = field()
    low_watermark: int64 = field()
    error_code: int16 = field()


@struct
class DeleteRecordsTopicResult(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartitionResult] = field()


@response(key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    throttle_time_ms: int32 = field()
    topics: list[DeleteRecordsTopicResult] = field()
