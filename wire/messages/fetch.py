"""Fetch (key 1)."""

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
class ReplicaState(Struct):
    replica_id: int32 = field("15+", default=-1)
    replica_epoch: int64 = field("15+", default=-1)


@struct
class FetchPartition(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: int64 = field()
    last_fetched_epoch: int32 = field("12+", default=-1)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: int32 = field()
    replica_directory_id: uuid = field("17+", tag=0, ignorable=True)
    high_watermark: int64 = field("18+", default=0x7FFFFFFFFFFFFFFF, tag=1, ignorable=True)


@struct
class FetchTopic(Struct):
    topic: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[FetchPartition] = field()


@struct
class ForgottenTopic(Struct):
    topic: string = field("7-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[int32] = field("7+")


@request(key=ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchRequest(Message):
    cluster_id: string | None = field("12+", default=None, tag=0, ignorable=True)
    replica_id: int32 = field("0-14", default=-1)
    replica_state: ReplicaState | None = field("15+", tag=1)
    max_wait_ms: int32 = field()
    min_bytes: int32 = field()
    max_bytes: int32 = field("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int8 = field("4+", ignorable=True)
    session_id: int32 = field("7+", ignorable=True)
    session_epoch: int32 = field("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field("7+")
    rack_id: string = field("11+", ignorable=True)


@struct
class EpochEndOffset(Struct):
    epoch: int32 = field("12+", default=-1)
    end_offset: int64 = field("12+", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field("12+", default=-1)
    leader_epoch: int32 = field("12+", default=-1)


@struct
class SnapshotId(Struct):
    end_offset: int64 = field(default=-1)
    epoch: int32 = field(default=-1)


@struct
class AbortedTransaction(Struct):
    producer_id: int64 = field("4+")
    first_offset: int64 = field("4+")


@struct
class PartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    high_watermark: int64 = field()
    last_stable_offset: int64 = field("4+", default=-1, ignorable=True)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = field("12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = field("12+", tag=1)
    snapshot_id: SnapshotId | None = field("12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field("4+", ignorable=True)
    preferred_read_replica: int32 = field("11+", default=-1)
    records: record_data | None = field()


@struct
class FetchableTopicResponse(Struct):
    topic: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partitions: list[PartitionData] = field()


@struct
class NodeEndpoint(Struct):
    node_id: int32 = field("16+")
    host: string = field("16+")
    port: int32 = field("16+")
    rack: string | None = field("16+", default=None)


@response(key=ApiKey.FETCH, versions="0-18", flexible="12+")
class FetchResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field("7+", ignorable=True)
    session_id: int32 = field("7+")
    responses: list[FetchableTopicResponse] = field()
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0)
