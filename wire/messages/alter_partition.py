"""AlterPartition (key 56): a leader tells the controller its new in-sync replicas (KIP-497, first called AlterIsr).

v1  leader recovery state (KIP-704)
v2  topic ids in place of names (KIP-841)
v3  in-sync replicas with their broker epochs (KIP-903)

The response's ``TopicData`` and ``PartitionData`` have the prefix ``Response`` here, as the request has its own.
"""

from ..api_keys import ApiKey
from ..schema import (
    Message,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
    uuid,
)


@struct
class BrokerState(Struct):
    broker_id: int32 = field("3+")
    broker_epoch: int64 = field("3+", default=-1)


@struct
class PartitionData(Struct):
    partition_index: int32 = field()
    leader_epoch: int32 = field()
    new_isr: list[int32] = field("0-2")
    new_isr_with_epochs: list[BrokerState] = field("3+")
    leader_recovery_state: int8 = field("1+")
    partition_epoch: int32 = field()


@struct
class TopicData(Struct):
    topic_name: string = field("0-1", ignorable=True)
    topic_id: uuid = field("2+", ignorable=True)
    partitions: list[PartitionData] = field()


@request(key=ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    topics: list[TopicData] = field()


@struct
class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    isr: list[int32] = field()
    leader_recovery_state: int8 = field("1+", ignorable=True)
    partition_epoch: int32 = field()


@struct
class ResponseTopicData(Struct):
    topic_name: string = field("0-1", ignorable=True)
    topic_id: uuid = field("2+", ignorable=True)
    partitions: list[ResponsePartitionData] = field()


@response(key=ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    topics: list[ResponseTopicData] = field()
