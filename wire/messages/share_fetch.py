"""ShareFetch (key 78): records for a member of a share group, which can acknowledge earlier ones (KIP-932).

v0  early access, before Kafka 4.1
v1  limits in records, in place of bytes per partition
v2  acquire mode and renewals (KIP-1206, KIP-1222)
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
    record_data,
    request,
    response,
    string,
    struct,
    uuid,
)


@struct
class AcknowledgementBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    acknowledge_types: list[int8] = field()


@struct
class FetchPartition(Struct):
    partition_index: int32 = field()
    partition_max_bytes: int32 = field("0")  # one batch may exceed it (KIP-74)
    acknowledgement_batches: list[AcknowledgementBatch] = field()


@struct
class FetchTopic(Struct):
    topic_id: uuid = field()
    partitions: list[FetchPartition] = field()


@struct
class ForgottenTopic(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@request(key=ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchRequest(Message):
    group_id: string | None = field(default=None)
    member_id: string | None = field()
    share_session_epoch: int32 = field()  # 0 begins a session, -1 ends it
    max_wait_ms: int32 = field()
    min_bytes: int32 = field()
    max_bytes: int32 = field(default=0x7FFFFFFF)
    max_records: int32 = field("1+")
    batch_size: int32 = field("1+")
    share_acquire_mode: int8 = field("2+", ignorable=True)
    is_renew_ack: bool = field("2+")
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field()


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field()
    leader_epoch: int32 = field()


@struct
class AcquiredRecords(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_count: int16 = field()


@struct
class PartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    acknowledge_error_code: int16 = field()
    acknowledge_error_message: string | None = field(default=None)
    current_leader: LeaderIdAndEpoch = field()
    records: record_data | None = field(nullable="0")
    acquired_records: list[AcquiredRecords] = field()


@struct
class ShareFetchableTopicResponse(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@struct
class NodeEndpoint(Struct):
    node_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field(default=None)


@response(key=ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    acquisition_lock_timeout_ms: int32 = field("1+")
    responses: list[ShareFetchableTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field()
