"""FetchSnapshot (key 59): a piece of a snapshot, for a replica whose log ends before the leader's begins (KIP-630).

v1  directory ids, endpoints of the leader (KIP-853)
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
    uint16,
    uuid,
)


@struct
class SnapshotId(Struct):
    end_offset: int64 = field()
    epoch: int32 = field()


@struct
class PartitionSnapshot(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field()
    snapshot_id: SnapshotId = field()
    position: int64 = field()
    replica_directory_id: uuid = field("1+", tag=0, ignorable=True)


@struct
class TopicSnapshot(Struct):
    name: string = field()
    partitions: list[PartitionSnapshot] = field()


@request(key=ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotRequest(Message):
    cluster_id: string | None = field(default=None, tag=0)
    replica_id: int32 = field(default=-1)
    max_bytes: int32 = field(default=0x7FFFFFFF)
    topics: list[TopicSnapshot] = field()


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int32 = field()
    leader_epoch: int32 = field()


@struct
class ResponsePartitionSnapshot(Struct):
    index: int32 = field()
    error_code: int16 = field()
    snapshot_id: SnapshotId = field()
    current_leader: LeaderIdAndEpoch | None = field(tag=0)
    size: int64 = field()
    position: int64 = field()
    unaligned_records: record_data = field()


@struct
class NodeEndpoint(Struct):
    node_id: int32 = field("1+")
    host: string = field("1+")
    port: uint16 = field("1+")


@struct
class ResponseTopicSnapshot(Struct):
    name: string = field()
    partitions: list[ResponsePartitionSnapshot] = field()


@response(key=ApiKey.FETCH_SNAPSHOT, versions="0-1", flexible="0+")
class FetchSnapshotResponse(Message):
    throttle_time_ms: int32 = field(ignorable=True)
    error_code: int16 = field()
    topics: list[ResponseTopicSnapshot] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)
