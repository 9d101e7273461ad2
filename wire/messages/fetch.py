"""Fetch (key 1): record batches from partitions, for consumers and for followers.

v1  throttle time
v2  the reader understands message format v1
v3  a limit for the whole response; partitions are served in the order of the request (KIP-74)
v4  isolation level, last stable offset and aborted transactions; message format v2 (KIP-98)
v5  log start offset
v7  incremental fetch sessions (KIP-227)
v8  the response is sent before the throttling, not after it
v9  current leader epoch, for fencing (KIP-320)
v10 batches may be compressed with zstd (KIP-110)
v11 rack, and the replica to read from instead (KIP-392)
v12 last fetched epoch and diverging epoch: truncation without another request (KIP-595)
v13 topic ids in place of names (KIP-516)
v14 the response may be OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)
v15 replica id and epoch in the tagged ``replica_state`` (KIP-903)
v16 endpoints of the leaders that the response names (KIP-951)
v17 directory id of the follower (KIP-853)
v18 high watermark that the follower knows (KIP-1166)
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
class ReplicaState(Struct):
    replica_id: int32 = field("15+", default=-1)
    replica_epoch: int64 = field("15+", default=-1)


@struct
class FetchPartition(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: int64 = field()
    last_fetched_epoch: int32 = field("12+", default=-1)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)  # the follower's
    partition_max_bytes: int32 = field()  # one batch may exceed it (KIP-74)
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
    replica_id: int32 = field("0-14", default=-1)  # -1 for a consumer
    replica_state: ReplicaState | None = field("15+", tag=1)
    max_wait_ms: int32 = field()
    min_bytes: int32 = field()
    max_bytes: int32 = field("3+", default=0x7FFFFFFF, ignorable=True)  # one batch may exceed it (KIP-74)
    isolation_level: int8 = field("4+", ignorable=True)  # 0 uncommitted, 1 committed
    session_id: int32 = field("7+", ignorable=True)  # 0 to begin a session
    session_epoch: int32 = field("7+", default=-1, ignorable=True)  # -1 without session, 0 to begin one
    topics: list[FetchTopic] = field()
    forgotten_topics_data: list[ForgottenTopic] = field("7+")  # leave the session
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
    # null for uncommitted reads
    aborted_transactions: list[AbortedTransaction] | None = field("4+", ignorable=True)
    preferred_read_replica: int32 = field("11+", default=-1)  # read from that broker instead
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
