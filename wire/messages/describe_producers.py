"""DescribeProducers (key 61): the active producers of partitions (KIP-664)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class TopicRequest(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


@request(key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = field()


@struct
class ProducerState(Struct):
    producer_id: int64 = field()
    producer_epoch: int32 = field()
    last_sequence: int32 = field(default=-1)
    last_timestamp: int64 = field(default=-1)
    coordinator_epoch: int32 = field()
    current_txn_start_offset: int64 = field(default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    active_producers: list[ProducerState] = field()


@struct
class TopicResponse(Struct):
    name: string = field()
    partitions: list[PartitionResponse] = field()


@response(key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    throttle_time_ms: int32 = field()
    topics: list[TopicResponse] = field()
