"""Produce (key 0): record batches for partitions. With acks 0 there is no response.

v1  throttle time
v2  log append time
v3  transactional id; message format v2 (KIP-98)
v4  the response may be KAFKA_STORAGE_ERROR
v5  log start offset
v6  the response is sent before the throttling, not after it
v7  batches may be compressed with zstd (KIP-110)
v8  which records caused an error, and an error message (KIP-467)
v10 current leader and endpoints, when the leader has moved (KIP-951)
v11 the response may be TRANSACTION_ABORTABLE (KIP-890)
v12 in a transaction, the request also adds the partitions to it (KIP-890)
v13 topic ids in place of names (KIP-516)
"""

from ..api_keys import ApiKey
from ..schema import (
    Message,
    Struct,
    field,
    int16,
    int32,
    int64,
    record_data,
    request,
    response,
    string,
    struct,
    uuid,
)


@struct
class PartitionProduceData(Struct):
    index: int32 = field()
    records: record_data | None = field()


@struct
class TopicProduceData(Struct):
    name: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field()


@request(key=ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceRequest(Message):
    transactional_id: string | None = field("3+", default=None)
    acks: int16 = field()  # 0 none, 1 leader, -1 all in-sync replicas
    timeout_ms: int32 = field()
    topic_data: list[TopicProduceData] = field()


@struct
class BatchIndexAndErrorMessage(Struct):
    batch_index: int32 = field("8+")
    batch_index_error_message: string | None = field("8+", default=None)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field("10+", default=-1)
    leader_epoch: int32 = field("10+", default=-1)


@struct
class PartitionProduceResponse(Struct):
    index: int32 = field()
    error_code: int16 = field()
    base_offset: int64 = field()
    log_append_time_ms: int64 = field("2+", default=-1, ignorable=True)  # -1 with create time
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    # the records that caused the batch to be dropped
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    error_message: string | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = field("10+", tag=0)


@struct
class TopicProduceResponse(Struct):
    name: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field()


@struct
class NodeEndpoint(Struct):
    node_id: int32 = field("10+")
    host: string = field("10+")
    port: int32 = field("10+")
    rack: string | None = field("10+", default=None)


@response(key=ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = field()
    throttle_time_ms: int32 = field("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0)
