"""DescribeQuorum (key 55): leader, voters and observers of the KRaft quorum (KIP-595).

The response's ``TopicData`` and ``PartitionData`` have the prefix ``Response`` here, as the request has its own.

v1  times of the last fetch and of when the replica last had caught up (KIP-836)
v2  error messages, endpoints, directory ids (KIP-853)
"""

from ..api_keys import ApiKey
from ..schema import (
    Message,
    Struct,
    field,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class PartitionData(Struct):
    partition_index: int32 = field()


@struct
class TopicData(Struct):
    topic_name: string = field()
    partitions: list[PartitionData] = field()


@request(key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message):
    topics: list[TopicData] = field()


@struct
class ReplicaState(Struct):
    replica_id: int32 = field()
    replica_directory_id: uuid = field("2+")
    log_end_offset: int64 = field()
    last_fetch_timestamp: int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int64 = field("1+", default=-1, ignorable=True)


@struct
class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field("2+", ignorable=True)
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    high_watermark: int64 = field()
    current_voters: list[ReplicaState] = field()
    observers: list[ReplicaState] = field()


@struct
class ResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[ResponsePartitionData] = field()


@struct
class Listener(Struct):
    name: string = field("2+")
    host: string = field("2+")
    port: uint16 = field("2+")


@struct
class Node(Struct):
    node_id: int32 = field("2+")
    listeners: list[Listener] = field("2+")


@response(key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    error_code: int16 = field()
    error_message: string | None = field("2+", ignorable=True)
    topics: list[ResponseTopicData] = field()
    nodes: list[Node] = field("2+")
